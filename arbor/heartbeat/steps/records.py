"""Record a heartbeat: its narrative and its memories, the agent's state after it, and the next due time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from itertools import groupby
from typing import Any
from uuid import UUID

from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.goals.plans import LinkKind
from arbor.heartbeat.budgets import BudgetKind, amount_text
from arbor.heartbeat.effects import StateAfterHeartbeat
from arbor.heartbeat.failure_modes import RecentActivity, notices_of
from arbor.heartbeat.focus import foremost_percept
from arbor.heartbeat.needs import Embedding, PlacedMemories, Placing
from arbor.heartbeat.pacing import MESSAGE, NextHeartbeat, next_heartbeat
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import (
    MEANINGS,
    ActionOutcome,
    ActionResult,
    GoalChange,
    GoalChangeKind,
    RoundTripRecord,
    finished_or_moved_goals,
    is_effort,
    links_of,
)
from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, Mode, NoticeKind, Situation
from arbor.heartbeat.sources import role_of, source_of
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.inner_state import events_of
from arbor.heartbeat.steps.new_memories import (
    LEARNING_ACTIONS,
    new_memory,
    vectors_of,
    with_lasting_retention,
    with_source_of_note,
)
from arbor.heartbeat.steps.orientation import urgent_at, with_next
from arbor.heartbeat.steps.round_trips import with_percepts_received
from arbor.heartbeat.working_memory import PastHeartbeat, after_heartbeat, idle_intervals, unknown_lines
from arbor.knowledge.merging import SEARCH_KNOWLEDGE, SEARCH_MY_MEMORIES
from arbor.memory.buffer import DEFAULT_LIFETIME, NewBufferItem
from arbor.memory.importance import appraise
from arbor.memory.trust import max_trust
from arbor.memory.values import HEARTBEATS_SESSION, ROLE_LENGTH, MemoryType, NewMemory, Retention
from arbor.pipeline.engine import NodeResult, Steps
from arbor.quotations import close_quotes, counted, quoted, shorten
from arbor.selves.emotions import total_valence
from arbor.tools.names import is_tool_action
from arbor.values import replace
from arbor.workflows.delegation import remembered_delegation
from arbor.workflows.values import COMPLETE_STEP, START_WORKFLOW

NARRATIVE_LENGTH = 4_000
THOUGHT_LENGTH = 600
SUMMARY_LENGTH = 300
#: The most dropped items that a narrative names.
MAX_DROPPED = 3

_OPENINGS: Mapping[Mode, str] = {
    Mode.CONVERSATION: "Somebody was waiting for me.",
    Mode.CONSOLIDATION: "I took time to tend my memory.",
    Mode.PLAN_EXECUTION: "I had goals but no plan.",
    Mode.GOAL_PURSUIT: "I worked on my goals.",
    Mode.REFLECTION: "Nothing pressed, so I reflected.",
}


#: The actions as infinitives; a test holds that each has one. Summaries of results that worked, also in part, are past tenses.
_INFINITIVES: Mapping[str, str] = {
    "observe": "look around",
    "review_goals": "review my goals",
    "recall": "recall",
    SEARCH_MY_MEMORIES: "search all that I know",
    SEARCH_KNOWLEDGE: "search the documents",
    "remember": "remember",
    "connect": "connect two things",
    "maintain": "tend what I know",
    "reflect": "reflect",
    "inquire_shallow": "look something up",
    "inquire_deep": "look deeply into something",
    "synthesize": "draw things together",
    "brainstorm_goals": "think of new goals",
    "reprioritize": "move a goal",
    REACH_OUT_USER: "write to my user",
    REACH_OUT_AGENT: "write to another agent",
    REACH_OUT_PUBLIC: "write to the public",
    START_WORKFLOW: "start a workflow",
    COMPLETE_STEP: "complete a step",
    "rest": "rest",
}
#: Phrases for items that a boundary refused, by the key of the reply.
_REFUSED_PHRASES: Mapping[str, str] = {
    "memory_notes": "note something",
    "goal_updates": "say how a goal goes",
    "new_goals": "take up a goal",
    "decompositions": "plan steps",
    "identity_insights": "say what I see in myself",
}
#: Percepts that the buffer keeps for as long as a conversation.
_CONVERSATION = (USER_MESSAGE, PEER_MESSAGE)
NARRATIVE_IMPORTANCE = 0.4
NOTE_IMPORTANCE = 0.6
#: Narratives of a goal's beginning and end have no expiry; the many in between would fill the quota of memories.
_LASTING_LINKS = frozenset({LinkKind.ORIGIN, LinkKind.COMPLETION})
#: Seed 003, 10.7: heartbeats in a row without a usable reply.
NOPS_TO_WARN = 3
NOPS_TO_DORMANCY = 10


def narrate(
    situation: Situation,
    reply: Reply,
    results: Sequence[ActionResult],
    changes: Sequence[GoalChange],
    *,
    refused: Sequence[tuple[str, str]] = (),
    dropped: Sequence[Dropped] = (),
) -> str:
    """Return the narrative, deterministic, at most 4,000 characters.

    `refused` are (path, reason) of items that a boundary refused, `dropped` all dropped items.
    """
    sentences = [f"Heartbeat {situation.heartbeat_number}. {_OPENINGS[situation.mode]}"]
    if percept := foremost_percept(situation.percepts):
        sentences.append(f"I heard: {quoted(_shorten(remembered_delegation(percept.content)))}.")
    if reply.thinking:
        sentences.append(f"I thought: {quoted(shorten(' '.join(reply.thinking.split()), THOUGHT_LENGTH))}")
    sentences.extend(_action_sentences(results))
    sentences.extend(_goal_sentences(changes))
    sentences.extend(
        f"I could not {_REFUSED_PHRASES[path.partition('[')[0]]}: {_shorten(why)}." for path, why in refused
    )
    known = {why for _, why in refused} | {change.change for change in changes}
    others = [item for item in dropped if item.reason not in known]
    sentences.extend(f"Not taken of what I said: {_shorten(item.in_words)}." for item in others[:MAX_DROPPED])
    sentences.extend(f"It worries me: {_shorten(concern)}." for concern in reply.concerns)
    spent = sum(result.cost for result in results)
    spending = amount_text(spent, situation.energy_unit)
    sentences.append(f"I spent {spending} and have {situation.energy - spent:g} left.")
    return shorten(" ".join(sentences), NARRATIVE_LENGTH)


def _action_sentences(results: Sequence[ActionResult]) -> Iterator[str]:
    done = [result for result in results if result.outcome in (ActionOutcome.SUCCESS, ActionOutcome.PARTIAL)]
    unknown = [result for result in results if result.outcome is ActionOutcome.UNKNOWN]
    failed = [
        result for result in results if result.outcome in (ActionOutcome.FAILURE, ActionOutcome.BLOCKED)
    ]
    if not done and not unknown:
        yield "I did nothing."
    for result in done:
        yield f"I {_shorten(result.summary)}."
    for result in unknown:
        yield f"I tried to {_infinitive(result.action)} and do not know how it ended: {_shorten(result.summary)}."
    for result in failed:
        word = "could not" if result.outcome is ActionOutcome.BLOCKED else "tried and failed to"
        yield f"I {word} {_infinitive(result.action)}: {_shorten(result.summary)}."


def _infinitive(action: str) -> str:
    """Return an action as an infinitive: a tool of a server is called, and an action that does not exist is named."""
    if is_tool_action(action):
        return f"call {action}"
    return _INFINITIVES.get(action) or action.replace("_", " ")


def _goal_sentences(changes: Sequence[GoalChange]) -> Iterator[str]:
    for (title, happened), following in groupby(changes, _happening):
        about = "; ".join(filter(None, (_shorten(change.change) for change in following)))
        yield f"My goal {quoted(_shorten(title))} {happened}{f': {about}' if about else ''}."


def _happening(change: GoalChange) -> tuple[str, str]:
    """Return the goal's title, and what happened to the goal in words."""
    closed = change.by_rule and change.kind in (GoalChangeKind.COMPLETED, GoalChangeKind.ABANDONED)
    return change.title, "came to rest by itself" if closed else MEANINGS[change.kind].words


