"""Tasks of clients: a turn of a client and its answer, as protocols between agents name them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from arbor.contacts.reply_progress import ReplyProgress


class TaskState(StrEnum):
    """The progress of a task."""

    #: Stored; nothing of the answer is written yet.
    SUBMITTED = "submitted"
    #: The model writes the answer.
    WORKING = "working"
    #: The answer is stored.
    COMPLETED = "completed"
    #: There is no answer.
    FAILED = "failed"
    #: The client canceled it.
    CANCELED = "canceled"
    #: A reflex or a boundary withheld the answer.
    REJECTED = "rejected"

    @property
    def is_final(self) -> bool:
        """Return whether the task has ended."""
        return self not in {TaskState.SUBMITTED, TaskState.WORKING}


@dataclass(frozen=True, kw_only=True)
class ClientTask:
    """A turn of a client with the state of its answer."""

    #: The id of the turn.
    id: str
    #: The client's name of the conversation.
    context: str
    #: The client's id of the message, and its text.
    message_id: str
    text: str
    #: The time of the last change that is stored: the answer's, or the turn's.
    updated_at: datetime
    progress: ReplyProgress

    @property
    def state(self) -> TaskState:
        """Return the state of the task."""
        answer = self.progress.answer
        if answer is None:
            return TaskState.WORKING if self.progress.sentences else TaskState.SUBMITTED
        if answer.is_canceled:
            return TaskState.CANCELED
        if answer.error:
            return TaskState.FAILED
        return TaskState.REJECTED if answer.is_withheld else TaskState.COMPLETED
