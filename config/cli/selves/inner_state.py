"""Show the drives, mood, experiences and peers of an agent."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.markup import escape

from apps.agents.models import AgentState
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.selves.models import Experience, PeerModel
from apps.selves.services.inner_state import read_inner_state
from arbor.selves.drives import RULES, URGENT
from arbor.selves.emotions import describe_mood
from arbor.selves.trust import trust
from config.cli.kit.columns import OutputColumn, listing, number, table_of
from config.cli.kit.declarations import Output
from config.cli.kit.output import cut, format_relative_time
from config.cli.kit.tenancy import ChosenAgent, in_agent_transaction

#: The length of a drive's bar, in characters.
_BAR_LENGTH = 20
#: The characters of a sparkline, from low to high.
_SPARK_LEVELS = "▁▂▃▄▅▆▇█"

DRIVE_COLUMNS = (
    OutputColumn(head="drive", value=lambda drive: drive.name),
    OutputColumn(head="level", value=lambda drive: drive.level, cell=number),
    OutputColumn(head="", value=lambda drive: f"{'█' * round(drive.level * _BAR_LENGTH):<{_BAR_LENGTH}}"),
    OutputColumn(head="", value=lambda drive: "urgent" if drive.urgent else ""),
    OutputColumn(head="builds up while", value=lambda drive: RULES[drive.name].cause),
)
EXPERIENCE_COLUMNS = (
    OutputColumn("tick", "heartbeat"),
    OutputColumn("action", "action"),
    OutputColumn("outcome", "outcome"),
    OutputColumn("about", "about", cell=cut),
    OutputColumn("lesson", "lesson", cell=cut),
    OutputColumn("at"),
    OutputColumn("heartbeat_id"),
)
PEER_COLUMNS = (
    OutputColumn("name", "name"),
    OutputColumn("interactions", "judged meetings"),
    OutputColumn("successes", "successes"),
    OutputColumn("competence", "competence", cell=number),
    OutputColumn("reliability", "reliability", cell=number),
    OutputColumn("last_at", "last", cell=format_relative_time),
    OutputColumn("interests", "interests", cell=lambda interests: cut(", ".join(interests))),
    OutputColumn("agent_id", value=lambda peer: peer.peer_id),
)


@in_agent_transaction
def show_drives(agent: ChosenAgent) -> Output:
    """Show an agent's drives and their present levels."""
    inner = read_inner_state(agent_id=agent.id, now=datetime.now(UTC))
    value = {
        "agent": agent.name,
        "urgent_from": URGENT,
        "drives": [drive.model_dump(mode="json") for drive in inner.drives],
        "next_urgent_at": inner.next_urgent_at,
    }
    return Output(value, text=table_of(inner.drives, DRIVE_COLUMNS))


@in_agent_transaction
def show_mood(agent: ChosenAgent, *, last: int) -> Output:
    """Show an agent's mood, now and at its last heartbeats."""
    inner = read_inner_state(agent_id=agent.id, now=datetime.now(UTC))
    rows = Heartbeat.objects.filter(
        agent_id=agent.id, status=HeartbeatStatus.DONE, emotional_valence__isnull=False
    ).order_by("-started_at")
    latest = list(rows.values("number", "started_at", "emotional_valence", "arousal")[:last])
    latest.reverse()
    mood = inner.mood
    lines = [
        f"{escape(agent.name)} feels {describe_mood(mood.valence, mood.arousal)} now:"
        f" valence {mood.valence:+.2f} (-1 to 1), arousal {mood.arousal:.2f} (0 to 1)."
    ]
    if latest:
        lines += [
            f"valence  {_sparkline([heartbeat['emotional_valence'] or 0.0 for heartbeat in latest], -1.0)}",
            f"arousal  {_sparkline([heartbeat['arousal'] or 0.0 for heartbeat in latest], 0.0)}",
            f"heartbeats {latest[0]['number']} to {latest[-1]['number']}",
        ]
    else:
        lines.append("No heartbeat has recorded a mood yet.")
    value = {"agent": agent.name, "now": mood.model_dump(mode="json"), "heartbeats": latest}
    return Output(value, text="\n".join(lines))


@in_agent_transaction
def list_experiences(agent: ChosenAgent, *, last: int, failures: bool) -> Output:
    """List an agent's actions with their outcomes and lessons, the latest first."""
    experiences = Experience.objects.filter(agent_id=agent.id)
    if failures:
        experiences = experiences.filter(outcome="failure")
    nothing = "has no experiences of failures yet" if failures else "has no experiences yet"
    return listing(
        "experiences",
        list(experiences.order_by("-tick", "-id")[:last]),
        EXPERIENCE_COLUMNS,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} {nothing}.",
    )


@in_agent_transaction
def list_peers(agent: ChosenAgent) -> Output:
    """List an agent's peers and its present trust in each."""
    heartbeats = AgentState.objects.values_list("beats", flat=True).get(agent_id=agent.id)

    def present_trust(peer: PeerModel) -> float:
        return trust(
            successes=peer.successes,
            interactions=peer.interactions,
            tick=heartbeats,
            last_tick=peer.last_tick,
        )

    return listing(
        "peers",
        list(PeerModel.objects.filter(agent_id=agent.id).order_by("-last_at", "name")),
        (
            PEER_COLUMNS[0],
            OutputColumn("trust", "trust", value=present_trust, cell=number),
            *PEER_COLUMNS[1:],
        ),
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} has no model of a peer yet. A peer gets one by writing to the agent, or when a"
        " heartbeat of the agent rates a conversation with the peer.",
    )


def _sparkline(values: list[float], low: float) -> str:
    top = len(_SPARK_LEVELS) - 1
    return "".join(
        _SPARK_LEVELS[round((min(max(value, low), 1.0) - low) / (1.0 - low) * top)] for value in values
    )
