"""Show an agent's first hour, step by step, on the bundled conversation."""

from __future__ import annotations

from dataclasses import asdict
from textwrap import shorten
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from apps.agents.models import Agent
from apps.default_model import default_model
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.inline import fleet_is_live
from apps.memories.services.store.ingest import ingest
from apps.tenants.models import Tenant
from arbor.quotations import counted
from config.cli.agents.heartbeats import follow_heartbeat, run_heartbeat
from config.cli.agents.trace import goal_line, model_line, render
from config.cli.kit.output import console, show
from config.cli.kit.tenancy import ChosenAgent, actor
from config.cli.memory.ingestion import render_ingested
from config.cli.memory.recall import recalled_value, render_recalled
from config.demo.installation import CONVERSATION
from config.demo.story import (
    QUESTIONS,
    DemoMaintenance,
    DemoState,
    add_demo_goal,
    ask,
    demo_agent,
    demo_tenant,
    read_demo_maintenance,
    read_demo_state,
    recluster_memories,
    require_templates,
)

#: The number of heartbeats that the demo runs.
HEARTBEATS = 3
#: The longest thought or result that is shown; the trace shows the full text.
_MAX_LENGTH = 160


def demo(tenant_slug: str | None, keep: bool, timeout: float, as_json: bool) -> None:
    """Show an agent's first hour: create it, ingest a conversation, run three heartbeats, and compare."""
    require_templates()
    tenant = demo_tenant(tenant_slug)
    with demo_agent(tenant, keep=keep) as agent:
        story = _DemoStory(tenant, agent, quiet=as_json).run(timeout_s=timeout, retained=keep)
    show(story, as_json=as_json, text=_farewell(story))
    if any(heartbeat["status"] != HeartbeatStatus.DONE for heartbeat in story["beats"]):
        raise click.exceptions.Exit(1)


class _DemoStory:
    """Runs the steps in order, prints them, and collects their results."""

    def __init__(self, tenant: Tenant, agent: Agent, *, quiet: bool) -> None:
        self._row = agent
        self._agent = ChosenAgent(id=agent.id, name=agent.name, tenant_id=tenant.id, tenant_slug=tenant.slug)
        self._quiet = quiet
        self._steps = 0

    def run(self, *, timeout_s: float, retained: bool) -> dict[str, Any]:
        """Run the whole story; return its results for JSON."""
        before = self._create()
        read = self._ingest()
        self._add_goal()
        heartbeats = [self._heartbeat(number, timeout_s) for number in range(1, HEARTBEATS + 1)]
        self._print_heading(
            "The trace of the last heartbeat",
            "Every node, what it changed, what the model was asked and answered.",
        )
        self._print(render(heartbeats[-1]))
        recalled = self._recall()
        maintenance = self._run_maintenance()
        after = read_demo_state(self._agent)
        self._print_heading(
            "What changed", "Goals move only by a heartbeat's decision; each heartbeat is itself remembered."
        )
        self._print(_changes(before, after))
        return {
            "agent": {"name": self._agent.name, "id": str(self._agent.id), "public_id": self._row.public_id},
            "tenant": self._agent.tenant_slug,
            "model": default_model(),
            "kept": retained,
            "ingested": read,
            "beats": heartbeats,
            "recalled": recalled,
            "grown": maintenance,
            "before": asdict(before),
            "after": asdict(after),
        }

    def _create(self) -> DemoState:
        self._print_heading(
            "A new agent", "Created whole or not at all: a key pair, a character, goals, first memories."
        )
        self._print(
            f"  [bold]{self._agent.name}[/bold] of {self._agent.tenant_slug}, from template {self._row.template_name}"
            f" {escape(self._row.template_version)}\n  {self._row.public_id}\n  {model_line(default_model())}"
        )
        return read_demo_state(self._agent)

    def _ingest(self) -> dict[str, Any]:
        self._print_heading(
            "A conversation", "Each turn becomes a memory, found by its words and by its meaning."
        )
        read = ingest(
            tenant_id=self._agent.tenant_id, agent_id=self._agent.id, path=CONVERSATION, actor=actor()
        )
        self._print(render_ingested(read, file=CONVERSATION.name, agent=self._agent.name))
        return {"file": CONVERSATION.name, "stored": read.stored, "sessions": read.sessions, "bad": read.bad}

    def _add_goal(self) -> None:
        self._print_heading("A goal", "A person gives the goal; the agent decides how to reach it.")
        goal = add_demo_goal(self._agent)
        self._print(f"  [bold]{goal.title}[/bold] ({goal.state}): {goal.description}")

    def _heartbeat(self, number: int, timeout_s: float) -> dict[str, Any]:
        live = fleet_is_live()
        if number == 1:
            where = "by the workers that run" if live else "in this process, because no workers run"
            self._print_heading(
                f"{HEARTBEATS} heartbeats",
                f"Observe, recall, decide, act within the energy, record; {where}.",
            )
        trace = (
            follow_heartbeat(self._agent, timeout_s=timeout_s, quiet=True)
            if live
            else run_heartbeat(self._agent)
        )
        self._print(_heartbeat_line(trace))
        return trace

    def _recall(self) -> dict[str, Any]:
        self._print_heading(
            "Recall", "Each result shows the components of its score; a person's recall changes nothing."
        )
        recalled = {}
        for question in QUESTIONS:
            memories = ask(self._agent, question)
            self._print(Group(Text(f"“{question}”", style="italic"), render_recalled(memories), Text()))
            recalled[question] = [recalled_value(memory) for memory in memories]
        return recalled

    def _run_maintenance(self) -> dict[str, Any]:
        self._print_heading(
            "What maintenance makes of it",
            "Episodes form as they happen, clusters in a periodic job; maintenance decides nothing.",
        )
        recluster_memories(self._agent)
        maintained = read_demo_maintenance(self._agent)
        self._print(_maintenance_lines(maintained))
        return asdict(maintained)

    def _print_heading(self, title: str, meaning: str) -> None:
        self._steps += 1
        self._print(f"\n[bold cyan]{self._steps} · {title}[/bold cyan]\n[dim]{meaning}[/dim]")

    def _print(self, what: RenderableType) -> None:
        if not self._quiet:
            console().print(what)


