"""Effects of a heartbeat's outcomes on mood, drives and capabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from arbor.heartbeat.memory_sources import PEER_MESSAGE, USER_MESSAGE
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.situation import Situation
from arbor.selves.drives import CONTACT, GOAL_COMPLETED, SATISFACTION, Drive
from arbor.selves.emotions import Event

#: Percepts with news from outside (`apps.heartbeats.models.PerceptKind`).
NEWS = frozenset({USER_MESSAGE, PEER_MESSAGE, "environment"})
#: Actions with news from outside.
INQUIRIES = frozenset({"inquire_shallow", "inquire_deep"})

_OUTCOMES: Mapping[ActionOutcome, Event] = {
    ActionOutcome.SUCCESS: Event.SUCCESS,
    ActionOutcome.BLOCKED: Event.BLOCKED,
    ActionOutcome.FAILURE: Event.FAILURE,
}
_DEEDS: Mapping[str, Event] = {
    "rest": Event.REST,
    "reach_out_user": Event.REACH_OUT,
    "reach_out_public": Event.REACH_OUT,
}
_CHANGES: Mapping[GoalChangeKind, Event] = {
    GoalChangeKind.COMPLETED: Event.GOAL_DONE,
    GoalChangeKind.PROGRESSED: Event.GOAL_PROGRESSED,
    GoalChangeKind.CREATED: Event.GOAL_CREATED,
    GoalChangeKind.PLANNED: Event.GOAL_PLANNED,
    GoalChangeKind.BLOCKED: Event.GOAL_BLOCKED,
    GoalChangeKind.REFUSED: Event.GOAL_REFUSED,
    GoalChangeKind.ABANDONED: Event.GOAL_ABANDONED,
}


def events_of(reply: Reply, results: Sequence[ActionResult], changes: Sequence[GoalChange]) -> list[Event]:
    """Return the events that move the mood, in order; changes by rules do not count."""
    deeds = [_event(result) for result in results]
    moves = [_CHANGES.get(change.kind) for change in changes if not change.by_rule]
    return [
        *(event for event in (*deeds, *moves) if event is not None),
        *(Event.CONCERN for _ in reply.concerns),
    ]


def satisfactions(
    situation: Situation, results: Sequence[ActionResult], changes: Sequence[GoalChange]
) -> list[tuple[Drive, float]]:
    """Return the satisfied drives and by how much; goals closed by rules do not count."""
    found = [
        SATISFACTION[result.action]
        for result in results
        if result.outcome is ActionOutcome.SUCCESS and result.action in SATISFACTION
    ]
    found += [
        GOAL_COMPLETED for change in changes if change.kind is GoalChangeKind.COMPLETED and not change.by_rule
    ]
    # Contact with users: `arbor.selves.drives.in_touch`.
    found += [CONTACT for percept in situation.percepts if percept.kind == PEER_MESSAGE]
    return found


def causes(situation: Situation, results: Sequence[ActionResult], *, met_new: bool) -> dict[Drive, bool]:
    """Return for each drive whether its cause lasts after the heartbeat (seed 004, "Drives")."""
    return {
        Drive.CURIOSITY: not met_new,
        Drive.COHERENCE: bool(situation.contradictions),
        Drive.COMPETENCE: any(goal.fraction < 1 for goal in situation.goals),
        # Silence lasts until contact, which satisfies the drive.
        Drive.CONNECTION: True,
        Drive.REST: any(result.cost for result in results),
    }


def met_something_new(
    situation: Situation, results: Sequence[ActionResult], changes: Sequence[GoalChange]
) -> bool:
    """Return whether the heartbeat met news, a goal that no rule created, or an action never tried before."""
    tried = {capability.action for capability in situation.capabilities}
    return (
        any(percept.kind in NEWS for percept in situation.percepts)
        or any(change.kind is GoalChangeKind.CREATED and not change.by_rule for change in changes)
        or any(result.cost and result.action not in tried for result in results)
        or any(result.action in INQUIRIES and result.outcome is ActionOutcome.SUCCESS for result in results)
    )


class Tries(NamedTuple):
    """Attempts and successes of an action."""

    attempts: int
    successes: int


def learned_after(
    learned: Mapping[str, Sequence[int]], results: Sequence[ActionResult]
) -> dict[str, list[int]]:
    """Return attempts and successes by action after this heartbeat; refusals are no attempts."""
    counted = {action: Tries(*map(int, counts[:2])) for action, counts in learned.items()}
    for result in results:
        if result.outcome in (ActionOutcome.BLOCKED, ActionOutcome.UNKNOWN):
            continue
        before = counted.get(result.action, Tries(0, 0))
        counted[result.action] = Tries(
            before.attempts + 1, before.successes + (result.outcome is ActionOutcome.SUCCESS)
        )
    return {action: list(tries) for action, tries in counted.items()}


def _event(result: ActionResult) -> Event | None:
    if result.outcome is ActionOutcome.SUCCESS and result.action in _DEEDS:
        return _DEEDS[result.action]
    return _OUTCOMES.get(result.outcome)
