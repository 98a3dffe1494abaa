"""Commit the effects of the heartbeats of a batch: one statement per table for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any
from uuid import UUID

import structlog

from apps.agents.services.state import make_dormant, packed_memory, write_states
from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services import build_event
from apps.authority.models import CapabilityUse
from apps.calls.services.usage import write_levels
from apps.goals.services.backlogs import save_backlogs
from apps.goals.services.goals import link_memories
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.legs.approvals import write_approvals
from apps.heartbeats.services.legs.causes import outcome_relations
from apps.heartbeats.services.legs.checkpoints import end_unknown, finish, suspend
from apps.heartbeats.services.legs.fetching import Fetcher
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.heartbeats.services.legs.signals import effect_signals
from apps.memories.services.recall.activation import record_recalls
from apps.memories.services.retention.buffer import buffer_for_agents
from apps.memories.services.store.provenance import ProvenanceRelation, count_outcomes, store_provenance
from apps.memories.services.store.snippets import store_agent_code
from apps.selves.models import Experience
from apps.signals.services.emission import write_signals
from apps.tenants.packing import unpack_text
from apps.tenants.scope import current_tenant
from apps.tenants.statements import change, fetch, insert_rows
from arbor.authority.grants import CAPABILITY_PREFIX
from arbor.errors import TransitionIllegal
from arbor.goals.plans import GoalLink
from arbor.heartbeat.effects import AuditNote, Effects
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.state_merge import (
    after_writing,
    merged_amount,
    merged_memory,
    merged_mood,
    merged_stale_heartbeats,
)
from arbor.heartbeat.steps.records import NOPS_TO_DORMANCY, NOPS_TO_WARN
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.ids import uuid7
from arbor.memory.relations import Relation
from arbor.pipeline.engine import NodeOutcome, ProgressStatus
from arbor.selves.experiences import ABOUT_LENGTH
from arbor.signals import Signal
from arbor.values import replace

log = structlog.get_logger(__name__)

_ENDED = {
    NodeOutcome.SUCCESS: HeartbeatStatus.DONE,
    NodeOutcome.PARTIAL: HeartbeatStatus.DONE,
    NodeOutcome.SKIPPED: HeartbeatStatus.SKIPPED,
    NodeOutcome.FAILURE: HeartbeatStatus.FAILED,
    NodeOutcome.RETRY: HeartbeatStatus.FAILED,
}
#: The bound of ticks and bonus actions, which have none of their own.
_UNBOUNDED = 2**31 - 1

# With the content of messages that were sealed; a refused message stays sealed.
_ASSIGN_PERCEPTS = """
UPDATE heartbeats_percept p SET heartbeat_id = r.heartbeat, content = coalesce(r.content, p.content),
    sealed = CASE WHEN r.content IS NULL THEN p.sealed END
FROM unnest(%(ids)s::uuid[], %(heartbeats)s::uuid[], %(contents)s::text[]) AS r (id, heartbeat, content)
WHERE p.tenant_id = %(tenant)s AND p.id = r.id AND p.id = ANY(%(ids)s::uuid[])
"""
# Conversations and operators may have changed a state while its heartbeat ran: it is read again and merged.
_STATES = """
SELECT agent_id, energy, ticks_left, bonus_actions, mood::json, stale_beats, nops, working_memory
FROM agents_agentstate WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[])
ORDER BY agent_id FOR UPDATE
"""


def commit(
    members: Sequence[LeasedHeartbeat],
    fetcher: Fetcher,
    *,
    signals: list[Signal],
    charge: Callable[[], None],
) -> None:
    """Write the effects, the signals and the progress of heartbeats, in the open transaction; `signals` is emptied.

    Foreign keys fix the order: memories, new heartbeats, rows that refer to heartbeats. `charge` is called before the last
    statement, and counts the time up to it. Raises StaleLease when another worker has one of the leases.
    """
    effects = [(member, member.heartbeat.effects) for member in members if member.heartbeat is not None]
    _write_memories(effects, fetcher)
    states = _lock_states(members)
    ran = (HeartbeatStatus.DONE, HeartbeatStatus.FAILED)
    rowless = [
        member
        for member in members
        if member.step is None and (_ended_as(member) in ran or _has_percepts(member))
    ]
    if rowless:
        charge()
        _write_progress(rowless, signals)
    save_backlogs([effect_set.backlog for _, effect_set in effects if effect_set.backlog is not None])
    levels = _write_references(effects)
    signals += effect_signals(members, levels=levels)
    _write_states(members, states)
    if not rowless:
        charge()
    _write_progress([member for member in members if member not in rowless], signals)
    # Those that the statements above did not write.
    write_signals(signals)
    signals.clear()


def _ended_as(member: LeasedHeartbeat) -> HeartbeatStatus | None:
    """Return the status of an ended heartbeat; None if it is suspended."""
    progress = member.progress
    assert progress is not None
    if progress.status is ProgressStatus.SUSPENDED:
        return None
    return _ENDED[progress.outcome or NodeOutcome.FAILURE]


def _has_percepts(member: LeasedHeartbeat) -> bool:
    return member.heartbeat is not None and bool(member.heartbeat.effects.received_percepts)


def _opened_contents(heartbeat: HeartbeatState) -> dict[UUID, str]:
    """Return the contents of the messages that the heartbeat opened, by the ids of their percepts."""
    return {
        UUID(percept.id): percept.content for percept in heartbeat.situation.percepts if percept.was_sealed
    }


def _write_progress(members: Sequence[LeasedHeartbeat], signals: list[Signal]) -> None:
    suspend([member for member in members if _ended_as(member) is None], signals)
    finish([(member, status) for member in members if (status := _ended_as(member)) is not None], signals)


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


def _lock_states(members: Sequence[LeasedHeartbeat]) -> dict[UUID, Sequence[Any]]:
    """Lock the states to write, and read their current values.

    Call it before daily usage is counted: conversations lock in this order.
    """
    writing = sorted(member.agent.id for member in members if _writes_state(member))
    return {agent_id: now for agent_id, *now in fetch(_STATES, agents=writing)} if writing else {}


def _write_states(members: Sequence[LeasedHeartbeat], states: Mapping[UUID, Sequence[Any]]) -> None:
    """Write the agents' states, merged with changes since the heartbeats began."""
    writing = {member.agent.id: member for member in members if member.agent.id in states}
    if not writing:
        return
    columns = {agent_id: _columns(writing[agent_id], *now) for agent_id, now in states.items()}
    write_states(columns)
    for member in writing.values():
        _rebase_state(member, columns[member.agent.id])
        if member.heartbeat is not None and member.heartbeat.effects.nop:
            _count_nop(member, member.heartbeat)


