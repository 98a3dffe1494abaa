"""Commit the effects of the heartbeats of a batch: one statement per table for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from uuid import UUID

import structlog

from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services import build_event
from apps.authority.models import ActionApproval, CapabilityUse
from apps.calls.services.usage import write_levels
from apps.goals.services.backlogs import save_backlogs
from apps.goals.services.goals import link_memories
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.legs.agent_states import lock_states, write_agent_states
from apps.heartbeats.services.legs.causes import outcome_relations
from apps.heartbeats.services.legs.checkpoints import end_unloaded, finish, suspend
from apps.heartbeats.services.legs.fetching import Fetcher
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.heartbeats.services.legs.signals import effect_signals, end_signals, with_heartbeats
from apps.knowledge.services.signal_reading import advance_positions
from apps.memories.services.recall.activation import record_recalls
from apps.memories.services.retention.buffer import add_to_buffers
from apps.memories.services.store.provenance import ProvenanceRelation, count_outcomes, store_provenance
from apps.memories.services.store.snippets import store_agent_code
from apps.selves.models import Experience
from apps.signals.services.emission import write_signals
from apps.tenants.statements import change, insert_rows
from arbor.authority.approvals import ApprovalStatus
from arbor.authority.grants import CAPABILITY_PREFIX
from arbor.errors import ApprovalLost
from arbor.goals.plans import GoalLink
from arbor.heartbeat.effects import AuditNote
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
# The count of updated rows shows that each request is used once: one that was withdrawn, used or has expired is not updated. A
# pending request is used where a rule has come to allow its action.
_USE_APPROVALS = """
UPDATE authority_actionapproval r SET status = 'executed', executed_by = used.heartbeat, executed_at = now()
FROM unnest(%(ids)s::uuid[], %(heartbeats)s::uuid[]) AS used (id, heartbeat)
WHERE r.tenant_id = %(tenant)s AND r.id = used.id AND r.id = ANY(%(ids)s::uuid[])
    AND r.status IN ('approved', 'pending') AND r.expires_at > now()
