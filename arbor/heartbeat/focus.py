"""What a heartbeat recalls about before it thinks."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.goals.injection import calls_for_work
from arbor.heartbeat.learning import USER_MESSAGE
from arbor.heartbeat.modes import CONSOLIDATION_EVERY, Mode, choose_mode
from arbor.heartbeat.params.parts import QUERY_LENGTH
from arbor.heartbeat.situation import PerceptView, Situation

# Consolidation looks around the latest memories, not at one question.
_LATEST = 3


def mode_of(situation: Situation) -> Mode:
    """Return the mode that the situation calls for.

    With nothing but aspirations, or the wish to spend less, it is reflection's part to find what to do about them.
    """
    pending = len(situation.pending_intents)
    work = sum(calls_for_work(goal.layer, goal.rule) for goal in situation.active_goals)
    return choose_mode(
        user_waiting=situation.environment.user_waiting,
        beat_number=situation.beat_number,
        active_goals=work or pending,
        pending_intents=pending,
        much_was_talked=situation.working_memory.wants_consolidation,
    )


def why_mode(situation: Situation) -> str:
    """Return in words what of the situation decided its mode, by the order of `choose_mode`."""
    pending = len(situation.pending_intents)
    match mode_of(situation):
        case Mode.CONVERSATION:
            return "a user was waiting for an answer"
        case Mode.CONSOLIDATION if situation.working_memory.wants_consolidation:
            return "much had been talked since it last tended its memory"
        case Mode.CONSOLIDATION:
            return f"every {CONSOLIDATION_EVERY}th heartbeat tends the memory"
        case Mode.PLAN_EXECUTION:
            return "a goal was active, and no step towards it was committed"
        case Mode.GOAL_PURSUIT:
            return f"{pending} committed {'step' if pending == 1 else 'steps'} waited to be done"
        case Mode.REFLECTION:
            return "nobody was waiting, and no active goal called for work"


def focus_text(situation: Situation) -> str:
    """Return what to recall about, at most 500 characters; empty when there is nothing on the agent's mind.

    What somebody just said goes before the step to be done, that before the goal, that before what the agent wonders or
    worries about, and that before its latest thought or experience.
    """
    return " ".join(_focus(situation).split())[:QUERY_LENGTH]


def foremost(percepts: Sequence[PerceptView]) -> PerceptView | None:
    """Return what an agent attends to of what reached it: what a user said last, or else what came last."""
    said = [each for each in percepts if each.kind == USER_MESSAGE] or percepts
    return said[-1] if said else None


def _focus(situation: Situation) -> str:
    heard = foremost(situation.percepts)
    if heard is not None:
        return heard.content
    memory = situation.working_memory
    if mode_of(situation) is not Mode.CONSOLIDATION:
        goals = {goal.id: goal for goal in situation.active_goals}
        for intent in situation.pending_intents:
            return f"{intent.description} {goals[intent.goal_id].title}"
        for goal in goals.values():
            return f"{goal.title} {goal.description}"
        for line in (*reversed(memory.curiosity), *reversed(memory.concerns)):
            return line
    if memory.thoughts:
        return memory.thoughts[-1].text
    return " ".join(view.content for view in situation.recent[-_LATEST:])
