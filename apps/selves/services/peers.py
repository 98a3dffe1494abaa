"""Update an agent's models of its peers after meetings (seed 003, 3.6 and 10.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Case, F, IntegerField, Q, When
from django.db.models.functions import Lower

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import PeerModel
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from arbor.heartbeat.needs import Meeting
from arbor.heartbeat.replies.reply import PeerNote, PeerOutcome
from arbor.heartbeat.steps.inner_state import USER
from arbor.ids import read_id
from arbor.quotations import counted
from arbor.selves.trust import impression
from arbor.signals import Signal, SignalName, signal

NAME_LENGTH = 200
#: The most peers of an agent.
MAX_PEERS = 200
#: The most interests of a peer, the latest ones.
MAX_INTERESTS = 10
INTEREST_LENGTH = 100


@dataclass(frozen=True, kw_only=True)
class Dealings:
    """An agent's dealings with peers in a heartbeat."""

    #: Peers who wrote, with the agent's notes about them.
    met: Sequence[Meeting] = ()
    #: Notes about peers who did not write.
    others: Sequence[PeerNote] = ()
    #: When a user was last in touch.
    contact: datetime | None = None
    #: Returns when the named people last talked with the agent, by their casefolded names.
    talked_with: Callable[[Sequence[str]], Mapping[str, datetime]] = lambda _: {}


def record_meetings(
    *, agent_id: UUID, tick: int, now: datetime, dealings: Dealings
) -> list[tuple[PeerNote, str]]:
    """Update the agent's models of its peers after a heartbeat's dealings; without meetings or notes, no statement.

    A meeting counts as an interaction if the agent reports its outcome, and as a success if it went well; a message alone
    only makes its sender known. A note about a peer who did not write is a meeting only for a person who has talked with
    the agent since their last meeting; for other known peers it is an impression: competence, reliability, interests. Notes
    about strangers, further notes about a peer, and notes whose name several peers have are returned, each with the reason
    why it does not count. Agents are known by id, people by name: nobody inherits the model of somebody else of the same
    name. Two statements, and one for each meeting; two more for new peers.
    """
    if not dealings.met and not dealings.others:
        return []
    known = _KnownPeers(agent_id, dealings)
    refused: list[tuple[PeerNote, str]] = []
    is_added, with_note = False, set[UUID]()
    signals: list[Signal] = []
    pairs = [(known.of_meeting(meeting), meeting, True) for meeting in dealings.met]
    pairs += _noted_pairs(known, dealings, refused, wrote=pairs)
    for row, meeting, is_meeting in pairs:
        is_new = row._state.adding
        is_added |= is_new
        if meeting.note is not None and row.id in with_note:
            refused.append((meeting.note, f"another note of this heartbeat about {row.name} counts"))
            continue
        with_note |= {row.id} if meeting.note else set()
        _update_peer(row, meeting.note, is_meeting=is_meeting, tick=tick, now=now)
        row.save()
        signals.append(_signal_of(row, is_new=is_new))
    emit(*signals)
    if is_added:
        _delete_excess_peers(agent_id)
    return refused


def _signal_of(row: PeerModel, *, is_new: bool) -> Signal:
    if is_new:
        return signal(SignalName.RELATIONSHIP_CREATED, row.agent_id, peer=row.id)
    return signal(
        SignalName.RELATIONSHIP_UPDATED,
        row.agent_id,
        peer=row.id,
        competence=round(row.competence, 3),
        reliability=round(row.reliability, 3),
    )


type _Pair = tuple[PeerModel, Meeting, bool]


def _noted_pairs(
    known: _KnownPeers, dealings: Dealings, refused: list[tuple[PeerNote, str]], *, wrote: Sequence[_Pair]
) -> list[_Pair]:
    """Return the notes about peers who did not write, each with its model and whether it is a meeting.

    Notes that do not count are added to `refused`, each with the reason.
    """
    names = [note.peer.strip() for note in dealings.others]
    people = [name for name in names if not any(row.name.casefold() == name.casefold() for row, *_ in wrote)]
    talks = {**dealings.talked_with(people)} if people else {}
    if dealings.contact is not None:
        talks.setdefault(USER, dealings.contact)
    pairs: list[_Pair] = []
    for note, name in zip(dealings.others, names, strict=True):
        talked_at = talks.get(name.casefold())
        meeting = Meeting(name=name, peer_id="", note=note)
        found = known.named(name)
        if len(found) > 1 and talked_at is None:
            refused.append((note, f"several peers are called {name[:NAME_LENGTH]}; name one by its id"))
        elif talked_at is not None:
            row = known.of_meeting(meeting)
            pairs.append((row, meeting, row.last_at is None or talked_at > row.last_at))
        elif found:
            pairs.append((found[0], meeting, False))
        else:
            refused.append((note, f"{name[:NAME_LENGTH]} never wrote to you nor talked with you"))
    return pairs


