"""Fewer actions for a model with a small window, chosen by what the moment needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_USER
from arbor.goals.plans import OPEN_STEPS
from arbor.heartbeat.prompts.token_shares import room_of
from arbor.heartbeat.situation import PEER_MESSAGE, Mode, Situation

#: A window is small if it leaves fewer tokens for the prompt: 2,500 for rules, actions and character, and the 5,000 of the
#: sides (seed 003, 10.6).
SMALL_PROMPT = 7_500

_ALWAYS = frozenset({"recall", "remember", "reflect", "rest"})
_TOWARDS_GOALS = frozenset({"inquire_shallow", "synthesize", REACH_OUT_USER})
# Goals are changed and created by other keys of the reply, at no price, and `inquire_shallow` asks what `inquire_deep` does.
_BY_MODE: Mapping[Mode, frozenset[str]] = {
    Mode.CONVERSATION: _TOWARDS_GOALS,
    Mode.CONSOLIDATION: frozenset({"connect", "maintain"}),
    Mode.PLAN_EXECUTION: _TOWARDS_GOALS | {"connect", REACH_OUT_AGENT},
    Mode.GOAL_PURSUIT: _TOWARDS_GOALS,
    Mode.REFLECTION: frozenset({"connect", "inquire_shallow", "synthesize"}),
}


def is_small(*, window: int, reply: int) -> bool:
    """Return whether a model with this window and a reply of at most `reply` tokens needs a compact prompt."""
    return room_of(window=window, fixed=0, reply=reply) < SMALL_PROMPT


def with_fewer_actions(situation: Situation) -> Situation:
    """Return the situation with the actions that its mode, intents, plans, percepts and contradictions need.

    The others stay permitted: an action that the model names nevertheless is decided as any other.
    """
    needed = frozenset(_needed(situation))
    return situation.model_copy(
        update={"actions": [offer for offer in situation.actions if offer.name in needed]}
    )


def _needed(situation: Situation) -> Iterator[str]:
    yield from _ALWAYS | _BY_MODE[situation.mode]
    yield from (intent.action for intent in situation.intents)
    yield from (step.action for plan in situation.plans for step in plan.steps if step.status in OPEN_STEPS)
    if any(percept.kind == PEER_MESSAGE for percept in situation.percepts):
        yield REACH_OUT_AGENT
    if situation.environment.user_waiting:
        yield REACH_OUT_USER
    if situation.contradictions:
        yield "maintain"
