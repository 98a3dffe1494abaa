"""The methods of the protocol, by their names in version 1.0."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Never
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError

from apps.api.a2a.errors import RpcCode, RpcRefused
from apps.api.a2a.rendering import sentence_event, status_event, task_json
from apps.api.a2a.schemas import ListParams, RpcParams, SendParams, TaskParams, page_token
from apps.api.reply_streams import FollowedTurn, last_event, reply_events
from apps.api.threads import in_thread
from apps.contacts.services.client_tasks import (
    TaskClient,
    TaskPage,
    begin_task,
    cancel_task,
    list_tasks,
    read_task,
)
from apps.tenants.scope import tenant_transaction
from arbor.contacts.client_tasks import ClientTask, TaskState
from arbor.contacts.reply_progress import ReplyEvent, ReplyEventKind, ReplyProgress, StoredAnswer
from arbor.errors import NotFound
from arbor.ids import read_id

#: The events of a stream; None is a keep-alive between two events.
type RpcEvents = AsyncIterator[dict[str, Any] | None]


@dataclass(frozen=True, kw_only=True)
class RpcCaller:
    """The caller of a method: a client, known by its token, of one agent."""

    tenant_id: UUID
    client: TaskClient

    def followed(self, task: ClientTask) -> FollowedTurn:
        """Return the turn whose reply answers a task."""
        return FollowedTurn(tenant_id=self.tenant_id, turn_id=UUID(task.id))


@dataclass(frozen=True, kw_only=True)
class RpcMethod:
    """A method: its parameters, and a function that answers it, either at once or by a stream."""

    params: type[RpcParams]
    #: Returns the result.
    run: Callable[[RpcCaller, Any], Awaitable[dict[str, Any]]] | None = None
    #: Returns a stream of events; an error that is raised before is answered without a stream.
    stream: Callable[[RpcCaller, Any], Awaitable[RpcEvents]] | None = None
    #: Whether the method cancels a task, so that an illegal transition means "task not cancelable".
    cancels: bool = False


async def _send(caller: RpcCaller, params: SendParams) -> dict[str, Any]:
    task = await in_thread(_begin, caller, params)
    options = params.configuration
    if not options.return_immediately and not task.state.is_final:
        await last_event(caller.followed(task))
        task = await in_thread(_read, caller, task.id)
    return {"task": task_json(task, history=options.history_length)}


async def _send_streaming(caller: RpcCaller, params: SendParams) -> RpcEvents:
    task = await in_thread(_begin, caller, params)
    return _events(caller, task, history=params.configuration.history_length)


async def _subscribe(caller: RpcCaller, params: TaskParams) -> RpcEvents:
    task = await in_thread(_read, caller, params.id)
    if task.state.is_final:
        raise RpcRefused(
            RpcCode.UNSUPPORTED_OPERATION, f"the task {task.id} is {task.state}; get it by GetTask"
        )
    return _events(caller, task)


async def _get(caller: RpcCaller, params: TaskParams) -> dict[str, Any]:
    task = await in_thread(_read, caller, params.id)
    return task_json(task, history=params.history_length)


async def _list(caller: RpcCaller, params: ListParams) -> dict[str, Any]:
    page = await in_thread(_read_page, caller, params)
    last = page.tasks[-1] if page.has_more else None
    return {
        "tasks": [
            task_json(task, history=params.history_length, artifacts=params.include_artifacts)
            for task in page.tasks
        ],
        "nextPageToken": page_token(last.updated_at, last.id) if last else "",
        "pageSize": params.page_size,
        "totalSize": page.total,
    }


async def _cancel(caller: RpcCaller, params: TaskParams) -> dict[str, Any]:
    return task_json(await in_thread(_cancel_task, caller, params.id))


async def _refuse_push(_caller: RpcCaller, _params: RpcParams) -> Never:
    raise RpcRefused(
        RpcCode.PUSH_NOTIFICATION_NOT_SUPPORTED, "there are no notifications by push; stream the task"
    )


async def _refuse_card(_caller: RpcCaller, _params: RpcParams) -> Never:
    raise RpcRefused(RpcCode.UNSUPPORTED_OPERATION, "the public card is the only one")


_PUSH = RpcMethod(params=RpcParams, run=_refuse_push)
METHODS: Mapping[str, RpcMethod] = MappingProxyType(
    {
        "SendMessage": RpcMethod(params=SendParams, run=_send),
        "SendStreamingMessage": RpcMethod(params=SendParams, stream=_send_streaming),
        "GetTask": RpcMethod(params=TaskParams, run=_get),
        "ListTasks": RpcMethod(params=ListParams, run=_list),
        "CancelTask": RpcMethod(params=TaskParams, run=_cancel, cancels=True),
        "SubscribeToTask": RpcMethod(params=TaskParams, stream=_subscribe),
        "CreateTaskPushNotificationConfig": _PUSH,
        "GetTaskPushNotificationConfig": _PUSH,
        "ListTaskPushNotificationConfigs": _PUSH,
        "DeleteTaskPushNotificationConfig": _PUSH,
        "GetExtendedAgentCard": RpcMethod(params=RpcParams, run=_refuse_card),
    }
)


async def _events(caller: RpcCaller, task: ClientTask, *, history: int | None = None) -> RpcEvents:
    """Yield a task, the sentences of its answer and its end. A client that disconnects loses nothing: a worker answers."""
    yield {"task": task_json(task, history=history)}
    if task.state.is_final:
        return
    is_working = appends = False
    async for event in reply_events(caller.followed(task)):
        if event is None:
            yield None
        elif event.is_last:
            yield status_event(await _ended(caller, task, event))
        elif event.kind is ReplyEventKind.RESTART:
            appends = False
        else:
            if not is_working:
                is_working = True
                yield status_event(task, state=TaskState.WORKING)
            yield sentence_event(task, event.text, append=appends)
            appends = True


async def _ended(caller: RpcCaller, task: ClientTask, last: ReplyEvent) -> ClientTask:
    """Read a task after the last event of its reply; derive its end from the event where it cannot be read."""
    try:
        return await in_thread(_read, caller, task.id)
    except (NotFound, OperationalError, InterfaceError):
        answer = last.answer or StoredAnswer(id=task.id, content="", error=last.text)
        return replace(task, progress=ReplyProgress(answer=answer))


def _begin(caller: RpcCaller, params: SendParams) -> ClientTask:
    params.require_supported()
    text = params.message.text()
    message_id, context = params.client_ids()
    with tenant_transaction(caller.tenant_id):
        if params.message.task_id:
            task = _task_of(caller, params.message.task_id)
            raise RpcRefused(
                RpcCode.UNSUPPORTED_OPERATION,
                f"the task {task.id} is {task.state} and takes no more messages; send without taskId, with the contextId"
                f" {task.context}",
            )
        return begin_task(client=caller.client, text=text, message_id=message_id, context=context)


def _read(caller: RpcCaller, task_id: str) -> ClientTask:
    with tenant_transaction(caller.tenant_id):
        return _task_of(caller, task_id)


def _read_page(caller: RpcCaller, params: ListParams) -> TaskPage:
    query = params.query()
    if query is None:
        return TaskPage(tasks=[], total=0, has_more=False)
    with tenant_transaction(caller.tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT):
        return list_tasks(client=caller.client, query=query)


def _cancel_task(caller: RpcCaller, task_id: str) -> ClientTask:
    with tenant_transaction(caller.tenant_id):
        return cancel_task(client=caller.client, task_id=_id_of(task_id))


def _task_of(caller: RpcCaller, task_id: str) -> ClientTask:
    return read_task(client=caller.client, task_id=_id_of(task_id))


def _id_of(task_id: str) -> UUID:
    found = read_id(task_id)
    if found is None:
        raise NotFound(f"you have no task {task_id[:100]!r} with this agent")
    return found
