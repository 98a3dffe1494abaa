"""Tasks of clients: turns of conversations, named by their ids in a protocol between agents.

A task is a turn with its answer; no other row is stored. The key of the conversation contains the name that the client gave it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from django.db import transaction
from django.db.models import CharField, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce

from apps.agents.services.lookup import agent_by_id
from apps.calls.services.maintenance_calls import cancel_maintenance_call
from apps.contacts.models import ChatMessage, PartialReply
from apps.contacts.services.chat import lock_session, waiting_turn
from apps.contacts.services.chat_finalize import store_silence
from apps.contacts.services.client_chat import receive_client_turn, repeated_turn
from apps.contacts.services.partial_replies import WITHHELD, stored_answer
from arbor.agents.lifecycle import AgentStatus
from arbor.contacts.client_messages import ClientTurn
from arbor.contacts.client_tasks import ClientTask, TaskState
from arbor.contacts.reply_progress import ReplyProgress
from arbor.contacts.values import Speaker
from arbor.errors import NotFound, TransitionIllegal

#: The beginning of the keys of conversations that consist of tasks; the name that the client gave the conversation follows.
_KEY = "a2a:"
CONTEXT_LENGTH = 96
#: Answers to canceled turns, by their details.
_CANCELED = Q(detail__contains={"canceled": True})


@dataclass(frozen=True, kw_only=True)
class TaskClient:
    """A client of an agent: the person of its conversations."""

    agent_id: UUID
    person: str


@dataclass(frozen=True, kw_only=True)
class TaskQuery:
    """The tasks that are wanted: of a context, in a state, changed at a time or later; at most `limit`, after the position."""

    limit: int
    context: str = ""
    state: TaskState | None = None
    since: datetime | None = None
    #: The change and the id of the last task of the page before.
    after: tuple[datetime, UUID] | None = None


@dataclass(frozen=True, kw_only=True)
class TaskPage:
    """A page of tasks, the latest change first, and the number of all."""

    tasks: list[ClientTask]
    total: int
    has_more: bool


@transaction.atomic
def begin_task(*, client: TaskClient, text: str, message_id: str, context: str = "") -> ClientTask:
    """Give an agent a task, which a worker answers; a message with a known id finds its task.

    Without a context, a conversation begins. Raises Invalid for the text, NotFound for an agent that was destroyed, and
    TransitionIllegal unless the agent is active and has answered the last task of the conversation.
    """
    # Derived from the message, so that a repeated one does not begin another conversation.
    context = context or str(uuid5(client.agent_id, f"{client.person}\n{message_id}"))
    turn = ClientTurn(text=text, note="", key=f"{_KEY}{context}", message_id=message_id)
    known = repeated_turn(agent_id=client.agent_id, person=client.person, turn=turn)
    if known is None:
        agent = agent_by_id(client.agent_id)
        if agent.status != AgentStatus.ACTIVE:
            raise TransitionIllegal(f"{agent.name} is {agent.status} and gets no tasks until it is active")
        known = receive_client_turn(agent_id=client.agent_id, person=client.person, turn=turn)
    return read_task(client=client, task_id=known.id)


def read_task(*, client: TaskClient, task_id: UUID) -> ClientTask:
    """Return a task of a client. Raises NotFound, also for a task of another client."""
    tasks = _tasks(_turns(client).filter(id=task_id))
    if not tasks:
        raise NotFound(f"you have no task {task_id} with this agent")
    return tasks[0]


def list_tasks(*, client: TaskClient, query: TaskQuery) -> TaskPage:
    """Return a page of a client's tasks."""
    turns = _turns(client)
    if query.context:
        turns = turns.filter(session__client_key=f"{_KEY}{query.context}")
    if query.since is not None:
        turns = turns.filter(updated_at__gte=query.since)
    if query.state is not None:
        turns = turns.filter(_in_state(query.state))
    total = turns.count()
    if query.after is not None:
        at, task_id = query.after
        turns = turns.filter(Q(updated_at__lt=at) | Q(updated_at=at, id__lt=task_id))
    tasks = _tasks(turns.order_by("-updated_at", "-id")[: query.limit + 1])
    return TaskPage(tasks=tasks[: query.limit], total=total, has_more=len(tasks) > query.limit)


