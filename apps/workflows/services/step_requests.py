"""Request the answer of a waiting step: call a model, or delegate to an agent. People find approvals in their lists."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent, PerceptKind
from apps.agents.services.identity import identity_of
from apps.agents.services.lookup import find_agent
from apps.agents.services.percepts import create_percept
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.models import CapabilityGrant
from apps.authority.services.grants import grant_actions
from apps.calls.services.maintenance_calls import MaintenanceCall, enqueue_maintenance_call, subject_of_step
from apps.calls.services.models import models_at
from apps.calls.services.usage import budget_status_of
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal, end_goal
from apps.workflows.models import WorkflowRun, WorkflowStep
from apps.workflows.services.rows import ACTOR
from arbor.agents.endorsement import EndorsementStatus
from arbor.agents.lifecycle import AgentStatus
from arbor.authority.grants import action_resource
from arbor.errors import AlreadyExists, CapabilityDenied, Invalid, NotFound, TransitionIllegal
from arbor.goals.values import TITLE_LENGTH, GoalLayer, GoalSource, GoalState
from arbor.models.handles import is_reflex
from arbor.quotations import counted, shorten
from arbor.workflows.definition import KINDS_WITH_AGENT, StepSpec
from arbor.workflows.delegation import delegated_goal, delegation_text
from arbor.workflows.prompts import step_prompt
from arbor.workflows.traversal import WorkflowState
from arbor.workflows.values import COMPLETE_STEP, WorkflowStepKind, WorkflowStepStatus

#: The most characters of a delegated task, as the agent reads it.
TASK_LENGTH = 4_000
#: The most characters of the reason for which a goal is closed.
_GOAL_REASON_LENGTH = 300
#: The time after which a step checks again whether its agent may be asked.
REST_CHECK = timedelta(minutes=5)
#: The statuses of an agent during which its step waits.
_RESTING = frozenset({AgentStatus.PAUSED, AgentStatus.DORMANT})


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerRequest:
    """The request for the answer of a step, as changes of the step's row; without values, nothing was requested."""

    agent_id: UUID | None = None
    goal_id: UUID | None = None
    #: The time until which the step waits, if it is not that of the definition.
    until: datetime | None = None
    #: The status of the step, if it is not that of the traversal, and its reason.
    status: WorkflowStepStatus | None = None
    error: str = ""
    #: Tries that do not count, because nobody could be asked.
    uncounted: int = 0
    #: Characters that were cut.
    cut: int = 0


def request_answer(
    run: WorkflowRun, *, spec: StepSpec, state: WorkflowState, step_id: UUID, now: datetime
) -> AnswerRequest:
    """Request the answer of the waiting step. Raises ArborError, before anything is written, if nobody can be asked."""
    if spec.kind not in KINDS_WITH_AGENT:
        return AnswerRequest()
    agent = _require_agent(run, spec)
    if reason := _reason_to_wait(agent):
        return _put_off(agent, until=now + REST_CHECK, reason=reason)
    if spec.kind is WorkflowStepKind.PROMPT:
        return _ask_model(run, agent, spec, state, step_id=step_id, now=now)
    return _delegate(run, agent, spec, state, step_id=step_id, now=now)


def agent_of(run: WorkflowRun, spec: StepSpec) -> Agent | None:
    """Return the agent of a step: the one that it names, the workflow's, or the one that started the run; None without any."""
    if spec.agent:
        try:
            return find_agent(spec.agent)
        except NotFound:
            return None
    agent_id = run.workflow.agent_id or run.agent_id
    agent: Agent | None = Agent.objects.filter(id=agent_id).first() if agent_id else None
    return agent


def _require_agent(run: WorkflowRun, spec: StepSpec) -> Agent:
    agent = agent_of(run, spec)
    if agent is None:
        wanted = (
            f"there is no agent {spec.agent!r}" if spec.agent else "neither step nor workflow has an agent"
        )
        raise NotFound(f"{wanted}; name one by `agent=…` in the step {spec.name}, or give the workflow one")
    return agent


def _reason_to_wait(agent: Agent) -> str:
    """Return why an agent may not be asked for now; empty if it may.

    Raises TransitionIllegal for an agent that was never started or is stopped, and IdentityRefused for one whose identity has ended.
    """
    if agent.status in _RESTING:
        return f"{agent.name} is {agent.status}"
    if agent.status != AgentStatus.ACTIVE:
        raise TransitionIllegal(
            f"{agent.name} is {agent.status}, so it cannot do a step; start it, or name another"
        )
    identity = identity_of(agent.id)
    if identity.endorsement is not None and identity.endorsement.status is EndorsementStatus.SUSPENDED:
        return f"{agent.name}: {identity.refusal}"
    identity.require_active()
    return ""


def _put_off(agent: Agent, *, until: datetime, reason: str) -> AnswerRequest:
    """Return the changes of a step that waits before its agent is asked; the try does not count."""
    return AnswerRequest(
        agent_id=agent.id, until=until, status=WorkflowStepStatus.RETRYING, error=reason, uncounted=1
    )


