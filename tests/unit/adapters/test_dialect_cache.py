"""The dialects that a process stores."""

from __future__ import annotations

import pytest

from arbor.adapters import dialect
from arbor.adapters.dialect import Dialect, DialectCache, Form


def test_the_dialect_stored_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "_MOST_DIALECTS", 2)
    cache, default, stored = DialectCache(), Dialect(forms=(Form.SCHEMA,)), Dialect(forms=(Form.PLAIN,))
    for key in ("first", "second", "first", "third"):
        cache.put(key, stored)
    assert [cache.get(key, default) is stored for key in ("first", "second", "third")] == [True, False, True]
