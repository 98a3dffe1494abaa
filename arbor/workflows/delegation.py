"""The texts by which a workflow hands a step to an agent, and what the agent remembers of them."""

from __future__ import annotations

import re
from uuid import UUID

from arbor.workflows.values import COMPLETE_STEP

_TASK = "The task: "
_STEP = re.compile(rf"\b{COMPLETE_STEP}, step ([0-9a-f-]{{36}})")
_HOW_TO_ANSWER = re.compile(
    rf" When it is done, answer with the action {COMPLETE_STEP}, step [0-9a-f-]{{36}}, with the result as output\."
)


def delegation_text(*, workflow: str, step: str, step_id: UUID, task: str) -> str:
    """Return the text of the percept that hands a step to an agent."""
    return (
        f"The workflow {workflow} delegates its step {step} to you. When it is done, answer with the action"
        f" {COMPLETE_STEP}, step {step_id}, with the result as output.\n{_TASK}{task}"
    )


def delegated_goal(*, step_id: UUID, task: str) -> str:
    """Return the description of the goal to answer a step."""
    return f"Answer with the action {COMPLETE_STEP}, step {step_id}. {_TASK}{task}"


def find_delegation(text: str) -> tuple[str, str] | None:
    """Return the id and the task of the step that the text of a percept or a goal hands to an agent; None without one."""
    step = _STEP.search(text)
    return (step[1], text.partition(_TASK)[2].strip()) if step else None


def remembered_delegation(text: str) -> str:
    """Return the text of a delegating percept without its request to answer, which ends with the step."""
    return _HOW_TO_ANSWER.sub("", text, count=1)
