"""The prompt's parts about what the agent wants, and the steps it is committed to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arbor.goals.values import GoalState
from arbor.heartbeat.sections.text import Data, line, when
from arbor.heartbeat.situation import GoalView, IntentView, Situation

# What is left out is counted in the text. Goals: the origin of seed 000.
SHOWN_QUEUED = 5


def goals(situation: Situation, data: Data) -> str:
    if not situation.goals:
        return "## Goals\nYou have no goals."
    queued = situation.goals_in(GoalState.QUEUED)
    lines: list[str] = []
    for goal in (*situation.active_goals, *queued[:SHOWN_QUEUED]):
        lines.extend(_goal(goal))
    left = len(queued) - SHOWN_QUEUED
    more = f"\nQueued besides these: {left}." if left > 0 else ""
    aside = len(situation.goals_in(GoalState.BACKBURNER))
    body = data.block(lines) if lines else "None is active or queued."
    return f"## Goals\n{body}{more}" + (f"\nOn the backburner: {aside}." if aside else "")


def intents(intents: Sequence[IntentView], data: Data) -> str:
    if not intents:
        return "## Pending intents\nNone."
    return "## Pending intents\n" + data.block(
        f"[{intent.id}] {intent.action}: {line(intent.description)} (for goal {intent.goal_id}"
        + (f"; failed attempts: {intent.attempts})" if intent.attempts else ")")
        for intent in intents
    )


def _goal(goal: GoalView) -> Iterator[str]:
    about = [goal.state, goal.layer, f"from {goal.source}", f"{goal.fraction:.0%} done"]
    if goal.deadline is not None:
        about.append(f"due {when(goal.deadline)}")
    about.extend(goal.flags)
    yield f"[{goal.id}] {line(goal.title)} ({', '.join(about)})"
    if goal.description:
        yield f"    done when: {line(goal.description)}"
    for note in goal.notes:
        yield f"    note: {line(note)}"