"""
_WITHDRAW_APPROVALS = """
UPDATE authority_actionapproval r SET status = 'withdrawn', reason = refused.reason
FROM unnest(%(ids)s::uuid[], %(reasons)s::text[]) AS refused (id, reason)
WHERE r.tenant_id = %(tenant)s AND r.id = refused.id AND r.id = ANY(%(ids)s::uuid[]) AND r.status = 'approved'
"""


def commit(
    members: Sequence[LeasedHeartbeat],
    *,
    fetcher: Fetcher,
    signals: list[Signal],
    charge: Callable[[], None],
) -> None:
    """Write the effects, the signals and the progress of heartbeats, in the open transaction; `signals` is emptied.

    Foreign keys fix the order: memories, new heartbeats, rows that refer to heartbeats. `charge` is called once, before the first
    progress is written, and charges the heartbeats for the time so far. Raises StaleLease when another worker has one of the leases.
    """
    heartbeats = [member.heartbeat for member in members]
    _write_memories(heartbeats, fetcher)
    states = lock_states(members)
    ran = (HeartbeatStatus.DONE, HeartbeatStatus.FAILED)
    # Heartbeats that have no row yet, although rows written below refer to them.
    rowless = [
        member
        for member in members
        if member.step is None and (member.ended_as in ran or member.heartbeat.effects.received_percepts)
    ]
    if rowless:
        charge()
        _write_progress(rowless, signals, with_ends=False)
    save_backlogs([backlog for heartbeat in heartbeats if (backlog := heartbeat.effects.backlog) is not None])
    agents_at_new_level = _write_references(heartbeats)
    signals += effect_signals(members, agents_at_new_level=agents_at_new_level)
    write_agent_states(members, states=states)
    if not rowless:
        charge()
    _write_progress([member for member in members if member not in rowless], signals, with_ends=True)
    # Those of effects whose heartbeats have their rows already, and of agents outside of the batch, such as the receiver of a message.
    write_signals(with_heartbeats([*signals, *end_signals(rowless)], rowless))
    signals.clear()


def _write_progress(members: Sequence[LeasedHeartbeat], signals: list[Signal], *, with_ends: bool) -> None:
    suspend([member for member in members if member.ended_as is None], signals=signals)
    finish(
        [member for member in members if member.ended_as is not None], signals=signals, with_ends=with_ends
    )


def _write_memories(heartbeats: Sequence[HeartbeatState], fetcher: Fetcher) -> None:
    fetcher.writer.write()
    relations = []
    for heartbeat in heartbeats:
        effects = heartbeat.effects
        pairs = [
            (made, source, Relation.DERIVED_FROM) for made, sources in effects.derived for source in sources
        ]
        if heartbeat.memory_id is not None:
            pairs += [(learned, heartbeat.memory_id, Relation.LEARNED_FROM) for learned in effects.learned]
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
    store_provenance([*relations, *outcome_relations(heartbeats)])
    count_outcomes(
        [
            (heartbeat.agent_id, procedure_id, success)
            for heartbeat in heartbeats
            for procedure_id, success in heartbeat.effects.practised
        ]
    )
    # Each recall counts once, so the first of each agent are written together, then the second.
    recalls = [
        [(heartbeat.agent_id, scores) for scores in heartbeat.effects.recalls] for heartbeat in heartbeats
    ]
    for round_ in zip_longest(*recalls):
        record_recalls(dict(filter(None, round_)))


def _write_references(heartbeats: Sequence[HeartbeatState]) -> set[UUID]:
    """Write the rows that refer to heartbeats; return the agents whose budget level has changed."""
    link_memories(
        [
            GoalLink(goal_id=UUID(goal_id), memory_id=heartbeat.memory_id, kind=kind)
            for heartbeat in heartbeats
            if heartbeat.memory_id is not None
            for goal_id, kind in dict.fromkeys(heartbeat.effects.goal_links)
        ]
    )
    insert_rows([row for heartbeat in heartbeats for row in _experiences(heartbeat)])
    agents_at_new_level = write_levels(
        {
            heartbeat.agent_id: heartbeat.effects.level.after
            for heartbeat in heartbeats
            if heartbeat.effects.level
        }
    )
    insert_rows([row for heartbeat in heartbeats for row in _audit(heartbeat, agents_at_new_level)])
    write_approvals(heartbeats)
    insert_rows([row for heartbeat in heartbeats for row in _uses(heartbeat)])
    percepts = [percept for heartbeat in heartbeats for percept in _assigned_percepts(heartbeat)]
    if percepts:
        ids, assigned, contents = zip(*percepts, strict=True)
        change(_ASSIGN_PERCEPTS, ids=list(ids), heartbeats=list(assigned), contents=list(contents))
    advance_positions(
        [position for heartbeat in heartbeats for position in heartbeat.effects.signal_positions]
    )
    add_to_buffers(
        {
            heartbeat.agent_id: heartbeat.effects.buffer_items
            for heartbeat in heartbeats
            if heartbeat.effects.buffer_items
        }
    )
    for heartbeat in heartbeats:
        store_agent_code(agent_id=heartbeat.agent_id, texts=heartbeat.effects.code, source=heartbeat.source)
    return agents_at_new_level


def _assigned_percepts(heartbeat: HeartbeatState) -> list[tuple[UUID, UUID, str | None]]:
    """Return each percept that the heartbeat received, with the heartbeat and the content of a message that it opened."""
    received = heartbeat.effects.received_percepts
    if not received:
        return []
    opened = {
        UUID(percept.id): percept.content for percept in heartbeat.situation.percepts if percept.was_sealed
    }
    return [(percept_id, heartbeat.heartbeat_id, opened.get(percept_id)) for percept_id in received]


def _experiences(heartbeat: HeartbeatState) -> Iterable[Experience]:
    now = datetime.now(UTC)
    for experience in heartbeat.effects.experiences:
        yield Experience(
            id=uuid7(),
            tenant_id=heartbeat.tenant_id,
            agent_id=heartbeat.agent_id,
            heartbeat_id=heartbeat.heartbeat_id,
            heartbeat_number=heartbeat.situation.heartbeat_number,
            action=experience.action,
            about=experience.about[:ABOUT_LENGTH],
            outcome=experience.outcome.value,
            lesson=experience.lesson,
            at=now,
        )


def _uses(heartbeat: HeartbeatState) -> Iterable[CapabilityUse]:
    for capability_id in heartbeat.effects.capability_uses:
        yield CapabilityUse(
            id=uuid7(),
            tenant_id=heartbeat.tenant_id,
            capability_id=UUID(capability_id.removeprefix(CAPABILITY_PREFIX)),
            heartbeat_id=heartbeat.heartbeat_id,
            at=datetime.now(UTC),
        )


def _audit(heartbeat: HeartbeatState, agents_at_new_level: set[UUID]) -> Iterable[AuditEvent]:
    notes: list[AuditNote] = list(heartbeat.effects.audit)
    level = heartbeat.effects.level
    if level is not None and heartbeat.agent_id in agents_at_new_level:
        notes.append(
            AuditNote(
                action=AuditAction.BUDGET_LEVEL,
                message=f"the day's budget: {level.before} → {level.after}, {level.left} left",
                detail={"from": level.before.value, "to": level.after.value},
            )
        )
    for note in notes:
        yield build_event(
            tenant_id=heartbeat.tenant_id,
            action=AuditAction(note.action),
            actor=f"agent:{heartbeat.situation.public_id}",
            agent_id=heartbeat.agent_id,
            message=note.message,
            detail=note.detail,
        )


def write_approvals(heartbeats: Sequence[HeartbeatState]) -> None:
    """Write heartbeats' requests for approval; no statement without any. Raises ApprovalLost for one that cannot be used any more."""
    insert_rows(
        [
            ActionApproval(
                tenant_id=heartbeat.tenant_id,
                agent_id=heartbeat.agent_id,
                heartbeat_id=heartbeat.heartbeat_id,
                status=ApprovalStatus.PENDING,
                **asdict(new),
            )
            for heartbeat in heartbeats
            for new in heartbeat.effects.approvals
        ]
    )
    used = [
        (approval_id, heartbeat.heartbeat_id)
        for heartbeat in heartbeats
        for approval_id in heartbeat.effects.approvals_used
    ]
    if used:
        ids, executed_by = zip(*sorted(used), strict=True)
        if change(_USE_APPROVALS, ids=list(ids), heartbeats=list(executed_by)) != len(used):
            raise ApprovalLost
    withdrawn = sorted(pair for heartbeat in heartbeats for pair in heartbeat.effects.approvals_withdrawn)
    if withdrawn:
        ids, reasons = zip(*withdrawn, strict=True)
        change(_WITHDRAW_APPROVALS, ids=list(ids), reasons=list(reasons))


def fail(member: LeasedHeartbeat, *, error: Exception) -> None:
    """End a heartbeat as failed by an error, from its last checkpoint."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    end_unloaded(member, reason=f"{type(error).__name__}: {error} {notes}".strip())