def _ask_model(
    run: WorkflowRun, agent: Agent, spec: StepSpec, state: WorkflowState, *, step_id: UUID, now: datetime
) -> AnswerRequest:
    attempt, models = state.current.attempts, _models(agent, spec)
    if not models:
        tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), tzinfo=UTC)
        return _put_off(agent, until=tomorrow, reason=f"the daily limit of {agent.name} is used up")
    prompt = step_prompt(spec, state, nonce=secrets.token_hex(8))
    call = MaintenanceCall(
        subject=subject_of_step(step_id, attempt=attempt),
        request=prompt.request,
        # Each try asks the next model.
        model=models[(attempt - 1) % len(models)],
        left_out=[f"prompt: {counted(prompt.cut, 'character')} of its values"] if prompt.cut else [],
    )
    enqueue_maintenance_call(agent_id=agent.id, tenant_id=run.tenant_id, call=call)
    return AnswerRequest(agent_id=agent.id, cut=prompt.cut)


def _models(agent: Agent, spec: StepSpec) -> Sequence[str]:
    """Return the models to ask, in order; over the daily limits only the reflex policy, which costs nothing, if it is among them."""
    level = budget_status_of(agent.id).level
    models = (spec.model,) if spec.model else models_at(agent, level)
    return models if level.may_maintain else [model for model in models if is_reflex(model)]


def _delegate(
    run: WorkflowRun, agent: Agent, spec: StepSpec, state: WorkflowState, *, step_id: UUID, now: datetime
) -> AnswerRequest:
    task = state.current.input
    shown = shorten(task, TASK_LENGTH)
    with transaction.atomic():
        _grant_completion(agent)
        goal_id = _add_goal(run, spec, agent, shown, step_id=step_id, now=now)
        create_percept(
            agent_id=agent.id,
            kind=PerceptKind.ENVIRONMENT,
            content=delegation_text(workflow=run.workflow.name, step=spec.name, step_id=step_id, task=shown),
            actor=ACTOR,
            urgent=True,
            detail={"workflow_step": str(step_id), "run": str(run.id), "goal": str(goal_id or "")},
        )
        record(
            action=AuditAction.STEP_DELEGATED,
            actor=ACTOR,
            agent_id=agent.id,
            message=f"delegated the step {spec.name} of {run.workflow.name} to {agent.name}",
            detail={"run_id": str(run.id), "step_id": str(step_id)},
        )
    return AnswerRequest(agent_id=agent.id, goal_id=goal_id, cut=len(task) - len(shown))


def _grant_completion(agent: Agent) -> None:
    """Grant the action that answers a step to an agent that never had it. Raises CapabilityDenied where the grant was revoked."""
    grants = CapabilityGrant.objects.filter(agent=agent, resource=action_resource(COMPLETE_STEP))
    if not grants.exists():
        grant_actions(agents=[agent], actions=[COMPLETE_STEP], actor=ACTOR)
        record(
            action=AuditAction.CAPABILITY_GRANTED,
            actor=ACTOR,
            agent_id=agent.id,
            message=f"granted {COMPLETE_STEP} to {agent.name}, because a step is delegated to it",
        )
    elif not grants.filter(revoked_at=None).exists():
        raise CapabilityDenied(f"{agent.name} may not {COMPLETE_STEP} any more: the grant was revoked")


def _add_goal(
    run: WorkflowRun, spec: StepSpec, agent: Agent, task: str, *, step_id: UUID, now: datetime
) -> UUID | None:
    """Add a goal that keeps the step in the agent's prompts; None where the backlog has no room."""
    title = f"Do the step {spec.name} of the workflow {run.workflow.name}"
    # The same step of another run may wait for the agent.
    for unused in (title, f"{title} ({str(step_id)[-6:]})"):
        try:
            with transaction.atomic():
                goal = create_goal(
                    agent_id=agent.id,
                    title=unused[:TITLE_LENGTH],
                    description=delegated_goal(step_id=step_id, task=task),
                    layer=GoalLayer.TASK,
                    source=GoalSource.USER_REQUEST,
                    deadline=now + spec.waits if spec.waits else None,
                )
        except AlreadyExists:
            continue
        except Invalid:
            return None
        found: UUID = goal.id
        return found
    return None


def close_step_goal(run: WorkflowRun, *, step: WorkflowStep, succeeded: bool, reason: str) -> None:
    """Close the goal of a delegated step that has ended; a goal that is already closed stays as it is."""
    goal: Goal | None = Goal.objects.filter(id=step.goal_id).first() if step.goal_id else None
    if goal is None or not GoalState(goal.state).is_open:
        return
    why = "" if succeeded else shorten(reason, _GOAL_REASON_LENGTH) or "the step has ended"
    end_goal(goal_id=goal.id, abandoned=why, closer=f"the workflow {run.workflow.name}")
