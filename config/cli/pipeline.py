"""`arbor pipeline`: the graph that heartbeats walk, checked, rehearsed and drawn."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from apps.agents.models import Agent
from apps.console.pictures.pipeline import draw_pipeline
from apps.console.pictures.pipeline_svg import svg_of
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, PipelineInvalid
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.rehearsal import Rehearsal, Script, rehearse
from arbor.heartbeat.steps.registry import HANDLERS
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.pipeline.outcomes import NODE_OUTCOMES, Outcome
from config.cli.main import ExitCode
from config.cli.output import json_option, note, show
from config.cli.tenancy import choose_agent, tenant_option

#: A file of replies is read whole.
_MAX_BYTES = 1_000_000

_which = click.argument("which", metavar="[FILE|AGENT]", default="")


@click.group()
def pipeline() -> None:
    """The graph that heartbeats walk.

    FILE is a DOT file, `-` standard input; AGENT an agent, which may have a graph of its own. Without either it is the
    graph of every agent that has none.
    """


@pipeline.command()
@_which
@tenant_option
@json_option
def validate(which: str, tenant_slug: str | None, as_json: bool) -> int:
    """Check a graph, and list all that is wrong with it. Exits with 1 when something is.

    \b
    Example: arbor pipeline validate my.dot
    """
    try:
        graph = load_graph(_text(which, tenant_slug), handlers=HANDLERS)
    except PipelineInvalid as error:
        faults = list(error.faults)
        people = "\n".join(["[red]not a pipeline[/red]", *(f"  {escape(fault)}" for fault in faults)])
        show({"valid": False, "faults": faults}, people=people, as_json=as_json)
        return ExitCode.FAILED
    edges = sum(len(each) for each in graph.edges.values())
    found = {"valid": True, "faults": [], "name": graph.name, "nodes": sorted(graph.nodes), "edges": edges}
    show(
        found,
        people=f"[green]valid[/green]: {escape(graph.name)}, {len(graph.nodes)} nodes, {edges} edges",
        as_json=as_json,
    )
    return ExitCode.DONE


@pipeline.command()
@_which
@click.option(
    "--dry",
    is_flag=True,
    required=True,
    expose_value=False,
    help="Nothing is asked, done or written: the only way there is.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.REFLECTION.value,
    help="The beat's mode.",
)
@click.option(
    "--reply", "reply_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="REPLY.json",
    help="What the model answers; a list of replies is one for each turn or try.",
)  # fmt: skip
@click.option(
    "--outcome", "outcomes", multiple=True, metavar="NODE=OUTCOME",
    help="How a node ends: success, failure, retry or partial; several, by commas, for its visits.",
)  # fmt: skip
@click.option(
    "--prefer", multiple=True, metavar="NODE=LABEL", help="The label of the edge that a node prefers."
)
@click.option("--set", "assigned", multiple=True, metavar="NAME=VALUE", help="What stands in the context.")
@tenant_option
@json_option
def run(
    which: str,
    mode: str,
    reply_file: Path | None,
    outcomes: tuple[str, ...],
    prefer: tuple[str, ...],
    assigned: tuple[str, ...],
    tenant_slug: str | None,
    as_json: bool,
) -> int:
    """Walk a graph with nodes that do nothing, and show the way taken. Exits with 1 when it reaches no exit.

    \b
    Examples:
      arbor pipeline run --dry --mode consolidation
      arbor pipeline run --dry my.dot --reply reply.json --outcome act=failure
    """
    graph = load_graph(_text(which, tenant_slug), handlers=HANDLERS)
    script = Script(
        outcomes={
            _node(name, graph.nodes): _outcomes(value) for name, value in _pairs("--outcome", outcomes)
        },
        preferred={_node(name, graph.nodes): value for name, value in _pairs("--prefer", prefer)},
        context={"mode": mode, **dict(_pairs("--set", assigned))},
        replies=_replies(reply_file) if reply_file else (),
    )
    rehearsal = rehearse(graph, script)
    show(_as_json(rehearsal), people=_for_people(rehearsal), as_json=as_json)
    return ExitCode.DONE if rehearsal.exit else ExitCode.FAILED


@pipeline.command()
@_which
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg", help="Where to."
)
@tenant_option
@json_option
def viz(which: str, output: Path | None, tenant_slug: str | None, as_json: bool) -> int:
    """Draw a graph as SVG: into a file, or to standard output.

    \b
    Example: arbor pipeline viz -o heartbeat.svg
    """
    text = _text(which, tenant_slug)
    graph = load_graph(text, handlers=HANDLERS)
    picture = draw_pipeline(text, passed={}, walk=(), ended="")
    assert picture is not None, "a graph that was loaded can be drawn"
    svg = svg_of(picture, title=f"pipeline {graph.name}")
    if output is None and not as_json:
        click.echo(svg, nl=False)
        return ExitCode.DONE
    if output is not None:
        try:
            output.write_text(svg, encoding="utf-8")
        except OSError as error:
            raise Invalid(f"{output} cannot be written: {error.strerror}") from error
    drawn = {"file": str(output) if output else None, "width": picture.width, "height": picture.height}
    if output is None:
        show({**drawn, "svg": svg}, people="", as_json=True)
    elif as_json:
        show(drawn, people="", as_json=True)
    else:
        note(f"wrote {output}, {picture.width} by {picture.height}")
    return ExitCode.DONE


def _text(which: str, tenant_slug: str | None) -> str:
    """Return the DOT text that is meant. A name that is a file is that file."""
    if not which:
        return heartbeat_text()
    if which == "-":
        return sys.stdin.read()
    path = Path(which)
    if path.is_file():
        return _read(path)
    if path.suffix in (".dot", ".gv") or "/" in which:
        raise Invalid(f"there is no file {which}")
    agent = choose_agent(which, tenant_slug)
    with tenant_transaction(agent.tenant_id):
        own: str = Agent.objects.values_list("pipeline", flat=True).get(id=agent.id)
    return own or heartbeat_text()


def _read(path: Path) -> str:
    if path.stat().st_size > _MAX_BYTES:
        raise Invalid(f"{path} must have at most {_MAX_BYTES:,} bytes, it has {path.stat().st_size:,}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} must be text in UTF-8") from error


def _replies(path: Path) -> list[str]:
    """Return the replies of a file: one object, a list of objects or texts, or a text as a model wrote it."""
    text = _read(path)
    try:
        value = json.loads(text)
    except ValueError:
        return [text]
    return [
        each if isinstance(each, str) else json.dumps(each)
        for each in (value if isinstance(value, list) else [value])
    ]


def _pairs(option: str, written: Iterable[str]) -> list[tuple[str, str]]:
    pairs = []
    for each in written:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} takes NAME=VALUE, got {each!r}")
        pairs.append((name, value))
    return pairs


def _node(name: str, nodes: Iterable[str]) -> str:
    if name not in nodes:
        raise click.UsageError(f"the graph has no node {name!r}; its nodes: {', '.join(nodes)}")
    return name


def _outcomes(value: str) -> list[Outcome]:
    names = [each.strip() for each in value.split(",")]
    if not set(names) <= set(NODE_OUTCOMES):
        raise click.UsageError(f"an outcome is one of {', '.join(NODE_OUTCOMES)}, got {value!r}")
    return [Outcome(name) for name in names]


def _as_json(rehearsal: Rehearsal) -> dict[str, Any]:
    return {
        "path": [
            {"node": each.node, "handler": each.handler, "outcome": each.outcome, "notes": list(each.notes)}
            for each in rehearsal.passed
        ],
        "outcome": rehearsal.outcome,
        "exit": rehearsal.exit,
        "fault": rehearsal.fault,
        "not_passed": list(rehearsal.unvisited),
    }


def _for_people(rehearsal: Rehearsal) -> str:
    lines = []
    for place, each in enumerate(rehearsal.passed, start=1):
        colour = {"success": "green", "partial": "yellow"}.get(each.outcome, "red")
        lines.append(f"{place:>3}  {escape(each.node):<18} [{colour}]{each.outcome}[/{colour}]")
        lines += [f"       [dim]{escape(line)}[/dim]" for line in each.notes]
    end = f"exit {rehearsal.exit}: {rehearsal.outcome}" if rehearsal.exit else rehearsal.fault
    lines.append(f"     {escape(end)}")
    if rehearsal.unvisited:
        lines.append(f"     [dim]not passed: {escape(', '.join(rehearsal.unvisited))}[/dim]")
    return "\n".join(lines)
