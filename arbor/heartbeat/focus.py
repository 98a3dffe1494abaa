"""The mode of a heartbeat and the query of its recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from arbor.authority.reflexes import INQUIRIES
from arbor.contacts.cooldown import REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.goals.goal_rules import calls_for_work
from arbor.heartbeat.params.memory import QUERY_LENGTH
from arbor.heartbeat.situation import USER_MESSAGE, Mode, PerceptView, Situation
from arbor.quotations import counted

# Seed 000, 6.
CONSOLIDATION_EVERY = 5
#: Actions that are refused in consolidation, which is about memory, not about new information (seed 004, 10.4).
NOT_IN_CONSOLIDATION = INQUIRIES | {REACH_OUT_USER, REACH_OUT_PUBLIC, "brainstorm_goals"}
CONSOLIDATION_REFUSAL = "this heartbeat consolidates the memory; look for news, write to people and brainstorm goals at the next one"
# The latest memories, which a recall is about if the agent has no thought.
_LATEST = 3


class Subject(NamedTuple):
    """The name of something to reflect on, and what it is about."""

    name: str
    about: str


def mode_of(situation: Situation) -> Mode:
    """Return the mode for the situation; aspirations, the goal to spend less, and goals whose plan waits are no work."""
    pending = len(situation.pending_intents)
    waiting = situation.waiting_goals
    work = sum(
        calls_for_work(goal.layer, goal.rule) and goal.id not in waiting for goal in situation.active_goals
    )
    return choose_mode(
        user_waiting=situation.environment.user_waiting,
        heartbeat_number=situation.beat_number,
        active_goals=work or pending,
        pending_intents=pending,
        wants_consolidation=situation.working_memory.wants_consolidation,
    )


def choose_mode(
    *,
    user_waiting: bool,
    heartbeat_number: int,
    active_goals: int,
    pending_intents: int,
    wants_consolidation: bool = False,
) -> Mode:
    """Choose the mode.

    The order is that of the origin of seed 000; the order of the document would starve consolidation. `heartbeat_number`
    counts from 1, `pending_intents` counts intents of active goals; `wants_consolidation`: ten turns of conversations were
    answered since the last consolidation (seed 000, 7).
    """
    if user_waiting:
        return Mode.CONVERSATION
    if wants_consolidation or (heartbeat_number > 0 and heartbeat_number % CONSOLIDATION_EVERY == 0):
        return Mode.CONSOLIDATION
    if active_goals and not pending_intents:
        return Mode.PLAN_EXECUTION
    if active_goals:
        return Mode.GOAL_PURSUIT
    return Mode.REFLECTION


def explain_mode(situation: Situation) -> str:
    """Return the reason for the mode, in words."""
    pending = len(situation.pending_intents)
    match mode_of(situation):
        case Mode.CONVERSATION:
            return "a user was waiting for an answer"
        case Mode.CONSOLIDATION if situation.working_memory.wants_consolidation:
            return "people had talked much with the agent since it last consolidated its memory"
        case Mode.CONSOLIDATION:
            return f"every {CONSOLIDATION_EVERY}th heartbeat consolidates the memory"
        case Mode.PLAN_EXECUTION:
            return "a goal was active, and no step towards it was committed"
        case Mode.GOAL_PURSUIT:
            return f"{counted(pending, 'committed step')} waited to be done"
        case Mode.REFLECTION:
            return "nobody was waiting, and no active goal called for work"


def consolidation_refusals(situation: Situation) -> dict[str, str]:
    """Return the reason for each action that consolidation refuses; such an action, or its step, waits."""
    if situation.mode is not Mode.CONSOLIDATION:
        return {}
    offered = {offer.name for offer in situation.actions}
    return {name: CONSOLIDATION_REFUSAL for name in NOT_IN_CONSOLIDATION if name not in offered}


def focus_text(situation: Situation) -> str:
    """Return the query of the recall, at most 500 characters; empty without anything to recall about.

    In order of precedence: the foremost percept, the most important goal to work on with its next intent, the latest question
    or concern, the other active goals and the clusters in turn, the latest thought, the latest memories. Consolidation skips the parts
    between percepts and thoughts.
    """
    return " ".join(_focus(situation).split())[:QUERY_LENGTH]


def subject_in_turn(situation: Situation) -> Subject | None:
    """Return an active goal or a cluster, another one at each heartbeat; None without any.

    The same aspiration at each reflection would bring the same memories to mind for weeks.
    """
    subjects = [Subject(goal.title, goal.description) for goal in situation.active_goals]
    subjects += [Subject(cluster.name, " ".join(cluster.keywords)) for cluster in situation.clusters]
    return subjects[turn_of(situation) % len(subjects)] if subjects else None


def turn_of(situation: Situation) -> int:
    """Return the heartbeat's number among those without consolidation.

    By the number of the heartbeat itself, one of five subjects would never have its turn.
    """
    return situation.beat_number - situation.beat_number // CONSOLIDATION_EVERY


def foremost_percept(percepts: Sequence[PerceptView]) -> PerceptView | None:
    """Return the last message of a user, or else the last percept."""
    messages = [percept for percept in percepts if percept.kind == USER_MESSAGE] or percepts
    return messages[-1] if messages else None


def _focus(situation: Situation) -> str:
    if percept := foremost_percept(situation.percepts):
        return percept.content
    memory = situation.working_memory
    if mode_of(situation) is not Mode.CONSOLIDATION:
        steps = {intent.goal_id: intent for intent in reversed(situation.pending_intents)}
        active = situation.active_goals
        if goal := situation.foremost_goal or next((goal for goal in active if goal.id in steps), None):
            step = steps.get(goal.id)
            return f"{step.description} {goal.title}" if step else f"{goal.title} {goal.description}"
        if lines := [*reversed(memory.curiosity), *reversed(memory.concerns)]:
            return lines[0]
        if subject := subject_in_turn(situation):
            return f"{subject.name} {subject.about}"
    if memory.thoughts:
        return memory.thoughts[-1].text
    return " ".join(view.content for view in situation.recent[-_LATEST:])
