"""Execution of intents by the reflex policy: by their action, or the nearest possible one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from arbor.heartbeat.goal_views import GoalView, IntentView
from arbor.heartbeat.quoting import quoted
from arbor.heartbeat.reflex_draft import Draft, excerpt
from arbor.heartbeat.reflex_memories import closest, gist
from arbor.heartbeat.situation import MemoryView, Situation
from arbor.memory.relations import Relation

#: Substitutes for an impossible action, the nearest first.
STAND_INS = ("reflect", "remember", "recall")


def carry_out(intent: IntentView, goal: GoalView, situation: Situation, draft: Draft) -> bool:
    """Execute an intent by its action or a substitute; False if none is possible."""
    for name in dict.fromkeys((intent.action, *STAND_INS)):
        params = _PARAMS[name](intent, goal, situation) if name in _PARAMS else None
        if params is None or not draft.may(name):
            continue
        # An action that is too expensive now is worth waiting for.
        return draft.act(name, params, intent.description[:500], goal_id=goal.id, intent_id=intent.id)
    return False


def _recall_for(intent: IntentView, goal: GoalView, _: Situation) -> dict[str, Any]:
    return query_of(goal.title, intent.description)


def _reflect_for(intent: IntentView, goal: GoalView, situation: Situation) -> dict[str, Any]:
    known = [quoted(gist(view)) for view in situation.relevant[:2]]
    basis = f"I know {' and '.join(known)}" if known else "I know little yet"
    needs = excerpt(goal.description) or "a clear end"
    return {
        "insight": f"{excerpt(intent.description, 200)}: {basis}; what {quoted(excerpt(goal.title))} still needs is: {needs}",
        "focus": excerpt(goal.title),
    }


def _remember_for(intent: IntentView, goal: GoalView, situation: Situation) -> dict[str, Any]:
    known = f" I go by {quoted(gist(situation.relevant[0]))}." if situation.relevant else ""
    text = f"{quoted(excerpt(goal.title))} stands at {goal.fraction:.0%} after {quoted(excerpt(intent.description))}.{known}"
    return {"content": text, "type": "semantic", "importance": 0.6}


def _connect_for(_: IntentView, __: GoalView, situation: Situation) -> dict[str, Any] | None:
    pair = closest(situation)
    return None if pair is None else connection(pair[0], pair[1])


def _rest_for(_: IntentView, __: GoalView, ___: Situation) -> dict[str, Any]:
    return {}


# By action, the parameters for an intent; None where the situation lacks the material.
_PARAMS: Mapping[str, Callable[[IntentView, GoalView, Situation], dict[str, Any] | None]] = {
    "recall": _recall_for,
    "reflect": _reflect_for,
    "remember": _remember_for,
    "connect": _connect_for,
    "rest": _rest_for,
}


def query_of(*parts: str) -> dict[str, Any]:
    """Return the parameters of a recall about these words."""
    return {"query": excerpt(" ".join(parts), 400) or "anything", "limit": None}


def connection(first: MemoryView, second: MemoryView) -> dict[str, Any]:
    """Return the parameters that connect two memories."""
    relation = Relation.ASSOCIATED if first.type is second.type else Relation.SUPPORTS
    return {"from_id": first.id, "to_id": second.id, "relation": relation.value}
