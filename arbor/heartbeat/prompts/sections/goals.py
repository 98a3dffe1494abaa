"""Sections about goals, plans and intents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arbor.clock import format_time
from arbor.goals.plans import PlanStatus
from arbor.goals.values import GoalState, GoalType, feeling_word
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.views import GoalView, IntentView, IssueView, PlanView, StepView
from arbor.quotations import Data, counted, line

# The most entries that are shown; the text counts the others. The number of goals is from the origin of seed 000.
SHOWN_QUEUED = 5
SHOWN_ISSUES = 8
#: Characters of a line about the procedure that an intent follows.
PROCEDURE_LENGTH = 1_200


def goals(situation: Situation, data: Data) -> str:
    if not situation.goals:
        return "## Goals\nYou have no goals."
    queued = situation.goals_in(GoalState.QUEUED)
    lines: list[str] = []
    for goal in (*situation.active_goals, *queued[:SHOWN_QUEUED]):
        lines.extend(_goal(goal))
    left = len(queued) - SHOWN_QUEUED
    more = f"\nQueued besides these: {left}." if left > 0 else ""
    on_backburner = len(situation.goals_in(GoalState.BACKBURNER))
    body = data.block(lines) if lines else "None is active or queued."
    return f"## Goals\n{body}{more}" + (f"\nOn the backburner: {on_backburner}." if on_backburner else "")


def overview(goals: Sequence[GoalView]) -> str:
    """Return one line for each open goal, by state."""
    states = [GoalState.ACTIVE, GoalState.QUEUED, GoalState.BACKBURNER]
    return "\n".join(_short_line(goal) for state in states for goal in goals if goal.state is state)


def intents(intents: Sequence[IntentView], data: Data) -> str:
    entries = (entry for intent in intents for entry in _intent(intent))
    return data.section("## Pending intents", entries, otherwise="## Pending intents\nNone.")


def issues(issues: Sequence[IssueView], data: Data) -> str:
    entries = (
        f"{issue.advice}: {f'[{issue.goal_id}] ' if issue.goal_id else ''}{line(issue.text)}"
        for issue in issues[:SHOWN_ISSUES]
    )
    left = len(issues) - SHOWN_ISSUES
    return data.section("## Flagged issues", entries) + (f"\nBesides these: {left}." if left > 0 else "")


def plan(situation: Situation, data: Data) -> str:
    """Render the plan of the most important active goal that has one."""
    shown = situation.shown_plan
    if shown is None:
        return ""
    kind = "Plan" if shown.status is PlanStatus.ACTIVE else "Draft of a plan, by a person"
    goal = next(goal for goal in situation.goals if goal.id == shown.goal_id)
    return f"## {kind}\n" + data.block(_plan(shown, goal))


def _plan(plan: PlanView, goal: GoalView) -> Iterator[str]:
    estimates = {"heartbeats": plan.estimated_ticks, "energy": plan.estimated_cost, "risk": plan.risk}
    estimates_text = ", ".join(f"{name} {value:g}" for name, value in estimates.items() if value is not None)
    yield f"for goal [{goal.id}] {line(goal.title)}" + (
        f" (estimated: {estimates_text})" if estimates_text else ""
    )
    for dependency in plan.dependencies:
        yield f"    {'waits for' if dependency in plan.waits_for else 'met'}: {line(dependency)}"
    if plan.waits_for:
        yield "    Its steps wait too. Write a dependency that is met under `met` in the goal's update."
    for step in plan.steps:
        yield f"{step.position}. {step.status}: {step.action}: {line(step.description)}"
        yield from _conditions(step)


def _conditions(step: StepView | IntentView) -> Iterator[str]:
    if step.precondition:
        yield f"    before: {line(step.precondition)}"
    if step.postcondition:
        yield f"    after: {line(step.postcondition)}"


def _intent(intent: IntentView) -> Iterator[str]:
    details = [f"for goal {intent.goal_id}"]
    if intent.attempts:
        details.append(f"attempts: {intent.attempts}")
    if intent.tick_limit is not None:
        details.append(f"heartbeats spent: {intent.ticks_used} of at most {intent.tick_limit}")
    if intent.procedure:
        details.append(f"follows {intent.procedure_id}")
    yield f"[{intent.id}] {intent.action}: {line(intent.description)} ({'; '.join(details)})"
    yield from _conditions(intent)
    for text in intent.procedure:
        yield f"    {line(text, PROCEDURE_LENGTH)}"


def _short_line(goal: GoalView) -> str:
    details = [goal.state, f"{goal.fraction:.0%} done", *_relations_of(goal)]
    return f"[{goal.id}] {line(goal.title)} ({', '.join(details)})"


def _goal(goal: GoalView) -> Iterator[str]:
    details = [
        goal.state,
        goal.layer if goal.type is GoalType.ACHIEVE else f"{goal.layer} to {goal.type}",
        f"from {goal.source}",
        f"priority {goal.priority:.2f}",
        f"{goal.fraction:.0%} done",
    ]
    if goal.effort:
        details.append(counted(goal.effort, "heartbeat spent", "heartbeats spent"))
    if feeling := feeling_word(goal.emotional_valence):
        details.append(feeling)
    details.extend(_relations_of(goal))
    yield f"[{goal.id}] {line(goal.title)} ({', '.join(details)})"
    if goal.description:
        yield f"    done when: {line(goal.description)}"
    if goal.blocked_by:
        yield f"    waits for: {line(goal.blocked_by)}"
    for note in goal.notes:
        yield f"    note: {line(note)}"


def _relations_of(goal: GoalView) -> Iterator[str]:
    if goal.parent_id:
        yield f"part of {goal.parent_id}"
    if goal.deadline is not None:
        yield f"due {format_time(goal.deadline)}"
    yield from goal.flags
