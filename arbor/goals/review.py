"""Review the backlog: find goals that need attention, and advise what to do (seed 004, 4.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from arbor.goals.likeness import shared_words
from arbor.goals.plans import PlanStatus
from arbor.goals.priority import PRESSING, urgency
from arbor.goals.values import MAX_ACTIVE, MAX_QUEUED, GoalLayer, GoalState

# Seed 004, 4.4 and 9.1.
STALE_AFTER = timedelta(days=7)
# Addends of a queued goal's relevance, and the relevance from which the review suggests to activate the goal.
RELEVANCE_OF_MEMORY = 0.5
RELEVANCE_OF_CLUSTER = 0.5
RELEVANCE_OF_DEADLINE = 1.0
RELEVANT_FROM = 0.5
#: The most queued goals that one review suggests to activate.
MAX_PROMOTED = 2


class GoalFlag(StrEnum):
    """A reason why a goal needs attention."""

    #: The goal waits for something else.
    BLOCKED = "blocked"
    #: The goal is active and was not touched for a week.
    STALE = "stale"
    #: The goal's deadline has passed.
    OVERDUE = "overdue"
    #: The goal contradicts something the agent believes or knows.
    CONTRADICTED = "contradicted"
    #: All intents of the goal have ended, and none was completed.
    DEAD_LETTERED = "dead-lettered"
    #: The goal's plan was abandoned.
    REPLAN = "needs a new plan"
    #: All steps of the goal's plan are done.
    CARRIED_OUT = "plan carried out"


class Advice(StrEnum):
    """The advice of a review."""

    #: Attend to a problem of a goal.
    ATTEND = "attend"
    #: Abandon a goal.
    ABANDON = "abandon"
    #: Activate a queued goal, or queue one from the backburner.
    PROMOTE = "promote"
    #: Think of goals.
    BRAINSTORM = "brainstorm"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewedGoal:
    """An open goal, as the input of a review."""

    id: str
    title: str
    state: GoalState
    touched_at: datetime
    layer: GoalLayer = GoalLayer.OBJECTIVE
    deadline: datetime | None = None
    #: The goal's present blocker; empty: none.
    blocker: str = ""
    #: The belief, memory or aspect that contradicts the goal; empty: none known.
    contradiction: str = ""
    #: Counts of the goal's intents: all, open, completed.
    intents: int = 0
    intents_open: int = 0
    intents_done: int = 0
    #: The status of the latest plan, and the reason why it was abandoned.
    plan: PlanStatus | None = None
    plan_reason: str = ""
    #: Linked memories that are active now.
    present_memories: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Issue:
    """A finding of the review, in the words of the prompt; `goal_id` is empty for one about no goal."""

    advice: Advice
    text: str
    goal_id: str = ""


def flag_goal(goal: ReviewedGoal, now: datetime) -> tuple[GoalFlag, ...]:
    """Return the flags of a goal; a closed goal has none, and only an active one goes stale or needs a plan.

    An aspiration does not go stale, because it never ends.
    """
    if not goal.state.is_open:
        return ()
    flags: list[GoalFlag] = []
    if goal.blocker.strip():
        flags.append(GoalFlag.BLOCKED)
    active = goal.state is GoalState.ACTIVE
    if active and goal.layer is not GoalLayer.ASPIRATION and now - goal.touched_at > STALE_AFTER:
        flags.append(GoalFlag.STALE)
    if goal.deadline is not None and goal.deadline < now:
        flags.append(GoalFlag.OVERDUE)
    if goal.contradiction:
        flags.append(GoalFlag.CONTRADICTED)
    if active and goal.intents_open == 0:
        if goal.intents > 0 and goal.intents_done == 0:
            flags.append(GoalFlag.DEAD_LETTERED)
        if goal.plan is PlanStatus.ABANDONED:
            flags.append(GoalFlag.REPLAN)
        elif goal.plan is PlanStatus.COMPLETED:
            flags.append(GoalFlag.CARRIED_OUT)
    return tuple(flags)


def relevance(goal: ReviewedGoal, *, cluster_names: Sequence[str], now: datetime) -> float:
    """Return a queued goal's relevance, from its active memories, active clusters like it, and its deadline."""
    score = RELEVANCE_OF_MEMORY if goal.present_memories else 0.0
    if any(shared_words(goal.title, cluster_name) for cluster_name in cluster_names):
        score += RELEVANCE_OF_CLUSTER
    if urgency(goal.deadline, now) >= PRESSING:
        score += RELEVANCE_OF_DEADLINE
    return score


