"""Version 0.3 of the protocol, which many clients speak: its methods and JSON, translated from and to version 1.0."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from apps.api.a2a.schemas import STATE_PREFIX
from arbor.contacts.client_tasks import TaskState

#: The methods of version 0.3, and their names in version 1.0.
METHODS_0_3: Mapping[str, str] = MappingProxyType(
    {
        "message/send": "SendMessage",
        "message/stream": "SendStreamingMessage",
        "tasks/get": "GetTask",
        "tasks/list": "ListTasks",
        "tasks/cancel": "CancelTask",
        "tasks/resubscribe": "SubscribeToTask",
        "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
        "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
        "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
    }
)
_FINAL = frozenset(state.value for state in TaskState if state.is_final)
_EVENT_KINDS = {"statusUpdate": "status-update", "artifactUpdate": "artifact-update"}


def upgrade_params(params: Any) -> Any:
    """Return parameters in the form of version 1.0. Values of an unexpected form stay, and fail its validation."""
    if not isinstance(params, dict):
        return params
    message, configuration = params.get("message"), params.get("configuration")
    upgraded = {name: value for name, value in params.items() if value is not None}
    if isinstance(message, dict):
        upgraded["message"] = _upgrade_message(message)
    if isinstance(configuration, dict):
        upgraded["configuration"] = _upgrade_configuration(configuration)
    return upgraded


def downgrade_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result in the form of version 0.3: the task or the event itself, with its kind."""
    for name, kind in _EVENT_KINDS.items():
        if name in result:
            event = {**_downgrade(result[name]), "kind": kind}
            if name == "statusUpdate":
                event["final"] = event["status"]["state"] in _FINAL
            return event
    if "tasks" in result:
        return {**result, "tasks": [_downgrade_task(task) for task in result["tasks"]]}
    return _downgrade_task(result.get("task", result))


def _upgrade_message(message: dict[str, Any]) -> dict[str, Any]:
    parts = message.get("parts")
    role = message.get("role")
    return {
        **{name: value for name, value in message.items() if value is not None},
        "role": f"ROLE_{role.upper()}" if isinstance(role, str) else role,
        "parts": [_upgrade_part(part) for part in parts] if isinstance(parts, list) else parts,
    }


def _upgrade_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    fields = {"text": part.get("text"), "data": part.get("data"), "raw": part.get("file")}
    return {name: value for name, value in fields.items() if value is not None}


def _upgrade_configuration(configuration: dict[str, Any]) -> dict[str, Any]:
    upgraded = {name: value for name, value in configuration.items() if value is not None}
    push = upgraded.pop("pushNotificationConfig", None)
    if push is not None:
        upgraded["taskPushNotificationConfig"] = push
    upgraded["returnImmediately"] = upgraded.pop("blocking", True) is False
    return upgraded


def _downgrade_task(task: dict[str, Any]) -> dict[str, Any]:
    return {**_downgrade(task), "kind": "task"}


def _downgrade(value: Any) -> Any:
    """Return a value with the states, roles and kinds of version 0.3."""
    if isinstance(value, list):
        return [_downgrade(item) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {name: _downgrade(item) for name, item in value.items()}
    if "state" in changed:
        changed["state"] = changed["state"].removeprefix(STATE_PREFIX).lower().replace("_", "-")
    if "role" in changed:
        changed |= {"role": changed["role"].removeprefix("ROLE_").lower(), "kind": "message"}
    if "text" in changed:
        changed["kind"] = "text"
    return changed
