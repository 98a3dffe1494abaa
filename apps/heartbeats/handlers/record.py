"""Record: what the beat was, as the agent will remember it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np

from apps.agents.services.state import state_changes, state_values
from apps.goals.services.links import link_memory
from apps.heartbeats.acts.desk import vectors_of
from apps.heartbeats.handlers.observe import BEATS_SESSION
from apps.heartbeats.handlers.standing import noticed_after
from apps.heartbeats.handlers.terms import model_in, on_record
from apps.heartbeats.models import Percept, PerceptKind
from apps.memories.services.appraisal import lasting, weigh
from apps.memories.services.buffer import hold
from apps.memories.services.code import keep_code
from apps.memories.services.embedding import embed_for_storage, embeds_here
from apps.memories.services.provenance import learned_from
from apps.memories.services.remember import Remembered, store
from apps.tenants.encoding import to_json
from apps.tenants.statements import change
from arbor.clock import Clock
from arbor.heartbeat.learning import LEARNING_ACTIONS, learned
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.narrative import narrate, valence
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, laid_aside, links_of
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.working_memory import after_beat, as_stored
from arbor.memory.buffer import ToHold
from arbor.memory.retention import Retention
from arbor.memory.values import MemoryType, NewMemory
from arbor.pipeline.engine import Context, NodeResult, Phase

# Somebody may have talked to the agent while it thought: who is there, and what came of it, stays.
_AFTER_BEAT = """
UPDATE agents_agentstate
SET {state}beats = %(beats)s, nops = 0, last_beat_at = %(now)s,
    working_memory = %(mind)s::jsonb || jsonb_build_object(
        'current_human', working_memory->'current_human',
        'current_conversation', working_memory->'current_conversation',
        'talked', %(talked)s::int + greatest(0, coalesce((working_memory->>'talked')::int, 0) - %(had_talked)s::int),
        'thoughts', %(mind)s::jsonb->'thoughts' || coalesce((
            SELECT jsonb_agg(thought) FROM jsonb_array_elements(working_memory->'thoughts') thought
            WHERE (thought->>'at')::timestamptz > %(seen)s
        ), '[]')
    )
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
"""

# A conversation moves the mood as well: what the beat did to it is added to what it has become.
_MOOD = """mood = CASE WHEN mood = %(seen_mood)s::jsonb OR mood->>'valence' IS NULL THEN %(mood)s::jsonb
    ELSE mood || jsonb_build_object(
        'valence', least(1, greatest(-1, (mood->>'valence')::float + %(valence)s::float)),
        'arousal', least(1, greatest(0, (mood->>'arousal')::float + %(arousal)s::float))
    ) END"""

# What is said in a conversation is something new as well: whoever it was new to meanwhile is not stale again.
_STALE = "stale_beats = CASE WHEN stale_beats < %(seen_stale)s THEN stale_beats ELSE %(stale_beats)s END"

#: What it writes itself.
_OWN_COLUMNS = frozenset({"beats", "nops", "last_beat_at", "working_memory"})

NARRATIVE_IMPORTANCE = 0.4
NOTE_IMPORTANCE = 0.6


class Record:
    """Stores the narrative and the notes as memories, and the agent's state for the next beat."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Write the record; the heartbeat's own row is written by the walk, from `record` in the context."""
        now = self._clock.now()
        situation: Situation = context["situation"]
        reply: Reply = context["reply"]
        results: list[ActionResult] = context.get("all_results") or context["results"]
        changes = [GoalChange.model_validate(each) for each in context["record"].get("goal_changes", [])]
        narrative = narrate(situation, reply, results, changes, kept_back=_kept_back(context))
        felt = valence(reply, results, changes)
        agent_id, heartbeat_id = UUID(context["agent_id"]), context["heartbeat_id"]
        memory_id = self._remember(context, situation, reply, results, narrative, felt, now)
        link_memory(memory_id=memory_id, links=links_of(changes))
        _update_state(agent_id, context, situation, reply, results, changes, now)
        _hold(agent_id, situation, heartbeat_id)
        keep_code(
            agent_id=agent_id,
            texts=[each.content for each in situation.percepts],
            source=f"heartbeat:{heartbeat_id}",
        )
        # The percepts point at the heartbeat's row, which exists: this node comes after a suspension.
        seen = [UUID(percept.id) for percept in situation.percepts]
        if seen:
            Percept.objects.filter(id__in=seen).update(heartbeat_id=UUID(heartbeat_id))
        record: dict[str, Any] = {
            **context["record"],
            "situation": on_record(context),
            "narrative": narrative,
            # The mood in which the beat leaves it goes before how the beat by itself felt.
            "emotional_valence": context["record"].get("emotional_valence", felt),
            "memory_id": str(memory_id),
        }
        return NodeResult(
            updates={"record": record}, changed=(f"remembered the beat and {len(reply.memory_notes)} notes",)
        )

    def _remember(
        self,
        context: Context,
        situation: Situation,
        reply: Reply,
        results: list[ActionResult],
        narrative: str,
        felt: float,
        now: datetime,
    ) -> UUID:
        agent_id, source = UUID(context["agent_id"]), f"heartbeat:{context['heartbeat_id']}"
        notes = [
            learned(
                _noted(
                    note.text,
                    at=datetime.combine(note.referenced_date, time(12), UTC) if note.referenced_date else now,
                    source=source,
                ),
                situation=situation,
            )
            for note in reply.memory_notes
        ]
        beat = NewMemory(
            content=narrative,
            type=MemoryType.EPISODIC,
            importance=NARRATIVE_IMPORTANCE,
            retention=_retention(results),
            emotional_valence=felt,
            occurred_at=now,
            session=BEATS_SESSION,
            position=situation.beat_number,
            source=source,
            detail={"mode": situation.mode.value},
        )
        *noted, beat_id = _store(context, notes, beat)
        learned_from(
            agent_id=agent_id, memory_ids=[*noted, *_kept(results)], origin_id=beat_id, origin=source
        )
        return beat_id


def _store(context: Context, notes: list[NewMemory], beat: NewMemory) -> tuple[UUID, ...]:
    """Store the notes and the beat itself, at once if all their vectors are at hand; return the ids of those not known
    before, the beat's last.

    The narrative is known only now. Where its vector would have to be waited for, upkeep embeds it, with many others.
    """
    agent_id, model = UUID(context["agent_id"]), model_in(context)
    vectors = vectors_of([note.content for note in notes], context["vectors"]) if notes else None
    told = None
    if embeds_here(model):
        told = embed_for_storage(tenant_id=UUID(context["tenant_id"]), texts=[beat.content], model=model)
    if notes and (vectors is None or told is None):
        stored = store(agent_id=agent_id, memories=notes, vectors=vectors, model=model)
        known = store(agent_id=agent_id, memories=[beat], vectors=told, model=model)
        return (*_fresh(stored), *known.ids)
    if notes:
        told = np.concatenate([vectors, told])
    stored = store(agent_id=agent_id, memories=[*notes, beat], vectors=told, model=model)
    return (*_fresh(stored, but_last=True), stored.ids[-1])


def _fresh(stored: Remembered, *, but_last: bool = False) -> list[UUID]:
    """Return the ids of what was not known before."""
    ids = stored.ids[:-1] if but_last else stored.ids
    return [each for each in ids if each not in stored.duplicates]


def _hold(agent_id: UUID, situation: Situation, heartbeat_id: str) -> None:
    """Hold what was heard for a day: the narrative has but a glimpse of it. One statement, if anything was heard."""
    heard = [
        ToHold(
            content=percept.content,
            role="user" if percept.kind == PerceptKind.USER_MESSAGE else "",
            source=f"heartbeat:{heartbeat_id}",
        )
        for percept in situation.percepts
        if percept.content.strip()
    ]
    hold(agent_id=agent_id, things=heard)


def _noted(text: str, *, at: datetime, source: str) -> NewMemory:
    """Return the memory of a note: it lasts, and weighs what it says, but more than what was merely heard."""
    note = NewMemory(content=text, type=MemoryType.SEMANTIC, occurred_at=at, source=source)
    return replace(
        lasting(note, but={Retention.ERROR}), importance=max(NOTE_IMPORTANCE, weigh(note).importance)
    )


def _kept(results: list[ActionResult]) -> list[UUID]:
    """Return what the beat's own actions made it remember, not what was known already."""
    kept = [
        each for each in results if each.action in LEARNING_ACTIONS and each.outcome is ActionOutcome.SUCCESS
    ]
    return [UUID(each) for result in kept for each in result.memory_ids]


