"""Actions that services execute at once, in the open transaction, by name.

All other actions are steps of `arbor.heartbeat.steps.actions`, written with the effects of the heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from apps.heartbeats.actions.context import ActionContext
from apps.heartbeats.actions.maintain import maintain
from apps.heartbeats.actions.observation import observe, review_goals
from apps.heartbeats.actions.reach_out import reach_out_agent, reach_out_public, reach_out_user
from apps.heartbeats.actions.relations import connect_nodes
from apps.heartbeats.actions.workflows import complete_step, start_workflow
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import ActionResult

#: Raises ArborError, before anything is written, for an action that the domain refuses.
type Action = Callable[[ActionContext, Decision], ActionResult]

ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        "observe": observe,
        "maintain": maintain,
        "connect": connect_nodes,
        "review_goals": review_goals,
        "reach_out_user": reach_out_user,
        "reach_out_agent": reach_out_agent,
        "reach_out_public": reach_out_public,
        "start_workflow": start_workflow,
        "complete_step": complete_step,
    }
)