class _KnownPeers:
    """The agent's locked models of the named peers: agents by id, people by name."""

    def __init__(self, agent_id: UUID, dealings: Dealings) -> None:
        """Read and lock the models. One statement."""
        self._agent_id = agent_id
        given = {meeting.name[:NAME_LENGTH] for meeting in dealings.met}
        given |= {note.peer.strip() for note in dealings.others}
        names = {name.casefold() for name in given}
        ids = {
            peer_id
            for text in (*names, *(meeting.peer_id for meeting in dealings.met))
            if (peer_id := read_id(text or None))
        }
        self._rows: list[PeerModel] = list(
            PeerModel.objects.select_for_update(of=("self",))
            .alias(folded=Lower("name"))
            # PostgreSQL and Python fold some letters, such as ß, in different ways, so that names are compared as given too.
            .filter(Q(folded__in=names) | Q(name__in=given) | Q(peer_id__in=ids), agent_id=agent_id)
            .order_by("id")
        )

    def of_meeting(self, meeting: Meeting) -> PeerModel:
        """Return the model of the peer of a meeting, a new one for an unknown peer."""
        name = meeting.name[:NAME_LENGTH]
        for row in self._rows:
            same = (
                str(row.peer_id) == meeting.peer_id
                if meeting.peer_id
                else _is_person(row) and row.name.casefold() == name.casefold()
            )
            if same:
                row.name = name if meeting.peer_id else row.name
                row.is_agent = bool(meeting.peer_id)
                return row
        new_peer = PeerModel(
            tenant_id=current_tenant(),
            agent_id=self._agent_id,
            name=name,
            peer_id=UUID(meeting.peer_id) if meeting.peer_id else None,
            is_agent=bool(meeting.peer_id),
        )
        self._rows.append(new_peer)
        return new_peer

    def named(self, text: str) -> list[PeerModel]:
        """Return the models of the peers that an id or a name means, without agents that are gone."""
        by_id = [row for row in self._rows if str(row.peer_id) == text.casefold()]
        return by_id or [
            row
            for row in self._rows
            if row.name.casefold() == text.casefold() and (row.peer_id is not None or _is_person(row))
        ]


def _is_person(row: PeerModel) -> bool:
    return row.peer_id is None and not row.is_agent


def _delete_excess_peers(agent_id: UUID) -> None:
    """Delete the peers above the limit, audited: first those without interactions, of these the longest silent."""
    has_interactions = Case(When(interactions__gt=0, then=1), default=0, output_field=IntegerField())
    rows = PeerModel.objects.filter(agent_id=agent_id).order_by(
        has_interactions.desc(), F("last_at").desc(nulls_last=True), "id"
    )
    excess = list(rows.values_list("id", "name")[MAX_PEERS:])
    if not excess:
        return
    PeerModel.objects.filter(agent_id=agent_id, id__in=[peer_id for peer_id, _ in excess]).delete()
    record(
        action=AuditAction.TRUNCATED,
        actor="system:peers",
        agent_id=agent_id,
        message=f"forgot {counted(len(excess), 'peer')}: an agent has models of at most {MAX_PEERS}",
        detail={"peers": [name for _, name in excess]},
    )


def _update_peer(
    row: PeerModel, note: PeerNote | None, *, is_meeting: bool, tick: int, now: datetime
) -> None:
    if is_meeting:
        row.last_at = now
    if note is None:
        return
    if is_meeting:
        row.interactions += 1
        row.successes += note.outcome is PeerOutcome.SUCCESS
        row.last_tick = tick
    row.competence = impression(row.competence, note.competence)
    row.reliability = impression(row.reliability, note.reliability)
    fresh = [text.strip()[:INTEREST_LENGTH] for text in note.interests if text.strip()]
    row.interests = [*dict.fromkeys([*reversed(fresh), *row.interests])][:MAX_INTERESTS]