def _shorten(text: str) -> str:
    return close_quotes(shorten(" ".join(text.split()).rstrip("."), SUMMARY_LENGTH))


def record(heartbeat: HeartbeatState) -> Steps[HeartbeatState]:
    """Store the narrative and the notes as memories, and the agent's state."""
    heartbeat = heartbeat.with_dropped(
        Dropped(
            path="resolved",
            value=text,
            reason="it is no concern or question on your mind, in the words you see",
        )
        for text in unknown_lines(heartbeat.situation.working_memory, heartbeat.reply_or_empty.resolved)
    )
    whole = heartbeat.whole
    narrative = narrate(
        heartbeat.situation,
        heartbeat.reply_or_empty,
        whole.results,
        whole.goal_changes,
        refused=[
            *dict.fromkeys((match.path, match.reason) for match in heartbeat.boundary_matches if match.reason)
        ],
        dropped=whole.dropped,
    )
    felt = total_valence(events_of(heartbeat.reply_or_empty, whole.results, whole.goal_changes))
    heartbeat, memory_id = yield from _store_memories(heartbeat, narrative, felt)
    heartbeat = with_percepts_received(
        heartbeat.with_effects(
            goal_links=links_of(whole.goal_changes),
            buffer_items=_buffer_items(heartbeat),
            code=[percept.content for percept in heartbeat.situation.percepts],
            afterwards=_afterwards(heartbeat),
        )
    )
    heartbeat = with_invalid_replies_noticed(heartbeat, nops=0)
    heartbeat = replace(
        heartbeat,
        situation=heartbeat.with_decision_inputs(),
        narrative=narrative,
        # The resulting mood takes precedence over the valence of the heartbeat alone.
        emotional_valence=felt if heartbeat.emotional_valence is None else heartbeat.emotional_valence,
        memory_id=memory_id,
    )
    notes = len(heartbeat.reply_or_empty.memory_notes)
    return NodeResult(
        state=heartbeat,
        changed=(f"remembered the heartbeat and {counted(notes, 'note')}",),
    )


