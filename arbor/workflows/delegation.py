"""The text by which a workflow hands a step to an agent, and what the agent remembers of it."""

from __future__ import annotations

import re
from uuid import UUID

from arbor.workflows.values import COMPLETE_STEP

_HOW_TO_ANSWER = re.compile(
    rf" When it is done, answer with the action {COMPLETE_STEP}, step [0-9a-f-]{{36}}, with the result as output\."
)


def delegation_text(*, workflow: str, step: str, step_id: UUID, task: str) -> str:
    """Return the text of the percept that hands a step to an agent."""
    return (
        f"The workflow {workflow} delegates its step {step} to you. When it is done, answer with the action"
        f" {COMPLETE_STEP}, step {step_id}, with the result as output.\nThe task: {task}"
    )


def remembered_delegation(text: str) -> str:
    """Return the text of such a percept without the request to answer, which ends with the step."""
    return _HOW_TO_ANSWER.sub("", text, count=1)
