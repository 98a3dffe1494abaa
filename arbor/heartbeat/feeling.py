"""What a heartbeat does to how an agent feels, what drives it, and what it can do: told from what really happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from arbor.heartbeat.reply import Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.situation import Situation
from arbor.selves.drives import CONTACT, GOAL_COMPLETED, SATISFACTION, Drive
from arbor.selves.emotions import Event

#: Percepts by which another agent gets in touch, and those that bring something new from outside
#: (`apps.heartbeats.models.PerceptKind`).
PEER_MESSAGE = "peer_message"
NEWS = frozenset({"user_message", PEER_MESSAGE, "environment"})
#: Actions that bring something new from outside.
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
    """Return what of a beat's deeds moves the mood, in order; what a rule did to a goal is no deed."""
    deeds = [_event(result) for result in results]
    moves = [_CHANGES.get(change.kind) for change in changes if not change.by_rule]
    return [
        *(each for each in (*deeds, *moves) if each is not None),
        *(Event.CONCERN for _ in reply.concerns),
    ]


def satisfactions(
    situation: Situation, results: Sequence[ActionResult], changes: Sequence[GoalChange]
) -> list[tuple[Drive, float]]:
    """Return which drives the beat satisfied, by how much; a goal that a rule closed satisfies none."""
    found = [
        SATISFACTION[result.action]
        for result in results
        if result.outcome is ActionOutcome.SUCCESS and result.action in SATISFACTION
    ]
    found += [
        GOAL_COMPLETED for change in changes if change.kind is GoalChangeKind.COMPLETED and not change.by_rule
    ]
    # Users are in touch in more ways than by percepts: `arbor.selves.drives.in_touch` sees to them.
    found += [CONTACT for percept in situation.percepts if percept.kind == PEER_MESSAGE]
    return found


def causes(situation: Situation, results: Sequence[ActionResult], *, met_new: bool) -> dict[Drive, bool]:
    """Return of each drive whether what lets it build up lasts after the beat (seed 004, "Drives")."""
    return {
        Drive.CURIOSITY: not met_new,
        Drive.COHERENCE: bool(situation.contradictions),
        Drive.COMPETENCE: any(goal.fraction < 1 for goal in situation.goals),
        # Silence lasts until somebody breaks it, which satisfies the drive.
        Drive.CONNECTION: True,
        Drive.REST: any(result.cost for result in results),
    }


def met_something_new(
    situation: Situation, results: Sequence[ActionResult], changes: Sequence[GoalChange]
) -> bool:
    """Return whether the beat met something new: words from outside, a goal taken up, an action never tried before.

    A goal that a rule made is nothing new: it may be there because nothing is.
    """
    tried = {each.action for each in situation.capabilities}
    return (
        any(percept.kind in NEWS for percept in situation.percepts)
        or any(change.kind is GoalChangeKind.CREATED and not change.by_rule for change in changes)
        or any(result.cost and result.action not in tried for result in results)
        or any(result.action in INQUIRIES and result.outcome is ActionOutcome.SUCCESS for result in results)
    )


class Tries(NamedTuple):
    """How often an action was tried and how often it worked."""

    attempts: int
    successes: int


def learned_after(
    learned: Mapping[str, Sequence[int]], results: Sequence[ActionResult]
) -> dict[str, list[int]]:
    """Return how often each action was tried and worked, this beat's included; what was refused was not tried."""
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
