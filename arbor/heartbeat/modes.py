"""Modes of a heartbeat."""

from __future__ import annotations

from enum import StrEnum

# Seed 000, 6.
CONSOLIDATION_EVERY = 5


class Mode(StrEnum):
    """The focus of a heartbeat; decides the directive in its prompt."""

    #: A user waits for an answer.
    CONVERSATION = "conversation"
    #: The memory needs consolidation.
    CONSOLIDATION = "consolidation"
    #: Goals are active but nothing is committed: break one into steps.
    PLAN_EXECUTION = "plan_execution"
    #: A committed step waits: do it.
    GOAL_PURSUIT = "goal_pursuit"
    #: Nothing presses: think, and find something worth wanting.
    REFLECTION = "reflection"


def choose_mode(
    *,
    user_waiting: bool,
    beat_number: int,
    active_goals: int,
    pending_intents: int,
    much_was_talked: bool = False,
) -> Mode:
    """Choose the mode.

    The order is that of the origin's code; its document's would starve consolidation. `beat_number` counts from 1;
    `pending_intents` of active goals; `much_was_talked`: ten questions of people since consolidation (seed 000, 7).
    """
    if user_waiting:
        return Mode.CONVERSATION
    if much_was_talked or (beat_number > 0 and beat_number % CONSOLIDATION_EVERY == 0):
        return Mode.CONSOLIDATION
    if active_goals and not pending_intents:
        return Mode.PLAN_EXECUTION
    if active_goals:
        return Mode.GOAL_PURSUIT
    return Mode.REFLECTION
