"""`arbor self drives`, `arbor self mood`, `arbor self experiences` and `arbor contact peers`: an agent's inner state, looked at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.markup import escape

from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.selves.models import Experience, PeerModel
from apps.selves.services.inner_state import read_inner_state
from arbor.selves.drives import RULES, URGENT
from arbor.selves.emotions import in_words
from arbor.selves.trust import trust
from config.cli.kit import Output
from config.cli.output import ago, cut, table
from config.cli.tenancy import ChosenAgent, in_agent_transaction

#: Characters of a drive's bar, and the steps of a sparkline.
_WIDTH = 20
_STEPS = "▁▂▃▄▅▆▇█"


@in_agent_transaction
def show_drives(agent: ChosenAgent) -> Output:
    """Show an agent's drives and their present levels."""
    inner = read_inner_state(agent_id=agent.id, now=datetime.now(UTC))
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
        "agent": agent.name,
        "urgent_from": URGENT,
        "drives": [each.model_dump(mode="json") for each in inner.drives],
        "next_urgent_at": inner.next_urgent_at,
    }
    return Output(told, people=people)


@in_agent_transaction
def show_mood(agent: ChosenAgent, *, last: int) -> Output:
    """Show an agent's mood, now and at its last heartbeats."""
    inner = read_inner_state(agent_id=agent.id, now=datetime.now(UTC))
    rows = Heartbeat.objects.filter(
        agent_id=agent.id, status=HeartbeatStatus.DONE, emotional_valence__isnull=False
    ).order_by("-started_at")
    latest = list(rows.values("number", "started_at", "emotional_valence", "arousal")[:last])
    latest.reverse()
    now = inner.mood
    lines = [
        f"{escape(agent.name)} feels {in_words(now.valence, now.arousal)} now:"
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
    told = {"agent": agent.name, "now": now.model_dump(mode="json"), "heartbeats": latest}
    return Output(told, people="\n".join(lines))


@in_agent_transaction
def list_experiences(agent: ChosenAgent, *, last: int, failures: bool) -> Output:
    """List an agent's actions with their outcomes and lessons, the latest first."""
    rows = Experience.objects.filter(agent_id=agent.id)
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
    empty = f"{escape(agent.name)} {nothing}."
    return Output({"agent": agent.name, "experiences": found}, people=people if found else empty)


@in_agent_transaction
def list_peers(agent: ChosenAgent) -> Output:
    """List an agent's peers and its present trust in each."""
    beats = read_inner_state(agent_id=agent.id, now=datetime.now(UTC)).beats
    rows = list(PeerModel.objects.filter(agent_id=agent.id).order_by("-last_at", "name"))
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
        f"{escape(agent.name)} has no model of anybody yet. Whoever writes to it gets one; somebody it talked with"
        " does once it says in a heartbeat how that went."
    )
    return Output({"agent": agent.name, "peers": found}, people=people if found else empty)


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
