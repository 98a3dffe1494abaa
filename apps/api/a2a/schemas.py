"""Parameters of the protocol's methods. Fields that Arbor does not use are accepted and ignored, as the protocol asks."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from apps.api.a2a.errors import RpcCode, RpcRefused
from apps.contacts.services.client_tasks import CONTEXT_LENGTH, TaskQuery
from arbor.clock import to_utc
from arbor.contacts.client_messages import NAME_LENGTH, check_client_name
from arbor.contacts.client_tasks import TaskState
from arbor.errors import Invalid

#: The media types of messages and answers.
TEXT_MODES = ("text/plain",)
#: The names of text in the list of modes that a client accepts.
_TEXT_NAMES = frozenset({*TEXT_MODES, "text", "text/*", "*/*"})
_MAX_PARTS = 100
_MAX_TASKS = 100
#: The prefix of states in JSON.
STATE_PREFIX = "TASK_STATE_"


class RpcParams(BaseModel):
    """Parameters, in camel case."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class MessagePart(RpcParams):
    """A part of a message: one of these fields."""

    text: str | None = None
    raw: Any = None
    url: Any = None
    data: Any = None
    media_type: str = ""


class RpcMessage(RpcParams):
    """A message of the client."""

    message_id: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]
    role: Literal["ROLE_USER"]
    parts: Annotated[list[MessagePart], Field(min_length=1, max_length=_MAX_PARTS)]
    context_id: Annotated[str, Field(max_length=CONTEXT_LENGTH)] = ""
    task_id: str = ""

    def text(self) -> str:
        """Return the text of the message. Raises RpcRefused for parts that are no text."""
        for part in self.parts:
            if part.text is None or any(other is not None for other in (part.raw, part.url, part.data)):
                raise RpcRefused(
                    RpcCode.CONTENT_TYPE_NOT_SUPPORTED, "the agent reads text; send parts with `text` only"
                )
        return "\n".join(part.text for part in self.parts if part.text is not None)


class SendConfiguration(RpcParams):
    """The options of an answer."""

    accepted_output_modes: list[str] = []
    history_length: Annotated[int | None, Field(ge=0)] = None
    return_immediately: bool = False
    task_push_notification_config: Any = None


class SendParams(RpcParams):
    """Parameters of `SendMessage` and `SendStreamingMessage`."""

    message: RpcMessage
    configuration: SendConfiguration = SendConfiguration()

    def require_supported(self) -> None:
        """Raise RpcRefused for notifications by push, and for answers in other modes than text."""
        if self.configuration.task_push_notification_config is not None:
            raise RpcRefused(
                RpcCode.PUSH_NOTIFICATION_NOT_SUPPORTED,
                "there are no notifications by push; stream the task or get it again",
            )
        modes = self.configuration.accepted_output_modes
        if modes and _TEXT_NAMES.isdisjoint(mode.partition(";")[0].strip().lower() for mode in modes):
            raise RpcRefused(
                RpcCode.CONTENT_TYPE_NOT_SUPPORTED, f"answers are {TEXT_MODES[0]}; accepted are {modes[:5]}"
            )

    def client_ids(self) -> tuple[str, str]:
        """Return the client's ids of the message and the conversation. Raises Invalid."""
        message = self.message
        return check_client_name("messageId", message.message_id), check_client_name(
            "contextId", message.context_id
        )


class TaskParams(RpcParams):
    """Parameters of `GetTask`, `CancelTask` and `SubscribeToTask`."""

    id: Annotated[str, Field(min_length=1)]
    history_length: Annotated[int | None, Field(ge=0)] = None


class ListParams(RpcParams):
    """Parameters of `ListTasks`."""

    context_id: str = ""
    status: str = ""
    page_size: Annotated[int, Field(ge=1, le=_MAX_TASKS)] = 50
    page_token: Annotated[str, Field(max_length=200)] = ""
    history_length: Annotated[int | None, Field(ge=0)] = 0
    status_timestamp_after: datetime | None = None
    include_artifacts: bool = False

    def query(self) -> TaskQuery | None:
        """Return the query; None where no task can match. Raises Invalid."""
        state = self.status.removeprefix(STATE_PREFIX).lower()
        if state in {"input_required", "auth_required"}:
            return None
        if state not in {"", "unspecified", *TaskState}:
            raise Invalid(
                f"status must be one of {', '.join(STATE_PREFIX + known.upper() for known in TaskState)},"
                f" got {self.status[:100]!r}"
            )
        since = self.status_timestamp_after
        if since is not None and since.tzinfo is None:
            raise Invalid("statusTimestampAfter needs a time zone, such as Z")
        return TaskQuery(
            limit=self.page_size,
            context=check_client_name("contextId", self.context_id),
            state=TaskState(state) if state in list(TaskState) else None,
            since=None if since is None else to_utc(since),
            after=_read_token(self.page_token) if self.page_token else None,
        )


def page_token(at: datetime, task_id: str) -> str:
    """Return the token of the page after a task."""
    return base64.urlsafe_b64encode(f"{at.isoformat()} {task_id}".encode()).decode()


def _read_token(token: str) -> tuple[datetime, UUID]:
    try:
        at, _, task_id = base64.b64decode(token, altchars=b"-_", validate=True).decode().partition(" ")
        return to_utc(datetime.fromisoformat(at)), UUID(task_id)
    except (Invalid, ValueError) as error:
        raise Invalid("the pageToken is not one of this list; begin without it") from error
