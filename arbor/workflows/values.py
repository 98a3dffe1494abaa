"""Kinds and statuses of workflow runs and their steps, their limits, and the delays after failed legs."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

#: Characters of a workflow's name, which is a segment of a capability, and of a step's name.
NAME_LENGTH = 60
#: The action by which an agent answers a step that is delegated to it.
COMPLETE_STEP = "complete_step"
#: The action by which an agent starts a workflow, and the beginning of the resource that it needs.
START_WORKFLOW = "start_workflow"
WORKFLOW_PREFIX = "arbor://workflows/execute/"
#: Characters of a step's output that are stored; the rest is cut, and the cut is audited.
OUTPUT_LENGTH = 64_000
#: The delays before a leg that has raised is tried again: the first one, doubled by each further failure, and the longest.
FIRST_LEG_DELAY = timedelta(seconds=5)
MAX_LEG_DELAY = timedelta(minutes=5)


class WorkflowStepKind(StrEnum):
    """The kinds of steps: the `type` of a node."""

    #: Ask a model, on behalf of an agent.
    PROMPT = "prompt"
    #: Ask a person to approve.
    APPROVAL = "approval"
    #: Hand the step to an agent, which answers with the action `complete_step`.
    DELEGATE = "delegate"
    #: Wait for a time.
    WAIT = "wait"
    #: Compose a text from the input and earlier outputs.
    NOTE = "note"


class WorkflowRunStatus(StrEnum):
    """The progress of a run."""

    #: A worker walks the run, or will do so next.
    RUNNING = "running"
    #: A step waits for a model, a person, an agent or a time.
    WAITING = "waiting"
    #: The run has reached an exit for success.
    SUCCEEDED = "succeeded"
    #: The run has reached an exit for failure, or a node without an edge to follow.
    FAILED = "failed"
    #: A person has canceled the run.
    CANCELED = "canceled"


class WorkflowStepStatus(StrEnum):
    """The progress of a step."""

    #: The step waits for its answer.
    WAITING = "waiting"
    #: The answer is stored; the next leg reads it.
    ANSWERED = "answered"
    #: The last try failed; the next one waits for its time.
    RETRYING = "retrying"
    #: The output is stored.
    SUCCEEDED = "succeeded"
    #: All tries failed, a person denied, or the time ran out.
    FAILED = "failed"
    #: The run was canceled.
    CANCELED = "canceled"


class WorkflowTrigger(StrEnum):
    """The starter of a run."""

    #: A person, by a command, the console or a program.
    PERSON = "person"
    #: The workflow's schedule.
    SCHEDULE = "schedule"
    #: An agent, by the action `start_workflow`.
    AGENT = "agent"


#: The statuses of a run that may still change.
OPEN_RUNS = (WorkflowRunStatus.RUNNING, WorkflowRunStatus.WAITING)
#: The statuses of a step that may still change.
OPEN_STEPS = (WorkflowStepStatus.WAITING, WorkflowStepStatus.ANSWERED, WorkflowStepStatus.RETRYING)


def delay_after_failed_legs(failures: int) -> timedelta:
    """Return the delay of the next leg of a run after `failures` failed legs in a row, 1 or more."""
    doublings = min(failures - 1, 10)
    return min(FIRST_LEG_DELAY * (1 << doublings), MAX_LEG_DELAY)
