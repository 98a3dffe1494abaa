"""Output of commands without terminal control codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click
import pytest
from rich.text import Text

from apps.contacts.services.outbox import MAX_COUNTED, OutboxFigures
from arbor.quotations import bounded, bounded_figure, bounded_noun, counted
from config.cli.agents.trace import goal_line
from config.cli.kit.output import print_note, show, stamp, table
from config.cli.main import cli, main

#: An escape sequence, a bell, a C1 control sequence introducer, and a right-to-left override.
HOSTILE = "red \x1b[31mhere\x07 \x9b2J \u202egpj.exe \udce9"
CONTROL_CODES = ("\x1b", "\x07", "\x9b", "\u202e", "\udce9")


def is_harmless(text: str) -> bool:
    return not any(code in text for code in CONTROL_CODES)


@pytest.mark.parametrize(
    "text", [HOSTILE, Text(HOSTILE), table(("title", "state"), [(HOSTILE, "active")], title=HOSTILE)]
)
def test_text_for_people_contains_no_terminal_control_codes(
    text: object, capsys: pytest.CaptureFixture[str]
) -> None:
    show({}, as_json=False, text=text)  # type: ignore[arg-type]
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert "red \ufffd[31mhere" in shown


def test_a_number_has_its_noun_in_the_singular_or_the_plural() -> None:
    assert [counted(number, "goal") for number in (0, 1, 1_000)] == ["0 goals", "1 goal", "1,000 goals"]
    assert (counted(1, "memory", "memories"), counted(2, "memory", "memories")) == ("1 memory", "2 memories")


def test_a_hostile_cell_leaves_the_table_in_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    show({}, as_json=False, text=table(("title", "state"), [("\x1b" * 9, "active"), ("Map", "queued")]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].index("active") == lines[2].index("queued")


def test_own_colors_lines_and_letters_of_any_script_are_preserved(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    show({}, as_json=False, text="[bold]one[/bold]\r\ntwo שלום\u200f 👩‍🚀")
    assert capsys.readouterr().out == "\x1b[1mone\x1b[0m\ntwo שלום\u200f 👩‍🚀\n"


def test_json_escapes_control_codes_without_changing_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    show({"title": HOSTILE}, as_json=True, text="")
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert json.loads(shown) == {"title": HOSTILE}


def test_notes_and_errors_contain_no_terminal_control_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_note(HOSTILE)
    assert is_harmless(capsys.readouterr().err)
    monkeypatch.setitem(cli.commands, "refuse", refusing)
    with pytest.raises(SystemExit) as end:
        main(["refuse", HOSTILE])
    shown = capsys.readouterr().err
    assert end.value.code == 2
    assert is_harmless(shown)
    assert "arbor: nothing is called" in shown


def test_an_error_message_is_truncated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cli.commands, "refuse", refusing)
    with pytest.raises(SystemExit):
        main(["refuse", "x" * 100_000])
    shown = capsys.readouterr().err
    assert len(shown) < 2_000
    assert "characters" in shown
    assert shown.endswith("try another\n")


@click.command()
@click.argument("name")
def refusing(name: str) -> None:
    raise click.UsageError(f"nothing is called {name}: try another")


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2026, 11, 22, 8, 40, 58, 469393, tzinfo=UTC), "2026-11-22T08:40:58.469393Z"),
        (datetime(2026, 11, 22, 8, 40, 58, tzinfo=UTC), "2026-11-22T08:40:58Z"),
        (None, None),
    ],
)
def test_json_writes_moments_in_one_form(
    moment: datetime | None, written: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    show({"at": moment}, as_json=True, text="")
    assert json.loads(capsys.readouterr().out) == {"at": written}
    assert stamp(moment) == written


def test_a_change_of_a_goal_without_a_text_is_named_by_its_kind() -> None:
    change = {"title": "Map the river", "kind": "completed", "change": ""}
    assert goal_line(change) == "Map the river: completed"


def test_a_count_that_stopped_at_its_limit_says_so() -> None:
    assert [bounded(number, 1_000) for number in (0, 999, 1_000)] == ["0", "999", "1,000 or more"]
    assert [bounded(7, 1_000, of=all_rows) for all_rows in (999, 1_000)] == ["7", "7 or more"]
    assert [bounded_figure(number, 1_000) for number in (0, 999, 1_000)] == ["0", "999", "1,000+"]
    assert [bounded_noun(number, 2, "goal") for number in (0, 1, 2)] == [
        "0 goals",
        "1 goal",
        "2 or more goals",
    ]
    assert bounded_noun(1, 1, "memory", "memories") == "1 or more memories"
    figures = OutboxFigures(waiting=3, oldest_due_s=0, failed=MAX_COUNTED)
    assert figures.in_words == "3 waiting, 100,000 or more failed"