def _kept_back(context: Context) -> list[tuple[str, str]]:
    """Return the path of each item of the replies that was not taken at a boundary, and why."""
    crossings = context.get("crossings", [])
    return [*dict.fromkeys((each["path"], each["reason"]) for each in crossings if each["reason"])]


def _retention(results: list[ActionResult]) -> Retention:
    """Return as what a beat is kept: a task that was carried out, or a failure when nothing that it tried worked."""
    tried = [result.outcome for result in results if result.outcome is not ActionOutcome.BLOCKED]
    failed = bool(tried) and all(outcome is ActionOutcome.FAILURE for outcome in tried)
    return Retention.ERROR if failed else Retention.TASK


def _update_state(
    agent_id: UUID,
    context: Context,
    situation: Situation,
    reply: Reply,
    results: list[ActionResult],
    changes: list[GoalChange],
    now: datetime,
) -> None:
    aside = laid_aside(changes)
    mind = after_beat(
        situation.working_memory,
        thinking=reply.thinking,
        concerns=reply.concerns,
        curiosity=reply.curiosity,
        user_waiting=situation.environment.user_waiting,
        acted=any(result.cost for result in results),
        resolved=reply.resolved,
        active_goals=[goal.title for goal in situation.active_goals if goal.id not in aside],
        tended=situation.mode is Mode.CONSOLIDATION,
        now=now,
    )
    # What the budget leaves, and what other nodes changed about the agent.
    state: dict[str, Any] = {
        name: value
        for name, value in noticed_after(context.get("state", {}), nops=0).items()
        if name not in _OWN_COLUMNS
    }
    moved: dict[str, Any] = context.get("moved") or {}
    change(
        _after_beat(tuple(sorted(state)), merged=bool(moved)),
        agent=agent_id,
        **state_values(state),
        **({"seen_mood": to_json(moved["seen"])} if moved else {}),
        **{name: moved[name] for name in ("valence", "arousal") if moved},
        seen_stale=situation.stale_beats,
        beats=situation.beat_number,
        now=now,
        mind=as_stored(mind),
        talked=mind.talked,
        had_talked=situation.working_memory.talked,
        seen=situation.environment.now,
    )


@cache
def _after_beat(names: tuple[str, ...], *, merged: bool) -> str:
    """Return the statement that writes these columns; with `merged` the mood is among them."""
    apart = {"stale_beats": _STALE, **({"mood": _MOOD} if merged else {})}
    plain = state_changes([name for name in names if name not in apart])
    state = ", ".join(each for each in (plain, *(apart[name] for name in names if name in apart)) if each)
    return _AFTER_BEAT.replace("{state}", f"{state}, " if state else "")