@transaction.atomic
def cancel_task(*, client: TaskClient, task_id: UUID) -> ClientTask:
    """End a task without an answer. The agent remembers the client's turn.

    Raises NotFound, and TransitionIllegal for a task that has ended, or whose answer is just being stored.
    """
    turn = _turns(client).filter(id=task_id).first()
    if turn is None:
        raise NotFound(f"you have no task {task_id} with this agent")
    session = lock_session(turn.session_id)
    waiting = waiting_turn(session.id)
    if waiting is None or waiting.id != turn.id:
        raise TransitionIllegal(f"the task {task_id} has ended")
    subject = {"chat": str(session.id), "turn": str(turn.id)}
    reason = f"canceled by {client.person}"
    if not cancel_maintenance_call(agent_id=client.agent_id, subject=subject, reason=reason):
        raise TransitionIllegal(f"the answer of the task {task_id} is being stored")
    store_silence(client.agent_id, subject, reason, is_canceled=True)
    return read_task(client=client, task_id=task_id)


def _answers() -> QuerySet[Any]:
    """Return a query of the answer to the turn of the outer query."""
    answers: QuerySet[Any] = (
        ChatMessage.objects.filter(
            session_id=OuterRef("session_id"), at__gte=OuterRef("at"), speaker=Speaker.AGENT
        )
        .annotate(asked=KT("detail__to"))
        .filter(asked=Cast(OuterRef("id"), CharField()))
    )
    return answers


def _turns(client: TaskClient) -> QuerySet[Any]:
    """Return a client's turns, with the id of the answer and the time of the last change."""
    turns: QuerySet[Any] = (
        ChatMessage.objects.filter(
            session__agent_id=client.agent_id,
            session__person=client.person,
            session__client_key__startswith=_KEY,
            speaker=Speaker.USER,
        )
        .select_related("session")
        .annotate(
            answer_id=Subquery(_answers().values("id")[:1]),
            updated_at=Coalesce(Subquery(_answers().values("at")[:1]), F("at")),
        )
    )
    return turns


def _in_state(state: TaskState) -> Q:
    answers = _answers()
    published = Exists(PartialReply.objects.filter(turn_id=OuterRef("id")))
    match state:
        case TaskState.SUBMITTED:
            return Q(answer_id=None) & ~Q(published)
        case TaskState.WORKING:
            return Q(answer_id=None) & Q(published)
        case TaskState.CANCELED:
            return Q(Exists(answers.filter(_CANCELED)))
        case TaskState.FAILED:
            return Q(Exists(answers.exclude(error="").exclude(_CANCELED)))
        case TaskState.REJECTED:
            return Q(Exists(answers.filter(WITHHELD, error="")))
        case TaskState.COMPLETED:
            return Q(Exists(answers.filter(error="").exclude(WITHHELD)))


def _tasks(turns: QuerySet[Any]) -> list[ClientTask]:
    """Return turns as tasks, in their order. At most three statements."""
    rows = list(turns)
    answers = ChatMessage.objects.in_bulk([row.answer_id for row in rows if row.answer_id])
    partial = PartialReply.objects.in_bulk([row.id for row in rows if not row.answer_id])
    return [_task(row, answers.get(row.answer_id), partial.get(row.id)) for row in rows]


def _task(turn: Any, answer: ChatMessage | None, partial: PartialReply | None) -> ClientTask:
    return ClientTask(
        id=str(turn.id),
        context=turn.session.client_key.removeprefix(_KEY),
        message_id=turn.detail.get("message_id", ""),
        text=turn.content,
        updated_at=turn.updated_at,
        progress=ReplyProgress(
            attempt=partial.attempt if partial else 0,
            sentences=partial.sentences if partial else (),
            answer=stored_answer(answer) if answer else None,
        ),
    )
