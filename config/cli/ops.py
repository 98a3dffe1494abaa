"""Inspect the pipeline of heartbeats; list and retry failed maintenance calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from apps.agents.models import Agent
from apps.console.pictures.pipeline import draw_pipeline
from apps.console.pictures.pipeline_svg import svg_of
from apps.maintenance.services.recovery import failed_maintenance_calls, retry_failed_maintenance_calls
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, PipelineInvalid
from arbor.heartbeat.dry_run import DryRun, Script, dry_run
from arbor.heartbeat.steps import HANDLERS
from arbor.pipeline.conditions import NODE_OUTCOMES, NodeOutcome
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.quotations import counted
from config.cli.kit.columns import OutputColumn, listing
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.output import print_note
from config.cli.kit.tenancy import ChosenAgent, actor, choose_agent, choose_tenant, with_optional_agent
from config.cli.kit.text_files import read_text
from config.cli.kit.values import index_by_name, json_or_text

#: The largest file of replies or of a graph, which is read at once.
_MAX_BYTES = 1_000_000


def validate(which: str | None, tenant_slug: str | None) -> Output:
    """Check a graph, and list all its faults."""
    try:
        graph = load_graph(_read_graph(which, tenant_slug), handlers=HANDLERS)
    except PipelineInvalid as error:
        faults = list(error.faults)
        text = "\n".join(["[red]not a pipeline[/red]", *(f"  {escape(fault)}" for fault in faults)])
        return Output({"valid": False, "faults": faults}, text=text, code=ExitCode.FAILED)
    edges = sum(len(leaving) for leaving in graph.edges.values())
    value = {"valid": True, "faults": [], "name": graph.name, "nodes": sorted(graph.nodes), "edges": edges}
    return Output(
        value,
        text=f"[green]valid[/green]: {escape(graph.name)}, {counted(len(graph.nodes), 'node')}, {counted(edges, 'edge')}",
    )


def dry_run_graph(
    which: str | None,
    mode: str,
    reply_file: Path | None,
    outcomes: tuple[str, ...],
    prefer: tuple[str, ...],
    assigned: tuple[str, ...],
    tenant_slug: str | None,
) -> Output:
    """Walk a graph with nodes that do nothing, and show the path."""
    context = {name: json_or_text(text) for name, text in _parse_pairs("--set", assigned).items()}
    if "mode" in context:
        raise click.UsageError("the mode is set by --mode, not by --set")
    graph = load_graph(_read_graph(which, tenant_slug), handlers=HANDLERS)
    script = Script(
        outcomes={
            _require_node(name, graph.nodes): _parse_outcomes(value)
            for name, value in _parse_pairs("--outcome", outcomes).items()
        },
        preferred={
            _require_node(name, graph.nodes): value
            for name, value in _parse_pairs("--prefer", prefer).items()
        },
        context={"mode": mode, **context},
        replies=_read_replies(reply_file) if reply_file else (),
    )
    result = dry_run(graph, script)
    code = ExitCode.DONE if result.exit else ExitCode.FAILED
    return Output(_as_json(result), text=_for_people(result), code=code)


def draw(which: str | None, output: Path | None, tenant_slug: str | None, as_json: bool) -> Output | None:
    """Draw a graph as SVG: into a file, or to standard output."""
    text = _read_graph(which, tenant_slug)
    graph = load_graph(text, handlers=HANDLERS)
    picture = draw_pipeline(text, visits={}, path=(), ended="")
    assert picture is not None, "a graph that was loaded can be drawn"
    svg = svg_of(picture, title=f"pipeline {graph.name}")
    value = {"file": str(output) if output else None, "width": picture.width, "height": picture.height}
    if output is None:
        if as_json:
            return Output({**value, "svg": svg}, text="")
        click.echo(svg, nl=False)
        return None
    try:
        output.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{output} cannot be written: {error.strerror}") from error
    if as_json:
        return Output(value, text="")
    print_note(f"wrote {output}, {picture.width} by {picture.height}")
    return None


def _read_graph(which: str | None, tenant_slug: str | None) -> str:
    """Return the DOT text of standard input (`-`), of a file, of an agent, or the default one; a file takes precedence over an agent."""
    text = heartbeat_text() if which is None else _read_graph_file(which)
    if text is not None:
        if tenant_slug is not None:
            raise click.UsageError("--tenant is that of an agent: name an AGENT, or leave it out")
        return text
    assert which is not None, "the default graph has a text"
    agent = choose_agent(which, tenant_slug)
    with tenant_transaction(agent.tenant_id):
        own: str = Agent.objects.values_list("pipeline", flat=True).get(id=agent.id)
    return own or heartbeat_text()


def _read_graph_file(which: str) -> str | None:
    """Return the text of standard input (`-`) or of a file; None where an agent is named."""
    if which == "-":
        return read_text(sys.stdin)
    path = Path(which)
    try:
        if path.is_file():
            return _read_bounded_text(path)
    except OSError as error:
        raise Invalid(f"the file {which} cannot be read: {error.strerror}") from error
    if path.suffix in (".dot", ".gv") or "/" in which:
        raise Invalid(f"there is no file {which}")
    return None


def _read_bounded_text(path: Path) -> str:
    if path.stat().st_size > _MAX_BYTES:
        raise Invalid(f"{path} must have at most {_MAX_BYTES:,} bytes, it has {path.stat().st_size:,}")
    return read_text(path)


def _read_replies(path: Path) -> list[str]:
    """Return the replies of a file: one object, a list of objects or texts, or a text as a model wrote it."""
    text = _read_bounded_text(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return [
        reply if isinstance(reply, str) else json.dumps(reply)
        for reply in (value if isinstance(value, list) else [value])
    ]


def _parse_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    pairs = []
    for pair in texts:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} takes NAME=VALUE, got {pair!r}")
        pairs.append((name, value))
    return index_by_name(pairs, option=option)


def _require_node(name: str, nodes: Iterable[str]) -> str:
    if name not in nodes:
        raise click.UsageError(f"the graph has no node {name!r}; its nodes: {', '.join(nodes)}")
    return name


def _parse_outcomes(value: str) -> list[NodeOutcome]:
    names = [name.strip() for name in value.split(",")]
    if not set(names) <= set(NODE_OUTCOMES):
        raise click.UsageError(f"an outcome is one of {', '.join(NODE_OUTCOMES)}, got {value!r}")
    return [NodeOutcome(name) for name in names]


def _as_json(dry_run: DryRun) -> dict[str, Any]:
    return {
        "path": [
            {"node": step.node, "handler": step.handler, "outcome": step.outcome, "notes": list(step.changed)}
            for step in dry_run.passed
        ],
        "outcome": dry_run.outcome,
        "exit": dry_run.exit,
        "fault": dry_run.fault,
        "not_passed": list(dry_run.unvisited),
    }


def _for_people(dry_run: DryRun) -> str:
    lines = []
    for number, step in enumerate(dry_run.passed, start=1):
        color = {"success": "green", "partial": "yellow"}.get(step.outcome, "red")
        lines.append(f"{number:>3}  {escape(step.node):<18} [{color}]{step.outcome}[/{color}]")
        lines += [f"       [dim]{escape(line)}[/dim]" for line in step.changed]
    end = f"exit {dry_run.exit}: {dry_run.outcome}" if dry_run.exit else dry_run.fault
    lines.append(f"     {escape(end)}")
    if dry_run.unvisited:
        lines.append(f"     [dim]not passed: {escape(', '.join(dry_run.unvisited))}[/dim]")
    return "\n".join(lines)


CALL_COLUMNS = (
    OutputColumn("ended_at", "failed", cell=lambda moment: f"{moment:%Y-%m-%d %H:%M}"),
    *(OutputColumn(key, key) for key in ("agent", "purpose", "about", "model", "reason")),
    OutputColumn("id"),
)


@with_optional_agent
def list_failed_calls(agent: ChosenAgent | None, *, retry: bool, tenant_slug: str | None) -> Output:
    """List and retry failed maintenance calls."""
    agent_id = agent.id if agent else None
    with tenant_transaction(choose_tenant(tenant_slug).id):
        failed = failed_maintenance_calls(agent_id=agent_id)
        retried = retry_failed_maintenance_calls(actor=actor(), agent_id=agent_id) if retry else 0
    output = listing(
        "failed", failed, CALL_COLUMNS, about={"retried": retried}, empty="No maintenance call has failed."
    )
    if failed and retry:
        return replace(
            output, text=f"{counted(retried, 'failed call is', 'failed calls are')} retried within minutes."
        )
    return output
