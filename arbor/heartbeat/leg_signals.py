"""Derive the signals of one leg of a heartbeat from its effects and from the difference of its states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from arbor.heartbeat.effects import Effects
from arbor.heartbeat.results import ActionOutcome, ActionRecord
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.signals import Signal, SignalName, memory_data, signal

#: The action of audit notes about boundary matches (`apps.audit.models.AuditAction`).
_BOUNDARY = "boundary"
#: The least change of engagement that emits a signal.
_ENGAGEMENT_STEP = 0.005


def signals_of_leg(before: HeartbeatState, after: HeartbeatState, *, level_changed: bool) -> Iterator[Signal]:
    """Yield the signals of a leg, without those of its services and its backlog.

    `level_changed`: whether the level of the effects differs from the stored one.
    """
    effects = after.effects

    def signaled(name: SignalName, /, **data: Any) -> Signal:
        return signal(name, after.agent_id, after.heartbeat_id, **data)

    if recalled := [*chain.from_iterable(effects.recalls)]:
        yield signaled(SignalName.RECALLED, **memory_data(recalled))
    thinking = len(after.whole.reasoning) - len(before.whole.reasoning)
    if thinking > 0:
        yield signaled(SignalName.THINKING_RECORDED, characters=thinking)
    for note in effects.audit:
        if note.action == _BOUNDARY:
            yield signaled(
                SignalName.BOUNDARY_MATCHED, name=note.detail["boundary"], response=note.detail["response"]
            )
    for request in effects.approvals:
        yield signaled(SignalName.APPROVAL_ASKED, approval=request.id, action=request.action)
    for action in new_actions(before.whole.action_records, after.whole.action_records):
        result = action.result
        yield signaled(
            SignalName.DECISION, action=result.action, outcome=result.outcome.value, cost=result.cost
        )
    for experience in effects.experiences:
        if experience.lesson:
            outcome = experience.outcome.value
            yield signaled(SignalName.LESSON_EXTRACTED, action=experience.action, outcome=outcome)
    if effects.learned:
        yield signaled(SignalName.LEARNING_EXTRACTED, **memory_data(effects.learned))
    if effects.level is not None and level_changed:
        yield signaled(
            SignalName.BUDGET_LEVEL, before=effects.level.before.value, after=effects.level.after.value
        )
    if effects.nop:
        yield signaled(SignalName.REPLY_UNUSABLE, in_a_row=after.nops)
    yield from _of_working_memory(after.situation.working_memory, effects, signaled)


def new_actions(before: Sequence[ActionRecord], after: Sequence[ActionRecord]) -> list[ActionRecord]:
    """Return the actions whose outcome became known since `before`: new ones, and ones that were open."""
    return [
        action
        for index, action in enumerate(after)
        if action.result.outcome is not ActionOutcome.UNKNOWN
        and (index >= len(before) or before[index].result.outcome is not action.result.outcome)
    ]


def _of_working_memory(former: WorkingMemory, effects: Effects, signaled: Any) -> Iterator[Signal]:
    if effects.afterwards is None:
        return
    memory = effects.afterwards.working_memory
    yield signaled(
        SignalName.WORKING_MEMORY_SAVED,
        thoughts=len(memory.thoughts),
        concerns=len(memory.concerns),
        curiosity=len(memory.curiosity),
    )
    for name, entries, others in (
        (SignalName.CONCERN_ADDED, memory.concerns, former.concerns),
        (SignalName.CONCERN_RESOLVED, former.concerns, memory.concerns),
        (SignalName.CURIOSITY_ADDED, memory.curiosity, former.curiosity),
        (SignalName.CURIOSITY_SATISFIED, former.curiosity, memory.curiosity),
    ):
        if count := len(set(entries) - set(others)):
            yield signaled(name, count=count)
    if abs(memory.engagement - former.engagement) >= _ENGAGEMENT_STEP:
        yield signaled(
            SignalName.ENGAGEMENT_CHANGED,
            before=round(former.engagement, 3),
            after=round(memory.engagement, 3),
        )