def _heartbeat_line(trace: dict[str, Any]) -> RenderableType:
    if trace["status"] != HeartbeatStatus.DONE:
        return f"  heartbeat {trace['number']}: [red]{trace['status']}[/red], {escape(trace['reason'])}"
    energy = f"energy {trace['energy_start']:g} → {trace['energy_end']:g}"
    head = f"  heartbeat {trace['number']}: [green]{trace['mode'].replace('_', ' ')}[/green], {energy},"
    lines = [("thought", trace["reasoning"])]
    lines += [(action["action"], action.get("summary") or action["reason"]) for action in trace["actions"]]
    lines += [("goal", goal_line(change)) for change in trace["goal_changes"]]
    story = _grid()
    for name, text in lines:
        story.add_row(name, Text(shorten(text, _MAX_LENGTH, placeholder=" …")))
    return Group(f"{head} {trace['own_ms']:.0f} ms of its own", story)


def _grid() -> Table:
    """Return an empty table of names and texts."""
    grid = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1))
    grid.add_column(style="dim", min_width=12, justify="right")
    grid.add_column(overflow="fold")
    return grid


def _maintenance_lines(maintenance: DemoMaintenance) -> RenderableType:
    story = _grid()
    story.add_row(
        "episodes",
        Text(f"{maintenance.episodes}, the longest of {counted(maintenance.longest, 'memory', 'memories')}"),
    )
    for cluster in maintenance.clusters:
        clearest = (
            f"; the clearest: {shorten(cluster.clearest, _MAX_LENGTH, placeholder=' …')}"
            if cluster.clearest
            else ""
        )
        story.add_row(
            "cluster", Text(f"{cluster.name}, {counted(cluster.size, 'memory', 'memories')}{clearest}")
        )
    return story


def _changes(before: DemoState, after: DemoState) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2))
    for head in ("", "before", "after"):
        table.add_column(head, overflow="fold")
    rows: list[tuple[str, object, object]] = [
        ("energy", f"{before.energy:g}", f"{after.energy:g}"),
        ("heartbeats", before.beats, after.beats),
        ("relations between memories", before.edges, after.edges),
    ]
    for kind in {**before.memories, **after.memories}:
        rows.append((f"{kind} memories", before.memories.get(kind, 0), after.memories.get(kind, 0)))
    for title in {**before.goals, **after.goals}:
        rows.append((f"goal: {title}", before.goals.get(title, "–"), after.goals.get(title, "–")))
    for name, before_value, after_value in rows:
        table.add_row(
            Text(name),
            str(before_value),
            Text(str(after_value), style="green" if before_value != after_value else ""),
        )
    return table


def _farewell(story: dict[str, Any]) -> str:
    name, slug = story["agent"]["name"], story["tenant"]
    if not story["kept"]:
        return f"\n{name} is deleted again with all its data; `arbor demo --keep` keeps it."
    return (
        f"\n{name} stays. Look further:\n"
        f"  [bold]arbor agent trace {name} --tenant {slug}[/bold]\n"
        f'  [bold]arbor recall {name} "What did Ines Arrow write?" --tenant {slug}[/bold]\n'
        f'  [bold]arbor agent tell {name} "Who is Aurelio?" --tenant {slug}[/bold]\n'
        f"  [bold]arbor agent destroy {name} --tenant {slug}[/bold]"
    )