def review(goals: Sequence[ReviewedGoal], *, cluster_names: Sequence[str], now: datetime) -> list[Issue]:
    """Review the open goals, most important first, those on the backburner last; `cluster_names` are the names of active clusters."""
    if not goals:
        return [Issue(advice=Advice.BRAINSTORM, text="You have no goals. Think of some worth wanting.")]
    issues: list[Issue] = []
    shelved: list[Issue] = []
    for goal in goals:
        (shelved if goal.state is GoalState.BACKBURNER else issues).extend(_issues_of(goal, now))
    return [*issues, *_promotions(goals, cluster_names, now), *shelved]


def _issues_of(goal: ReviewedGoal, now: datetime) -> Iterable[Issue]:
    for flag in flag_goal(goal, now):
        advice = Advice.ABANDON if flag is GoalFlag.CONTRADICTED else Advice.ATTEND
        yield Issue(advice=advice, text=f"{goal.title}: {_describe_flag(flag, goal, now)}", goal_id=goal.id)


def _describe_flag(flag: GoalFlag, goal: ReviewedGoal, now: datetime) -> str:
    match flag:
        case GoalFlag.BLOCKED:
            return f"it is blocked by {goal.blocker.strip()}. See to that first, or put it back."
        case GoalFlag.STALE:
            days = (now - goal.touched_at).days
            return f"nothing has happened to it for {days} days. Go on with it, put it back or give it up."
        case GoalFlag.OVERDUE:
            return "its deadline has passed. Finish it, or give it up."
        case GoalFlag.CONTRADICTED:
            return f"it goes against what you hold: {goal.contradiction}. Consider giving it up."
        case GoalFlag.DEAD_LETTERED:
            ended = (
                "its only step has ended, and was not"
                if goal.intents == 1
                else f"all its {goal.intents} steps have ended, and none was"
            )
            return f"{ended} done. Find another way, or give it up."
        case GoalFlag.REPLAN:
            return f"its plan was given up ({goal.plan_reason or 'no reason noted'}). It needs a new one."
        case GoalFlag.CARRIED_OUT:
            return "every step of its plan is done. Complete it, or plan what is still missing."


def _promotions(goals: Sequence[ReviewedGoal], cluster_names: Sequence[str], now: datetime) -> list[Issue]:
    """Suggest queued goals to activate: relevant ones while there is room, or the first one while none is active.

    Where no goal is active and none can become so, suggest to queue the first one of the backburner while there is room; a blocked
    goal is never suggested.

    Without room, only an urgent deadline is a reason to make some, or that all active goals are aspirations, which are no work.
    """
    active = [goal for goal in goals if goal.state is GoalState.ACTIVE]
    full = len(active) >= MAX_ACTIVE
    queued = [goal for goal in goals if goal.state is GoalState.QUEUED and not goal.blocker.strip()]
    waiting = [goal for goal in queued if goal.layer is not GoalLayer.ASPIRATION]
    if full and waiting and all(goal.layer is GoalLayer.ASPIRATION for goal in active):
        return [_promotion(waiting[0], _ONLY_ASPIRATIONS)]
    if full:
        queued = [goal for goal in queued if urgency(goal.deadline, now) >= PRESSING]
    scored = [(relevance(goal, cluster_names=cluster_names, now=now), goal) for goal in queued]
    ranked = sorted((pair for pair in scored if pair[0] >= RELEVANT_FROM), key=lambda pair: -pair[0])
    why = _MAKE_ROOM if full else "it bears on the present moment"
    issues = [_promotion(goal, why) for _, goal in ranked[:MAX_PROMOTED]]
    if not active and not issues:
        issues = [_promotion(goal, "you have no active goal") for goal in queued[:1]]
    in_queue = sum(goal.state is GoalState.QUEUED for goal in goals)
    if not active and not issues and in_queue < MAX_QUEUED:
        backburner = [
            goal for goal in goals if goal.state is GoalState.BACKBURNER and not goal.blocker.strip()
        ]
        why = "all that is queued is blocked" if in_queue else "nothing else is on your list"
        issues = [_promotion(goal, why) for goal in backburner[:1]]
    return issues


_MAKE_ROOM = f"its deadline presses; {MAX_ACTIVE} goals are active, so queue one of them to make room"
_ONLY_ASPIRATIONS = (
    f"no active goal calls for work; {MAX_ACTIVE} aspirations are active, so queue one of them to make room"
)


def _promotion(goal: ReviewedGoal, why: str) -> Issue:
    to = GoalState.ACTIVE if goal.state is GoalState.QUEUED else GoalState.QUEUED
    return Issue(advice=Advice.PROMOTE, text=f"{goal.title}: make it {to}, for {why}.", goal_id=goal.id)