def _writes_state(member: LeasedHeartbeat) -> bool:
    heartbeat = member.heartbeat
    if heartbeat is None:
        return False
    # A suspended heartbeat without actions writes the state when it ends.
    return _ended_as(member) is not None or heartbeat.has_acted


def _columns(
    member: LeasedHeartbeat,
    energy: float,
    ticks_left: int,
    bonus_actions: int,
    mood: Mapping[str, Any],
    stale_beats: int,
    nops: int,
    working_memory: bytes,
) -> dict[str, Any]:
    """Return the columns of the agent's state to write, merged with their current values."""
    heartbeat = member.heartbeat
    assert heartbeat is not None
    state, found, moved = heartbeat.state, heartbeat.found, heartbeat.moved
    failed = _ended_as(member) == HeartbeatStatus.FAILED
    ticks = merged_amount(
        state.ticks_left,
        found=found.ticks_left,
        now=ticks_left,
        most=_UNBOUNDED,
        renewed=found.ticks_renewed,
    )
    if failed and not heartbeat.has_acted:
        # A heartbeat that failed without actions writes its notices, and the ticks of an unusable reply.
        nop = {"nops": nops + 1, "ticks_left": ticks} if heartbeat.effects.nop else {}
        return {"notices": state.notices, **nop}
    columns: dict[str, Any] = {
        "energy": merged_amount(
            state.energy, found=found.energy, now=energy, most=heartbeat.situation.max_energy
        ),
        "ticks_left": ticks,
        "bonus_actions": merged_amount(
            state.bonus_actions, found=found.bonus_actions, now=bonus_actions, most=_UNBOUNDED
        ),
        "mood": merged_mood(
            state.mood,
            found=found.mood,
            now=mood or {},
            valence=moved.valence if moved else 0.0,
            arousal=moved.arousal if moved else 0.0,
        ),
        "stale_beats": merged_stale_heartbeats(state.stale_beats, found=found.stale_beats, now=stale_beats),
        "drives": state.drives,
        "learned": state.learned,
        "idle_beats": state.idle_beats,
        "notices": state.notices,
        "last_reach_out_at": state.last_reach_out_at,
    }
    if heartbeat.effects.nop:
        columns["nops"] = nops + 1
    afterwards = heartbeat.effects.afterwards
    if afterwards is not None:
        memory = merged_memory(
            afterwards.working_memory,
            now=WorkingMemory.model_validate_json(unpack_text(working_memory)),
            found_talked=found.talked,
            since=heartbeat.situation.environment.now,
        )
        columns |= {
            "beats": afterwards.heartbeats,
            "nops": 0,
            "last_beat_at": heartbeat.now,
            "working_memory": packed_memory(memory),
        }
    return columns


def _rebase_state(member: LeasedHeartbeat, written: Mapping[str, Any]) -> None:
    """Set the values just written as the base of the next merge: later differences are changes by others."""
    progress = member.progress
    assert progress is not None
    heartbeat = progress.checkpoint.state
    left = heartbeat.state
    mood = written.get("mood")
    found = after_writing(
        heartbeat.found,
        energy=left.energy,
        ticks_left=left.ticks_left,
        bonus_actions=left.bonus_actions,
        stale_beats=left.stale_beats,
        mood=mood,
    )
    # The mood just written includes the heartbeat's own change.
    own_change: dict[str, Any] = {} if mood is None else {"state": replace(left, mood=mood), "moved": None}
    checkpoint = replace(progress.checkpoint, state=replace(heartbeat, found=found, **own_change))
    member.progress = replace(progress, checkpoint=checkpoint)


def _count_nop(member: LeasedHeartbeat, heartbeat: HeartbeatState) -> None:
    """Warn of unusable replies; after too many make the agent dormant."""
    if heartbeat.effects.dormant:
        # A person may have paused or stopped the agent meanwhile.
        with suppress(TransitionIllegal):
            make_dormant(agent_id=heartbeat.agent_id, reason=heartbeat.effects.dormant)
    elif heartbeat.nops >= NOPS_TO_WARN:
        log.warning(
            "replies_unusable", agent=member.agent.name, in_a_row=heartbeat.nops, dormant_at=NOPS_TO_DORMANCY
        )


def fail(member: LeasedHeartbeat, error: Exception) -> None:
    """End a heartbeat as failed by an error, from its last checkpoint."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    end_unknown(member, reason=f"{type(error).__name__}: {error} {notes}".strip())
