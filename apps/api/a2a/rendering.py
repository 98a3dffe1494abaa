"""Tasks and the events of a growing answer as JSON of the protocol, version 1.0."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from apps.api.a2a.schemas import STATE_PREFIX
from arbor.contacts.client_tasks import ClientTask, TaskState

#: The one artifact of a task: the agent's answer.
_ARTIFACT = "answer"


def task_json(task: ClientTask, *, history: int | None = None, artifacts: bool = True) -> dict[str, Any]:
    """Return a task; its history has one message, what the agent was asked, unless `history` is 0."""
    answer = task.progress.answer
    shows_answer = artifacts and answer is not None and task.state is TaskState.COMPLETED
    return {
        **_ids(task, "id"),
        "status": status_json(task),
        "artifacts": [_artifact(answer.content)] if shows_answer and answer else [],
        "history": [] if history == 0 else [_message(task, task.message_id, "ROLE_USER", task.text)],
    }


def status_json(task: ClientTask) -> dict[str, Any]:
    """Return the status of a task; the message of a task that is not completed has the reason."""
    at = task.updated_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    status: dict[str, Any] = {"state": f"{STATE_PREFIX}{task.state.upper()}", "timestamp": at}
    answer = task.progress.answer
    if answer is not None and task.state is not TaskState.COMPLETED:
        status["message"] = _message(task, answer.id, "ROLE_AGENT", answer.error or answer.content)
    return status


def status_event(task: ClientTask, *, state: TaskState | None = None) -> dict[str, Any]:
    """Return the event of a task's status; `state` replaces the state of the task."""
    status = status_json(task)
    if state is not None:
        status["state"] = f"{STATE_PREFIX}{state.upper()}"
    return {"statusUpdate": {**_ids(task, "taskId"), "status": status}}


def sentence_event(task: ClientTask, text: str, *, append: bool) -> dict[str, Any]:
    """Return the event of a further part of the answer; without `append` it replaces the parts before."""
    return {"artifactUpdate": {**_ids(task, "taskId"), "artifact": _artifact(text), "append": append}}


def _ids(task: ClientTask, name: str) -> dict[str, Any]:
    return {name: task.id, "contextId": task.context}


def _artifact(text: str) -> dict[str, Any]:
    return {"artifactId": _ARTIFACT, "name": _ARTIFACT, "parts": [{"text": text}]}


def _message(task: ClientTask, message_id: str, role: str, text: str) -> dict[str, Any]:
    return {"messageId": message_id, **_ids(task, "taskId"), "role": role, "parts": [{"text": text}]}
