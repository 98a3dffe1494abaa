"""`arbor heartbeat replay`: a recorded heartbeat decided once more."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.replay import Found, OtherMind, ask_other, read_beat
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.replay import Replay
from arbor.heartbeat.replay import replay as replay_beat
from config.cli.memory.finding import find_in_tenant, tenant_of_row
from config.cli.output import json_option, show, table
from config.cli.tenancy import tenant_option


@click.group()
def heartbeat() -> None:
    """Heartbeats on record."""


@heartbeat.command("replay")
@click.argument("heartbeat_id", metavar="ID")
@click.option("--model", help="Ask this model too, as provider/model, and show what it would have done.")
@tenant_option
@json_option
def replay(heartbeat_id: str, model: str | None, tenant_slug: str | None, as_json: bool) -> None:
    """Build a heartbeat's prompt anew, read its replies and decide again; tell what differs. It writes nothing.

    ID is an id, or the last characters of one; `arbor agent trace NAME` shows them. Exit code 0 when all is the same,
    1 when something differs.

    \b
    Example: arbor heartbeat replay 3f2a9c01 --model ollama/qwen3
    """
    tenant_id = tenant_of_row(Heartbeat, heartbeat_id, tenant_slug)
    with tenant_transaction(tenant_id):
        chosen = find_in_tenant(Heartbeat, heartbeat_id)
    found = read_beat(heartbeat_id=chosen, tenant_id=tenant_id)
    made = replay_beat(found.beat)
    other = ask_other(found, model=model) if model else None
    show(_as_json(found, made, other), as_json=as_json, people=_render(found, made, other))
    if not made.is_same:
        raise click.exceptions.Exit(1)


def _as_json(found: Found, made: Replay, other: OtherMind | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": str(found.id),
        "agent": found.agent,
        "number": found.number,
        "model": found.model,
        "same": made.is_same,
        "differences": [
            {"where": each.where, "recorded": each.recorded, "replayed": each.replayed}
            for each in made.differences
        ],
        "notes": list(made.notes),
        "decisions": [each.model_dump(mode="json") for each in made.decisions],
    }
    if other is not None:
        told["other"] = {
            "model": other.model,
            "decisions": [each.model_dump(mode="json") for each in other.decisions],
            "input_tokens": other.reply.usage.input_tokens,
            "output_tokens": other.reply.usage.output_tokens,
        }
    return told


def _render(found: Found, made: Replay, other: OtherMind | None) -> RenderableType:
    head = f"heartbeat {found.number} of [bold]{escape(found.agent)}[/bold], decided again: "
    count = len(made.differences)
    verdict = (
        "[green]the same[/green]" if made.is_same else f"[red]{count} thing{'s' * (count > 1)} differ[/red]"
    )
    parts: list[RenderableType] = [Text.from_markup(head + verdict)]
    for each in made.differences:
        parts += [Text(f"\n{each.where}", "bold"), _coloured(each.diff)]
    parts += [Text(f"· {note}", "dim") for note in made.notes]
    parts.append(Text())
    parts.append(_decisions(f"{found.model} decided", made.decisions))
    if other is not None:
        parts += [Text(), _decisions(f"{other.model} would have decided", other.decisions)]
    return Group(*parts)


def _coloured(diff: str) -> Text:
    text = Text()
    for line in diff.splitlines():
        text.append(f"  {line}\n", {"-": "red", "+": "green"}.get(line[:1], "dim"))
    return text


def _decisions(title: str, decisions: Any) -> RenderableType:
    if not decisions:
        return Text(f"{title}: nothing")
    return table(("action", "verdict", "params", "why not"), (_row(each) for each in decisions), title=title)


def _row(decision: Decision) -> tuple[object, ...]:
    params = ", ".join(f"{name}={value}" for name, value in decision.params.items())
    return decision.action, decision.verdict.value, params[:120], decision.reason
