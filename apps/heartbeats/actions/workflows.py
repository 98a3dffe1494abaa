"""The actions `start_workflow` and `complete_step`: start a workflow, and answer a step that is delegated to the agent."""

from __future__ import annotations

from apps.heartbeats.actions.context import ActionContext
from apps.workflows.services.answers import complete_delegated_step
from apps.workflows.services.definitions import find_workflow
from apps.workflows.services.runs import RunRequest, start_run
from arbor.errors import NotFound
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import QUOTE_LENGTH, ActionOutcome, ActionResult, action_result
from arbor.ids import read_id
from arbor.quotations import shorten
from arbor.workflows.values import WorkflowTrigger


def start_workflow(context: ActionContext, decision: Decision) -> ActionResult:
    """Start a workflow, once for each action of a heartbeat. Raises NotFound, Invalid, TransitionIllegal."""
    workflow = find_workflow(decision.params["workflow"])
    run = start_run(
        request=RunRequest(
            workflow=workflow,
            input=decision.params["input"],
            actor=context.actor,
            trigger=WorkflowTrigger.AGENT,
            agent_id=context.agent_id,
            key=f"{context.source}:{decision.index}",
        )
    )
    return action_result(
        decision, ActionOutcome.SUCCESS, f"started the workflow {workflow.name}, run {run.id}"
    )


def complete_step(context: ActionContext, decision: Decision) -> ActionResult:
    """Answer a step of a workflow. Raises NotFound for a step of somebody else, TransitionIllegal for one that has ended."""
    wanted, failed = decision.params["step"], decision.params["failed"]
    step_id = read_id(wanted)
    if step_id is None:
        raise NotFound(f"a step is named by its id, got {shorten(wanted, QUOTE_LENGTH)!r}")
    step = complete_delegated_step(
        step_id=step_id,
        agent_id=context.agent_id,
        output=decision.params["output"],
        failed=failed,
        actor=context.actor,
    )
    verb = "gave up" if failed else "completed"
    summary = f"{verb} the step {step.name} of the workflow {step.run.workflow.name}"
    return action_result(decision, ActionOutcome.SUCCESS, summary)
