"""Commit the effects of the heartbeats of a batch: one statement per table for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from uuid import UUID

import structlog

from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services import build_event
from apps.authority.models import CapabilityUse
from apps.calls.services.usage import write_levels
from apps.goals.services.backlogs import save_backlogs
from apps.goals.services.goals import link_memories
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.legs.agent_states import lock_states, write_agent_states
from apps.heartbeats.services.legs.approvals import write_approvals
from apps.heartbeats.services.legs.causes import outcome_relations
from apps.heartbeats.services.legs.checkpoints import end_unknown, finish, suspend
from apps.heartbeats.services.legs.fetching import Fetcher
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.heartbeats.services.legs.signals import effect_signals
from apps.knowledge.services.signal_reading import advance_positions
from apps.memories.services.recall.activation import record_recalls
from apps.memories.services.retention.buffer import buffer_for_agents
from apps.memories.services.store.provenance import ProvenanceRelation, count_outcomes, store_provenance
from apps.memories.services.store.snippets import store_agent_code
from apps.selves.models import Experience
from apps.signals.services.emission import write_signals
from apps.tenants.scope import current_tenant
from apps.tenants.statements import change, insert_rows
from arbor.authority.grants import CAPABILITY_PREFIX
from arbor.goals.plans import GoalLink
from arbor.heartbeat.effects import AuditNote, Effects
from arbor.heartbeat.state import HeartbeatState
from arbor.ids import uuid7
from arbor.memory.relations import Relation
from arbor.selves.experiences import ABOUT_LENGTH
from arbor.signals import Signal

log = structlog.get_logger(__name__)

# Assign percepts to the heartbeats that received them, and store the opened contents of sealed messages; a message that was
# not opened stays sealed.
_ASSIGN_PERCEPTS = """
UPDATE heartbeats_percept p SET heartbeat_id = r.heartbeat, content = coalesce(r.content, p.content),
    sealed = CASE WHEN r.content IS NULL THEN p.sealed END
