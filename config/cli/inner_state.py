"""`arbor drives`, `arbor mood`, `arbor experiences` and `arbor peers`: an agent's inner state, looked at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
from rich.markup import escape

from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.selves.models import Experience, PeerModel
from apps.selves.services.inner_state import read_inner_state
from apps.tenants.scope import tenant_transaction
from arbor.selves.drives import RULES, URGENT
from arbor.selves.emotions import in_words
from arbor.selves.trust import trust
from config.cli.memory.listing import cut
from config.cli.output import ago, json_option, show, table
from config.cli.tenancy import choose_agent, tenant_option

#: Characters of a drive's bar, and the steps of a sparkline.
_WIDTH = 20
_STEPS = "▁▂▃▄▅▆▇█"


@click.command("drives")
@click.argument("agent")
@tenant_option
@json_option
def drives(agent: str, tenant_slug: str | None, as_json: bool) -> None:
    """Show what moves an agent from within, and how high each drive stands now.

    \b
    Example: arbor drives Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        inner = read_inner_state(agent_id=chosen.id, now=datetime.now(UTC))
    people: Any = table(
        ("drive", "level", "", "", "builds up while"),
        (
            (
                each.name,
                f"{each.level:.2f}",
                f"{'█' * round(each.level * _WIDTH):<{_WIDTH}}",
                "urgent" if each.urgent else "",
                RULES[each.name].cause,
            )
            for each in inner.drives
        ),
    )
    told = {
        "agent": chosen.name,
        "urgent_from": URGENT,
        "drives": [each.model_dump(mode="json") for each in inner.drives],
        "next_urgent_at": inner.next_urgent_at,
    }
    show(told, as_json=as_json, people=people)


@click.command("mood")
@click.argument("agent")
@click.option(
    "--last", type=click.IntRange(1, 500), default=40, show_default=True, help="So many heartbeats."
)
@tenant_option
@json_option
def mood(agent: str, last: int, tenant_slug: str | None, as_json: bool) -> None:
    """Show how an agent feels now, and how it felt at its last heartbeats.

    \b
    Example: arbor mood Vega --last 100
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        inner = read_inner_state(agent_id=chosen.id, now=datetime.now(UTC))
        rows = Heartbeat.objects.filter(
            agent_id=chosen.id, status=HeartbeatStatus.DONE, emotional_valence__isnull=False
        ).order_by("-started_at")
        latest = list(rows.values("number", "started_at", "emotional_valence", "arousal")[:last])
    latest.reverse()
    now = inner.mood
    lines = [
        f"{escape(chosen.name)} feels {in_words(now.valence, now.arousal)} now:"
        f" valence {now.valence:+.2f} (-1 to 1), arousal {now.arousal:.2f} (0 to 1)."
    ]
    if latest:
        lines += [
            f"valence  {_spark([each['emotional_valence'] for each in latest], -1.0)}",
            f"arousal  {_spark([each['arousal'] or 0.0 for each in latest], 0.0)}",
            f"heartbeats {latest[0]['number']} to {latest[-1]['number']}",
        ]
    else:
        lines.append("No heartbeat has ended yet.")
    told = {"agent": chosen.name, "now": now.model_dump(mode="json"), "heartbeats": latest}
    show(told, as_json=as_json, people="\n".join(lines))


@click.command("experiences")
@click.argument("agent")
@click.option("--last", type=click.IntRange(1, 1000), default=30, show_default=True, help="So many.")
@click.option("--failures", is_flag=True, help="Only what failed.")
@tenant_option
@json_option
def experiences(agent: str, last: int, failures: bool, tenant_slug: str | None, as_json: bool) -> None:
    """List what an agent did, how it turned out and what that taught it, the latest first.

    \b
    Example: arbor experiences Vega --failures
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        rows = Experience.objects.filter(agent_id=chosen.id)
        if failures:
            rows = rows.filter(outcome="failure")
        fields = ("tick", "action", "about", "outcome", "lesson", "at", "heartbeat_id")
        found = list(rows.order_by("-tick", "-id").values(*fields)[:last])
    people: Any = table(
        ("beat", "action", "outcome", "about", "lesson"),
        (
            (each["tick"], each["action"], each["outcome"], cut(each["about"]), cut(each["lesson"]))
            for each in found
        ),
    )
    nothing = "has had nothing fail yet" if failures else "has done nothing yet that cost energy"
    empty = f"{escape(chosen.name)} {nothing}."
    show({"agent": chosen.name, "experiences": found}, as_json=as_json, people=people if found else empty)


@click.command("peers")
@click.argument("agent")
@tenant_option
@json_option
def peers(agent: str, tenant_slug: str | None, as_json: bool) -> None:
    """List whom an agent deals with, and how far it trusts each of them now.

    Whoever writes to it is here. A meeting counts once the agent says in a heartbeat how it went; so does a conversation.

    \b
    Example: arbor peers Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        beats = read_inner_state(agent_id=chosen.id, now=datetime.now(UTC)).beats
        rows = list(PeerModel.objects.filter(agent_id=chosen.id).order_by("-last_at", "name"))
    found = [_peer(row, beats) for row in rows]
    people: Any = table(
        ("name", "trust", "meetings judged", "went well", "competence", "reliability", "last", "cares for"),
        (
            (
                each["name"],
                f"{each['trust']:.2f}",
                each["interactions"],
                each["successes"],
                f"{each['competence']:.2f}",
                f"{each['reliability']:.2f}",
                ago(each["last_at"]),
                cut(", ".join(each["interests"])),
            )
            for each in found
        ),
    )
    empty = (
        f"{escape(chosen.name)} has no model of anybody yet. Whoever writes to it gets one; somebody it talked with"
        " does once it says in a heartbeat how that went."
    )
    show({"agent": chosen.name, "peers": found}, as_json=as_json, people=people if found else empty)


def _peer(row: PeerModel, beats: int) -> dict[str, Any]:
    return {
        "name": row.name,
        "agent_id": row.peer_id,
        "trust": trust(
            successes=row.successes, interactions=row.interactions, tick=beats, last_tick=row.last_tick
        ),
        "interactions": row.interactions,
        "successes": row.successes,
        "competence": row.competence,
        "reliability": row.reliability,
        "interests": row.interests,
        "last_at": row.last_at,
    }


def _spark(values: list[float], low: float) -> str:
    top = len(_STEPS) - 1
    return "".join(_STEPS[round((min(max(each, low), 1.0) - low) / (1.0 - low) * top)] for each in values)
