"""The command line, run as a shell runs it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

# Set up logging now: the first import within a test would bind it to the captured output of that test.
import config.cli.kit.with_django  # noqa: F401
from config.cli.main import main


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output as one JSON object."""
        return json.loads(self.out)


type Arbor = Callable[..., CommandResult]


@pytest.fixture
def arbor(database: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Arbor:
    """Return a function that runs `arbor` with arguments, and with a text or bytes on standard input."""

    def run(*arguments: str, stdin: str | bytes = "") -> CommandResult:
        given = (
            io.StringIO(stdin)
            if isinstance(stdin, str)
            else io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        )
        monkeypatch.setattr(sys, "stdin", given)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        printed = capsys.readouterr()
        return CommandResult(code=int(ended.value.code or 0), out=printed.out, err=printed.err)

    return run


@pytest.fixture
def one_tenant(arbor: Arbor, templates: None) -> str:
    """Store the built-in templates and one tenant; return its slug."""
    assert arbor("tenant", "create", "acme", "--name", "Acme").code == 0
    return "acme"


@pytest.fixture
def two_tenants(arbor: Arbor, one_tenant: str) -> tuple[str, str]:
    """Create a second tenant; return both slugs."""
    assert arbor("tenant", "create", "globex").code == 0
    return one_tenant, "globex"


@pytest.fixture
def vega(arbor: Arbor, one_tenant: str) -> str:
    """Create the agent Vega; return its name."""
    assert arbor("agent", "create", "Vega", "--template", "Scout").code == 0
    return "Vega"


@pytest.fixture
def active_vega(arbor: Arbor, one_tenant: str) -> str:
    """Create the agent Vega and start it; return its name."""
    ran = arbor("agent", "create", "Vega", "--template", "Scout", "--interval", "5m", "--start")
    assert ran.code == 0, ran.err
    return "Vega"


def add_memory(arbor: Arbor, text: str, kind: str = "semantic", *more: str) -> str:
    """Add a memory of Vega; return its id."""
    ran = arbor("memory", "add", "Vega", text, "--type", kind, *more, "--json")
    assert ran.code == 0, ran.err
    return str(ran.json["id"])