def _store_memories(
    heartbeat: HeartbeatState, narrative: str, felt: float
) -> Generator[Any, Any, tuple[HeartbeatState, UUID]]:
    """Place the notes and the narrative; return the state and the id of the narrative.

    Where the embedder is another process, maintenance embeds the narrative, which is known only now.
    """
    notes = [
        _note_memory(heartbeat, note.text, note.referenced_date)
        for note in heartbeat.reply_or_empty.memory_notes
    ]
    narrative_memory = new_memory(
        heartbeat,
        narrative,
        MemoryType.EPISODIC,
        importance=NARRATIVE_IMPORTANCE,
        retention=_retention(heartbeat.whole),
        emotional_valence=felt,
        session=HEARTBEATS_SESSION,
        position=heartbeat.situation.heartbeat_number,
        detail={"mode": heartbeat.situation.mode.value},
    )
    model, vectors = heartbeat.embedding_model, dict(heartbeat.vectors)
    if heartbeat.moment.embeds_here:
        notes_left = [note.content for note in notes if note.content not in vectors]
        vectors |= yield Embedding(model=model, stored=[narrative, *notes_left])
    memories = [*notes, narrative_memory]
    # One request has vectors for all its memories or for none.
    is_alike = all(note.content in vectors for note in notes) == (narrative in vectors)
    groups = [memories] if is_alike or not notes else [notes, [narrative_memory]]
    fresh: list[UUID] = []
    for group in groups:
        found = vectors_of([memory.content for memory in group], vectors)
        placed: PlacedMemories = yield Placing(memories=group, vectors=found, model=model)
        fresh += placed.fresh
    memory_id = placed.ids[-1]
    created = {
        UUID(created_id)
        for result in heartbeat.whole.results
        if result.action in LEARNING_ACTIONS and result.outcome is ActionOutcome.SUCCESS
        for created_id in result.memory_ids
    }
    learned_here = {*fresh, *created} - {memory_id}
    return heartbeat.with_effects(learned=sorted(learned_here)), memory_id


def _note_memory(heartbeat: HeartbeatState, text: str, day: date | None) -> NewMemory:
    """Return the memory of a note: lasting, of its appraised importance, at least `NOTE_IMPORTANCE`."""
    at = datetime.combine(day, time(12), UTC) if day else heartbeat.now
    note = NewMemory(content=text, type=MemoryType.SEMANTIC, occurred_at=at, source=heartbeat.source)
    appraisal = appraise(text, role=note.role, type=note.type, lists=heartbeat.rules.word_lists)
    note = with_lasting_retention(heartbeat, note, unless={Retention.ERROR})
    note = replace(note, importance=max(NOTE_IMPORTANCE, appraisal.importance))
    return with_source_of_note(note, situation=heartbeat.situation_now)


