"""Update an agent's models of its peers after meetings (seed 003, 3.6 and 10.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Case, F, IntegerField, Q, When
from django.db.models.functions import Lower

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import PeerModel
from apps.tenants.scope import current_tenant
from arbor.heartbeat.needs import Meeting, Meetings
from arbor.heartbeat.reply import PeerNote, PeerOutcome
from arbor.selves.trust import impression

NAME_LENGTH = 200
#: The most peers of an agent.
MOST_PEERS = 200
#: The most interests of a peer, the latest ones.
MOST_INTERESTS = 10
INTEREST_LENGTH = 100


def record_meetings(
    *,
    agent_id: UUID,
    need: Meetings,
    now: datetime,
    talked_with: Callable[[Sequence[str]], Collection[str]] = lambda _: (),
) -> list[tuple[PeerNote, str]]:
    """Update the agent's models of its peers, in answer to a heartbeat's need; without meetings or notes, no statement.

    A meeting counts as an interaction if the agent reports its outcome, and as a success if it went well; a message alone
    only makes its sender known. `need.others` are notes about peers who did not write: they count for known peers and for
    partners of conversations, which `talked_with` selects from names, casefolded. Other notes are returned, each with the
    reason why it does not count. Names are compared without case; of several notes about a peer the first counts. Two
    statements, and one for each meeting; two more for new peers.
    """
    meetings, others = need.met, need.others
    if not meetings and not others:
        return []
    known = _known_peers(agent_id, meetings, others)
    known_keys = {*known, *(key for meeting in meetings for key in _keys(meeting))}
    unknown = [note.peer.strip() for note in others if note.peer.strip().casefold() not in known_keys]
    talked = set(talked_with(unknown)) if unknown else set()
    refused = []
    all_meetings = list(meetings)
    for note in others:
        name = note.peer.strip()
        if name.casefold() in known_keys or name.casefold() in talked:
            all_meetings.append(Meeting(name=name, peer_id="", note=note))
        else:
            refused.append((note, f"{name[:NAME_LENGTH]} never wrote to you nor talked with you"))
    added, with_note = 0, set[UUID]()
    for meeting in all_meetings:
        keys = _keys(meeting)
        row = next((known[key] for key in keys if key in known), None)
        if row is None:
            row, added = _new_peer(agent_id, meeting), added + 1
            known.update(dict.fromkeys(keys, row))
        if meeting.note is not None and row.id in with_note:
            refused.append((meeting.note, f"another note of this beat about {row.name} counts"))
            continue
        with_note |= {row.id} if meeting.note else set()
        _add_interaction(row, meeting.note, tick=need.tick, now=now)
        row.save()
    if added:
        _forget_the_oldest(agent_id)
    return refused


def _keys(meeting: Meeting) -> list[str]:
    """Return the keys of a peer: an agent's id, and the name, casefolded."""
    return [key.casefold() for key in (meeting.peer_id, meeting.name[:NAME_LENGTH]) if key]


def _known_peers(
    agent_id: UUID, meetings: Sequence[Meeting], others: Sequence[PeerNote]
) -> dict[str, PeerModel]:
    """Return the models of named peers by name and by agent id, casefolded."""
    names = {meeting.name[:NAME_LENGTH].casefold() for meeting in meetings} | {
        note.peer.strip().casefold() for note in others
    }
    ids = {
        peer_id for text in (*names, *(meeting.peer_id for meeting in meetings)) if (peer_id := _uuid(text))
    }
    rows = (
        PeerModel.objects.select_for_update(of=("self",))
        .alias(folded=Lower("name"))
        .filter(Q(folded__in=names) | Q(peer_id__in=ids), agent_id=agent_id)
    )
    known: dict[str, PeerModel] = {}
    for row in rows:
        known[row.name.casefold()] = row
        if row.peer_id:
            known[str(row.peer_id)] = row
    return known


def _new_peer(agent_id: UUID, meeting: Meeting) -> PeerModel:
    return PeerModel(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        name=meeting.name[:NAME_LENGTH],
        peer_id=UUID(meeting.peer_id) if meeting.peer_id else None,
    )


def _forget_the_oldest(agent_id: UUID) -> None:
    """Delete the peers above the limit, audited: first those without interactions, of these the longest silent."""
    has_interactions = Case(When(interactions__gt=0, then=1), default=0, output_field=IntegerField())
    rows = PeerModel.objects.filter(agent_id=agent_id).order_by(
        has_interactions.desc(), F("last_at").desc(nulls_last=True)
    )
    excess = list(rows.values_list("id", "name")[MOST_PEERS:])
    if not excess:
        return
    PeerModel.objects.filter(agent_id=agent_id, id__in=[peer_id for peer_id, _ in excess]).delete()
    record(
        action=AuditAction.TRUNCATED,
        actor="system:peers",
        agent_id=agent_id,
        message=f"forgot {len(excess)} peers: an agent has models of at most {MOST_PEERS}",
        detail={"peers": [name for _, name in excess]},
    )


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _add_interaction(row: PeerModel, note: PeerNote | None, *, tick: int, now: datetime) -> None:
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
