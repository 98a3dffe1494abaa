"""What each action of a heartbeat does: one function each, by the name of the action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from apps.heartbeats.acts import goals, inquiry, maintain, memory, reach_out, sensing
from apps.heartbeats.acts.desk import Desk, rest
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import ActionResult

#: Runs in the transaction that is open; what the domain refuses it raises as ArborError before it has written anything.
type Act = Callable[[Desk, Decision], ActionResult]

ACTS: Mapping[str, Act] = MappingProxyType(
    {
        "recall": memory.recall,
        "observe": sensing.observe,
        "remember": memory.remember,
        "maintain": maintain.maintain,
        "synthesize": memory.synthesize,
        "reflect": memory.reflect,
        "connect": memory.connect_things,
        "review_goals": goals.review_goals,
        "brainstorm_goals": goals.brainstorm_goals,
        "reprioritize": goals.reprioritize,
        "inquire_shallow": inquiry.inquire,
        "inquire_deep": inquiry.inquire,
        "reach_out_user": reach_out.reach_out_user,
        "reach_out_public": reach_out.reach_out_public,
        "rest": rest,
    }
)
