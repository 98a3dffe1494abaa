"""The tree of commands: lazy imports, parameters and help texts."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from apps.agents.services.percepts import PERCEIVABLE_KINDS
from apps.heartbeats.services.inline import MAX_TICKS
from apps.heartbeats.services.reports.thoughts import RING
from apps.memories.services.embedding import reembed
from apps.memories.services.graph import traversal
from apps.memories.services.store import snippets
from apps.tenants.models import Role
from arbor.agents.template import TrustTier
from config.cli.commands import agent, memory, memory_graph, memory_upkeep, processes, tenant, tier
from config.cli.kit.declarations import Run
from config.pools import PoolKind
from tests.support.command_tree import ROOT, commands, nodes, options_of

#: Given to every command that resolves a tenant, by `tests/integration/cli/test_every_option.py`.
CALLED_EVERYWHERE = {"--tenant"}


def test_no_help_loads_a_framework() -> None:
    script = """
import sys
from config.cli.main import main
from tests.support.command_tree import nodes

for path in nodes():
    if path == ("manage",):
        continue  # It passes --help on, to Django.
    try:
        main([*path, "--help"])
    except SystemExit as end:
        assert not end.code, path
    found = {"django", "celery", "psycopg", "gunicorn"} & set(sys.modules)
    assert not found, (path, found)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_a_function_takes_the_parameters_of_its_command(path: tuple[str, ...]) -> None:
    command = commands()[path]
    run = command.callback
    assert isinstance(run, Run)
    function = run.load()
    parameters = dict(inspect.signature(inspect.unwrap(function)).parameters)
    given = {str(param.name) for param in command.params if param.expose_value}
    if function is not inspect.unwrap(function):
        # Resolved by a decorator: the first parameter is the agent or the tenant.
        first = next(iter(parameters))
        del parameters[first]
        given -= {first, "tenant_slug"} - parameters.keys()
    names = {name for name, param in parameters.items() if param.kind is not param.VAR_KEYWORD}
    assert names <= given
    assert len(names) < len(parameters) or given - {"as_json"} <= names


@pytest.mark.parametrize("path", nodes(), ids=" ".join)
def test_every_command_and_option_has_a_help_text(path: tuple[str, ...]) -> None:
    command = nodes()[path]
    assert command.help
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden:
            assert param.help, f"{' '.join(path)} {param.opts[0]}"


def test_declared_bounds_are_those_of_the_services() -> None:
    assert (
        tuple(kind.value for kind in PERCEIVABLE_KINDS),
        MAX_TICKS,
        RING,
        snippets.MAX_LIMIT,
        traversal.EVIDENCE_HOPS,
        reembed.BATCH,
        tuple(Role.values),
        tuple(kind.value for kind in PoolKind),
        tuple(trust_tier.value for trust_tier in TrustTier),
    ) == (
        agent.PERCEIVED,
        agent.MAX_TICKS,
        memory.MAX_THOUGHTS,
        memory_upkeep.MAX_CODE,
        memory_graph.EVIDENCE_HOPS,
        memory_upkeep.REEMBED_BATCH,
        tenant.ROLES,
        processes.POOL_KINDS,
        tier.TIERS,
    )


# --- Every option is called by a test ----------------------------------------------------------------


def _texts_by_command() -> dict[tuple[str, ...], set[str]]:
    """Return the texts in the test functions that call each command, and in the constants that they name, options among them."""
    given: dict[tuple[str, ...], set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # A module without a text that begins with a dash has no option to give.
        if '"-' not in text:
            continue
        module = ast.parse(text)
        constants = {
            target.id: set(_texts(statement.value))
            for statement in module.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for function in ast.walk(module):
            if isinstance(function, ast.FunctionDef):
                parts = list(ast.walk(function))
                called = {command for part in parts if (command := _command_path(part, path))}
                if called:
                    names = {part.id for part in parts if isinstance(part, ast.Name)}
                    texts = set(_texts(function)).union(
                        *(constants[name] for name in names & constants.keys())
                    )
                    for command in called:
                        given.setdefault(command, set()).update(texts)
    return given


def _texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
            yield part.value.partition("=")[0]


def _command_path(node: ast.AST, path: Path) -> tuple[str, ...]:
    """Return the path of the command that a call, a tuple or a list begins with; () if there is none."""
    match node:
        case ast.Call(func=ast.Name(id="add_memory")):
            return ("memory", "add")
        case ast.Call(func=ast.Attribute(attr="start")) if path.name == "test_up.py":
            return ("up",)
        case ast.Call(args=members) | ast.Tuple(elts=members) | ast.List(elts=members):
            known = nodes()
            prefix: tuple[str, ...] = ()
            for member in members:
                name = member.value if isinstance(member, ast.Constant) else None
                if not isinstance(name, str) or (*prefix, name) not in known:
                    break
                prefix = (*prefix, name)
            return prefix if prefix in commands() else ()
        case _:
            return ()


def test_every_option_is_called_by_a_test() -> None:
    given = _texts_by_command()
    uncalled = [
        f"{' '.join(path)} {names[0]}"
        for path, command in commands().items()
        for names in options_of(command)
        if not CALLED_EVERYWHERE & set(names) and not given.get(path, set()) & set(names)
    ]
    assert uncalled == []
