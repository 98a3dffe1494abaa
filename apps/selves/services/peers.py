"""What an agent thinks of those it deals with, brought up to date by each meeting (seed 003, 3.6 and 10.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.agents.models import Agent
from apps.selves.models import PeerModel
from apps.tenants.scope import current_tenant
from arbor.heartbeat.reply import PeerNote, PeerOutcome
from arbor.selves.trust import impression

NAME_LENGTH = 200
#: Of what somebody cares for, the latest; ours.
MOST_INTERESTS = 10
INTEREST_LENGTH = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Meeting:
    """Somebody who was met in a beat: who it was, and what the agent says of it. `peer_id` is empty for a person."""

    name: str
    peer_id: str
    note: PeerNote | None


def note_meetings(*, agent_id: UUID, tick: int, now: datetime, meetings: Sequence[Meeting]) -> None:
    """Bring the agent's models of others up to date; without meetings, nothing is asked.

    A meeting counts as an interaction when the agent says how it went; one that went well as a success. That somebody
    merely wrote makes them known. Two statements, and one for each who was met; one more for those told of by name.
    """
    if not meetings:
        return
    named = {each.name[:NAME_LENGTH]: each for each in meetings}
    rows: dict[str, PeerModel] = {
        row.name: row
        for row in PeerModel.objects.select_for_update().filter(agent_id=agent_id, name__in=named)
    }
    unknown = [name for name, each in named.items() if name not in rows and not each.peer_id]
    agents = (
        dict(Agent.objects.filter(name__in=unknown).exclude(id=agent_id).values_list("name", "id"))
        if unknown
        else {}
    )
    for name, meeting in named.items():
        row = rows.get(name) or PeerModel(
            tenant_id=current_tenant(),
            agent_id=agent_id,
            name=name,
            peer_id=UUID(meeting.peer_id) if meeting.peer_id else agents.get(name),
        )
        _meet(row, meeting.note, tick=tick, now=now)
        row.save()


def _meet(row: PeerModel, note: PeerNote | None, *, tick: int, now: datetime) -> None:
    row.last_at = now
    if note is None:
        return
    row.interactions += 1
    row.successes += note.outcome is PeerOutcome.SUCCESS
    row.last_tick = tick
    row.competence = impression(row.competence, note.competence)
    row.reliability = impression(row.reliability, note.reliability)
    fresh = [text.strip()[:INTEREST_LENGTH] for text in note.interests if text.strip()]
    row.interests = [*dict.fromkeys([*reversed(fresh), *row.interests])][:MOST_INTERESTS]
