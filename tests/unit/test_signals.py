"""The catalogue of signals, their data and their cursors."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

import pytest

from arbor.errors import Invalid
from arbor.signals import CATALOGUE, LABEL_LENGTH, MAX_IDS, Cursor, SignalName, label, memory_data, signal

ROOT = Path(__file__).resolve().parents[2]


def test_the_catalogue_has_every_name() -> None:
    assert set(CATALOGUE) == set(SignalName)
    assert all(kind.meaning and kind.fields for kind in CATALOGUE.values())


def test_every_name_has_a_producer() -> None:
    """Find a use outside of the catalogue; the integration tests show that the producers run."""
    sources = {*(ROOT / "apps").rglob("*.py"), *(ROOT / "arbor").rglob("*.py")}
    sources.remove(ROOT / "arbor/signal_catalogue.py")
    used = {name for path in sources for name in re.findall(r"\bSignalName\.(\w+)", path.read_text())}
    assert [name for name in SignalName if name.name not in used] == []


def test_data_has_the_fields_of_the_catalogue() -> None:
    with pytest.raises(ValueError, match=r"memory\.concern_added has the fields count, got number"):
        signal(SignalName.CONCERN_ADDED, uuid4(), number=1)


def test_long_lists_and_labels_are_cut() -> None:
    ids = [uuid4() for _ in range(MAX_IDS + 5)]
    assert memory_data(ids) == {"count": MAX_IDS + 5, "memories": ids[:MAX_IDS]}
    assert len(label("a very\nlong title " * 20)) == LABEL_LENGTH


def test_cursors_are_ordered_and_read_back() -> None:
    row_id = uuid4()
    first, second = Cursor(row_id, 1), Cursor(row_id, 2)
    assert Cursor() < first < second
    assert Cursor.parse(str(second)) == second


@pytest.mark.parametrize("text", ["", "1", "x" * 32 + ".1", "0" * 32, "0" * 32 + ".", "0.0"])
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="a cursor is the id of a signal"):
        Cursor.parse(text)
