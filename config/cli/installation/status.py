"""Show the state of the fleet, from the database and the supervisor's state file."""

from __future__ import annotations

import time
from typing import Any

import click
from django.db import connections
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from apps.contacts.services.outbox import OutboxFigures
from apps.heartbeats.services.reports.status import fleet_status
from apps.memories.services.jobs import health as memory_health
from arbor.quotations import bounded, counted
from config.cli.kit.output import console, json_of
from config.environment import data_dir, server_urls
from config.supervisor.run_folder import RunFolder

REFRESHED_EVERY_S = 2.0
_GOOD = {"ready", "done"}
_COLORS = {"ok": "green", "warn": "yellow", "critical": "red"}


def status(watch: bool, as_json: bool) -> None:
    """Show heartbeats, agents, queues, workers, backlogs, maintenance and addresses."""
    if as_json:
        while True:
            click.echo(json_of(_read_state(), indent=None if watch else 2))
            if not watch:
                return
            time.sleep(REFRESHED_EVERY_S)
    if not watch:
        console().print(_render(_read_state()))
        return
    with Live(_render(_read_state()), console=console(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(REFRESHED_EVERY_S)
            live.update(_render(_read_state()), refresh=True)


def _read_state() -> dict[str, Any]:
    run = RunFolder(data_dir())
    state = run.state() if run.supervisor() is not None else {}
    urls = server_urls(data_dir())
    fleet = fleet_status().as_json()
    connections.close_all()
    return {
        **fleet,
        "urls": {name: url for name in ("web", "api", "flower") if (url := urls.get(f"{name}_url"))},
        "supervised": bool(state),
        "parts": state.get("parts", []),
    }


def _render(state: dict[str, Any]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right")
    table.add_column()
    heartbeats = state["heartbeats"]
    table.add_row(
        "heartbeats",
        _counts(heartbeats, "completed", "failed", "skipped") + f" in the last {heartbeats['window_h']:g} h",
    )
    table.add_row("now", _counts(heartbeats, "due", "queued", "running", "lost_leases") + _due(heartbeats))
    table.add_row("agents", _counts(state["agents"], *state["agents"]))
    table.add_row("noticed", _render_notices(state["notices"]))
    table.add_row("backlogs", _backlogs(state["backlogs"]))
    table.add_row("outbox", _outbox(OutboxFigures(**state["outbox"])))
    table.add_row("maintenance", _maintenance(state["maintenance"]))
    table.add_row("queues", _queues(state["queues"]))
    table.add_row("scheduler", Text("alive", "green") if state["scheduler_alive"] else Text("silent", "red"))
    table.add_row("model", state["model"])
    for provider, calls in state["provider_calls"].items():
        table.add_row(f"calls to {provider}", _provider_calls(calls))
    for name, url in state["urls"].items():
        table.add_row(name, url)
    if not state["supervised"]:
        return table
    parts = Table("part", "status", "process", "restarts", box=None, header_style="dim", padding=(0, 2))
    for part in state["parts"]:
        color = "green" if part["status"] in _GOOD else "yellow" if part["status"] != "crash loop" else "red"
        part_status = Text(part["status"], color)
        parts.add_row(part["name"], part_status, str(part["pid"] or ""), str(part["restarts"] or ""))
    return Group(table, Text(), parts)


def _render_notices(notices: dict[str, int]) -> Text:
    problems = [f"{count} with {kind.replace('_', ' ')}" for kind, count in notices.items() if count]
    return Text(f"agents: {', '.join(problems)}", "yellow") if problems else Text("nothing wrong", "green")


def _counts(figures: dict[str, int], *names: str) -> str:
    return ", ".join(f"{figures[name]} {name.replace('_', ' ')}" for name in names)


def _backlogs(figures: dict[str, int]) -> str:
    # Pending calls are all counted; the other counts are those of the memory's health.
    shown = {
        name: f"{count:,}" if name == "pending_calls" else bounded(count, memory_health.MAX_COUNTED)
        for name, count in figures.items()
    }
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in shown.items())


def _outbox(figures: OutboxFigures) -> Text:
    text = Text(figures.waiting_in_words)
    if figures.oldest_due_s:
        text.append(f", the oldest due for {figures.oldest_due_s:g} s")
    if figures.failed:
        text.append(f", {figures.failed_in_words}", "red")
        text.append("\n  → arbor contact outbox list --status failed", "dim")
    return text


def _maintenance(health: dict[str, Any]) -> Text:
    text = Text("keeps up", "green") if not health["findings"] else Text()
    for number, finding in enumerate(health["findings"]):
        text.append("\n" if number else "")
        text.append(finding["what"], _COLORS[finding["state"]])
        text.append(f"\n  → {finding['remedy']}", "dim")
    return text


def _provider_calls(calls: dict[str, int]) -> Text:
    text = Text(f"{calls['sent']} of {calls['limit']} under way")
    if calls["waiting"]:
        text.append(f", {calls['waiting']} waiting for a slot: heartbeats slow down", "yellow")
        text.append(
            "\n  → longer intervals, fewer agents, or ARBOR_PROVIDER_CALLS if the server can do more", "dim"
        )
    return text


def _due(heartbeats: dict[str, Any]) -> str:
    if heartbeats["due"]:
        return f"; the oldest due for {heartbeats['oldest_due_s']:g} s"
    if heartbeats["next_due_in_s"] is not None:
        return f"; the next in {heartbeats['next_due_in_s']:g} s"
    return ""


def _queues(listening: dict[str, int]) -> Text:
    text = Text()
    for name, count in listening.items():
        text.append(f"{name} ")
        text.append(f"{counted(count, 'worker')}  ", "" if count else "red")
    return text