def _retention(whole: RoundTripRecord) -> Retention:
    """Return the retention of a narrative: by what it did to goals, else error if all attempts failed, else task."""
    links = {kind for _, kind in links_of(whole.goal_changes)}
    if links & _LASTING_LINKS:
        return Retention.LASTING
    if links:
        return Retention.DECISION
    tried = [result.outcome for result in whole.results if result.outcome is not ActionOutcome.BLOCKED]
    failed = bool(tried) and all(outcome is ActionOutcome.FAILURE for outcome in tried)
    return Retention.ERROR if failed else Retention.TASK


def _buffer_items(heartbeat: HeartbeatState) -> list[NewBufferItem]:
    """Return the percepts as buffer items, because the narrative shortens them."""
    return [
        NewBufferItem(
            content=remembered_delegation(percept.content),
            role=role_of(percept)[:ROLE_LENGTH],
            source=heartbeat.source,
            trust=max_trust([source_of(percept, heartbeat.situation.peers)]),
            lasts=heartbeat.rules.conversation_lifetime
            if percept.kind in _CONVERSATION
            else DEFAULT_LIFETIME,
        )
        for percept in heartbeat.situation.percepts
        if percept.content.strip()
    ]


def _afterwards(heartbeat: HeartbeatState) -> StateAfterHeartbeat:
    situation, reply, whole = heartbeat.situation, heartbeat.reply_or_empty, heartbeat.whole
    finished_ids = finished_or_moved_goals(whole.goal_changes)
    past = PastHeartbeat(
        thinking=reply.thinking,
        concerns=reply.concerns,
        curiosity=reply.curiosity,
        user_waiting=situation.environment.user_waiting,
        acted=any(map(is_effort, whole.results)),
        resolved=reply.resolved,
        active_goals=[goal.title for goal in situation.active_goals if goal.id not in finished_ids],
        consolidated=situation.mode is Mode.CONSOLIDATION,
        idle=idle_intervals(
            situation.working_memory,
            interval=heartbeat.schedule.interval,
            now=situation.environment.now,
            last_heartbeat_at=heartbeat.found.last_heartbeat_at,
        ),
        at=heartbeat.now,
    )
    memory = after_heartbeat(situation.working_memory, past)
    return StateAfterHeartbeat(heartbeats=situation.heartbeat_number, working_memory=memory)


def with_invalid_replies_noticed(heartbeat: HeartbeatState, *, nops: int) -> HeartbeatState:
    """Return the state with the notice about unusable replies updated."""
    stored_notices = heartbeat.state.notices
    if stored_notices is None:
        return heartbeat
    current = [notice.model_dump(mode="json") for notice in notices_of(RecentActivity(nops=nops))]
    others = [notice for notice in stored_notices if notice["kind"] != NoticeKind.INVALID_REPLIES]
    order = [*NoticeKind]
    return heartbeat.with_state(
        notices=sorted([*others, *current], key=lambda notice: order.index(notice["kind"]))
    )


def plan_next(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Plan the next heartbeat: at once if messages of users are left."""
    environment = heartbeat.situation.environment
    processed = sum(percept.kind == USER_MESSAGE for percept in heartbeat.situation.percepts)
    if environment.user_messages > processed:
        return NodeResult(state=with_next(heartbeat, NextHeartbeat(due_at=environment.now, trigger=MESSAGE)))
    following = next_heartbeat(
        heartbeat.schedule,
        now=environment.now,
        idle_heartbeats=0,
        shift=heartbeat.shift,
        urgent_at=urgent_at(heartbeat),
    )
    return NodeResult(state=with_next(heartbeat, following))


def nop(heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
    """Count a heartbeat without a usable reply; ten in a row make the agent dormant (seed 003, 10.7).

    A nop uses a tick, so that every cycle ends.
    """
    nops = heartbeat.nops + 1
    budget = heartbeat.budget
    if budget.kind is BudgetKind.TICKS:
        heartbeat = heartbeat.with_state(**budget.settle(max(0.0, heartbeat.situation.energy - 1), rests=0))
    reason = f"{counted(nops, 'heartbeat')} in a row without a usable reply"
    heartbeat = with_invalid_replies_noticed(heartbeat, nops=nops)
    heartbeat = heartbeat.with_effects(nop=True, dormant=reason if nops >= NOPS_TO_DORMANCY else "")
    return NodeResult(state=replace(heartbeat, nops=nops), changed=(reason,))
