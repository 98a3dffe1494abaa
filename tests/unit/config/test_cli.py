"""The command line: lazy imports, errors and exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from arbor.errors import AlreadyRunning, ConfigurationInvalid
from config.cli.kit.declarations import ExitCode
from config.cli.main import COMMANDS, cli, main

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


@click.command()
@click.argument("kind")
def failing(kind: str) -> None:
    if kind == "running":
        raise AlreadyRunning("Arbor already runs from here")
    if kind == "interrupted":
        raise KeyboardInterrupt
    kind.encode()
    if kind == "latin":
        "ł".encode("latin-1")
    raise ConfigurationInvalid("ARBOR_EXAMPLE must be a number,\ngot 'seven'")


@pytest.fixture(autouse=True)
def _failing_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.commands, "fail", failing)


def test_the_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == ExitCode.DONE
    shown = capsys.readouterr().out
    for heading, section in COMMANDS.items():
        assert f"{heading}:" in shown
        for name, (_, summary) in section.items():
            assert f"  {name}  " in shown
            assert summary in shown


def test_the_overview_has_at_most_41_commands() -> None:
    assert sum(map(len, COMMANDS.values())) <= 41


def test_a_command_without_a_model_call_loads_no_adapter() -> None:
    commands = ("goals.goals", "contacts.inbox", "selves.inner_state", "selves.beliefs", "agents.policy")
    script = (
        "import importlib, sys, config.cli.kit.with_django\n"
        f"for name in {commands}:\n"
        "    importlib.import_module('config.cli.' + name)\n"
        "    models = ('apps.providers', 'httpx', 'arbor.adapters.connect')\n"
        "    print(name, [model for model in models if model in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-len(commands) :] == [f"{name} []" for name in commands]


def test_a_command_ends_without_collecting_garbage() -> None:
    script = (
        "import atexit, gc, runpy, sys\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0, len(gc.get_objects())))\n"
        "sys.argv[1:] = ['--version']\n"
        "runpy.run_module('config.cli', run_name='__main__')"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    frozen, left = result.stdout.splitlines()[-1].split()
    assert frozen == "True"
    assert int(left) < 100, "objects that the interpreter examines at its exit"


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("nosuch") == ExitCode.USAGE
    assert "No such command 'nosuch'" in capsys.readouterr().err


def test_a_domain_error_is_printed_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fail", "plainly") == ExitCode.FAILED
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "arbor: ARBOR_EXAMPLE must be a number,\ngot 'seven'\n"


def test_a_second_start_has_a_code_of_its_own() -> None:
    assert run("fail", "running") == 3


def test_an_interrupt_has_the_code_that_shells_expect() -> None:
    assert run("fail", "interrupted") == 130


def test_only_known_parts_can_be_requested(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("up", "--only", "") == ExitCode.USAGE
    assert "'': choose from worker, dispatcher" in capsys.readouterr().err
    assert run("up", "--only", "web,nothing") == ExitCode.USAGE
    assert "'nothing': choose from worker, dispatcher" in capsys.readouterr().err


def test_a_text_that_is_not_utf_8_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fail", os.fsdecode(b"caf\xe9")) == ExitCode.FAILED
    assert capsys.readouterr().err == "arbor: a text must be UTF-8: surrogates not allowed at position 3\n"


def test_a_bug_with_a_codec_keeps_its_traceback() -> None:
    with pytest.raises(UnicodeEncodeError):
        main(["fail", "latin"])