FROM unnest(%(ids)s::uuid[], %(heartbeats)s::uuid[], %(contents)s::text[]) AS r (id, heartbeat, content)
WHERE p.tenant_id = %(tenant)s AND p.id = r.id AND p.id = ANY(%(ids)s::uuid[])
"""


def commit(
    members: Sequence[LeasedHeartbeat],
    fetcher: Fetcher,
    *,
    signals: list[Signal],
    charge: Callable[[], None],
) -> None:
    """Write the effects, the signals and the progress of heartbeats, in the open transaction; `signals` is emptied.

    Foreign keys fix the order: memories, new heartbeats, rows that refer to heartbeats. `charge` is called once, before the first
    progress is written, and charges the heartbeats for the time so far. Raises StaleLease when another worker has one of the leases.
    """
    effects = [(member, member.heartbeat.effects) for member in members if member.heartbeat is not None]
    _write_memories(effects, fetcher)
    states = lock_states(members)
    ran = (HeartbeatStatus.DONE, HeartbeatStatus.FAILED)
    # Heartbeats without a row that rows written below refer to.
    rowless = [
        member
        for member in members
        if member.step is None and (member.ended_as in ran or _has_percepts(member))
    ]
    if rowless:
        charge()
        _write_progress(rowless, signals)
    save_backlogs([effect_set.backlog for _, effect_set in effects if effect_set.backlog is not None])
    levels = _write_references(effects)
    signals += effect_signals(members, levels=levels)
    write_agent_states(members, states)
    if not rowless:
        charge()
    _write_progress([member for member in members if member not in rowless], signals)
    # The signals that `_write_progress` did not write.
    write_signals(signals)
    signals.clear()


def _has_percepts(member: LeasedHeartbeat) -> bool:
    return member.heartbeat is not None and bool(member.heartbeat.effects.received_percepts)


def _opened_contents(heartbeat: HeartbeatState) -> dict[UUID, str]:
    """Return the contents of the messages that the heartbeat opened, by the ids of their percepts."""
    return {
        UUID(percept.id): percept.content for percept in heartbeat.situation.percepts if percept.was_sealed
    }


def _write_progress(members: Sequence[LeasedHeartbeat], signals: list[Signal]) -> None:
    suspend([member for member in members if member.ended_as is None], signals)
    finish([(member, status) for member in members if (status := member.ended_as) is not None], signals)


def _write_memories(effects: Sequence[tuple[LeasedHeartbeat, Effects]], fetcher: Fetcher) -> None:
    fetcher.writer.write()
    relations = []
    for member, effect_set in effects:
        heartbeat = member.heartbeat
        assert heartbeat is not None
        pairs = [
            (made, source, Relation.DERIVED_FROM)
            for made, sources in effect_set.derived
            for source in sources
        ]
        if heartbeat.memory_id is not None:
            pairs += [(learned, heartbeat.memory_id, Relation.LEARNED_FROM) for learned in effect_set.learned]
        relations += [
            ProvenanceRelation(
                agent_id=heartbeat.agent_id,
                source_id=made,
                target_id=source,
                relation=relation,
                origin=heartbeat.source,
            )
            for made, source, relation in pairs
        ]
    relations += outcome_relations(
        [member.heartbeat for member, _ in effects if member.heartbeat is not None]
    )
    store_provenance(relations)
    count_outcomes(
        [
            (member.agent.id, procedure_id, success)
            for member, effect_set in effects
            for procedure_id, success in effect_set.practised
        ]
    )
    # Each recall counts once, so the first of each agent are written together, then the second.
    recalls = [[(member.agent.id, scores) for scores in effect_set.recalls] for member, effect_set in effects]
    for round_ in zip_longest(*recalls):
        record_recalls(dict(filter(None, round_)))


def _write_references(effects: Sequence[tuple[LeasedHeartbeat, Effects]]) -> set[UUID]:
    """Write the rows that refer to heartbeats; return the agents whose budget level has changed."""
    heartbeats = [
        (member.heartbeat, effect_set) for member, effect_set in effects if member.heartbeat is not None
    ]
    link_memories(
        [
            GoalLink(goal_id=UUID(goal_id), memory_id=heartbeat.memory_id, kind=kind)
            for heartbeat, effect_set in heartbeats
            if heartbeat.memory_id is not None
            for goal_id, kind in dict.fromkeys(effect_set.goal_links)
        ]
    )
    insert_rows([row for heartbeat, effect_set in heartbeats for row in _experiences(heartbeat, effect_set)])
    levels = write_levels(
        {
            heartbeat.agent_id: effect_set.level.after
            for heartbeat, effect_set in heartbeats
            if effect_set.level
        }
    )
    insert_rows(
        [row for heartbeat, effect_set in heartbeats for row in _audit(heartbeat, effect_set, levels)]
    )
    write_approvals(heartbeats)
    insert_rows([row for heartbeat, effect_set in heartbeats for row in _uses(heartbeat, effect_set)])
    percepts = [
        (percept_id, heartbeat.heartbeat_id, opened.get(percept_id))
        for heartbeat, effect_set in heartbeats
        if effect_set.received_percepts
        for opened in [_opened_contents(heartbeat)]
        for percept_id in effect_set.received_percepts
    ]
    if percepts:
        change(
            _ASSIGN_PERCEPTS,
            ids=[percept_id for percept_id, *_ in percepts],
            heartbeats=[heartbeat_id for _, heartbeat_id, _ in percepts],
            contents=[content for *_, content in percepts],
        )
    advance_positions([position for _, effect_set in heartbeats for position in effect_set.signal_positions])
    buffer_for_agents(
        {heartbeat.agent_id: effect_set.held for heartbeat, effect_set in heartbeats if effect_set.held}
    )
    for heartbeat, effect_set in heartbeats:
        store_agent_code(agent_id=heartbeat.agent_id, texts=effect_set.code, source=heartbeat.source)
    return levels


def _experiences(heartbeat: HeartbeatState, effects: Effects) -> Iterable[Experience]:
    now = datetime.now(UTC)
    for experience in effects.experiences:
        yield Experience(
            id=uuid7(),
            tenant_id=heartbeat.tenant_id,
            agent_id=heartbeat.agent_id,
            heartbeat_id=heartbeat.heartbeat_id,
            tick=heartbeat.situation.beat_number,
            action=experience.action,
            about=experience.about[:ABOUT_LENGTH],
            outcome=experience.outcome.value,
            lesson=experience.lesson,
            at=now,
        )


def _uses(heartbeat: HeartbeatState, effects: Effects) -> Iterable[CapabilityUse]:
    for capability_id in effects.capability_uses:
        yield CapabilityUse(
            id=uuid7(),
            tenant_id=heartbeat.tenant_id,
            capability_id=UUID(capability_id.removeprefix(CAPABILITY_PREFIX)),
            heartbeat_id=heartbeat.heartbeat_id,
            at=datetime.now(UTC),
        )


def _audit(heartbeat: HeartbeatState, effects: Effects, levels: set[UUID]) -> Iterable[AuditEvent]:
    notes: list[AuditNote] = list(effects.audit)
    level = effects.level
    if level is not None and heartbeat.agent_id in levels:
        notes.append(
            AuditNote(
                action=AuditAction.BUDGET_LEVEL,
                message=f"the day's budget: {level.before} → {level.after}, {level.left} left",
                detail={"from": level.before.value, "to": level.after.value},
            )
        )
    for note in notes:
        yield build_event(
            tenant_id=current_tenant(),
            action=AuditAction(note.action),
            actor=f"agent:{heartbeat.situation.public_id}",
            agent_id=heartbeat.agent_id,
            message=note.message,
            detail=note.detail,
        )


def fail(member: LeasedHeartbeat, error: Exception) -> None:
    """End a heartbeat as failed by an error, from its last checkpoint."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    end_unknown(member, reason=f"{type(error).__name__}: {error} {notes}".strip())
