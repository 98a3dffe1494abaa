"""Stream replies while the model writes them. A thread is in use only while progress is read."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, StreamingHttpResponse

from apps.api.threads import in_thread
from apps.contacts.services.partial_replies import READ_EVERY_S, read_progress
from apps.tenants.scope import tenant_transaction
from arbor.contacts.reply_progress import ReplyEvent, ReplyEventKind, ReplyFollower, ReplyProgress
from arbor.errors import NotFound

log = structlog.get_logger(__name__)

#: Seconds of silence after which a stream sends a comment, so that no proxy closes it.
COMMENT_EVERY_S = 10.0
#: Seconds that a stream waits beyond the model's deadline: queues, preparation and a fallback model take time.
_PATIENCE_S = 60.0
_EVENT_STREAM = "text/event-stream"
#: A comment of a stream, which clients ignore.
COMMENT = ": the agent thinks\n\n"


@dataclass(frozen=True, kw_only=True)
class FollowedTurn:
    """A person's turn whose reply is followed."""

    tenant_id: UUID
    turn_id: UUID


async def reply_events(turn: FollowedTurn, *, last_id: str = "") -> AsyncIterator[ReplyEvent | None]:
    """Yield the events of a reply until its end, after the event `last_id`; None is a keep-alive.

    Ends without a last event if no answer comes in time; the turn is answered later. While the database does not answer,
    nothing is yielded but keep-alives.
    """
    follower, started = ReplyFollower(), time.monotonic()
    sent_at, is_resumed, is_away = started, False, False
    while True:
        events: list[ReplyEvent] = []
        try:
            progress = await in_thread(_read, turn)
        except (OperationalError, InterfaceError) as error:
            if not is_away:
                log.warning("reply_read_failed", turn_id=str(turn.turn_id), error=str(error))
            is_away = True
        except NotFound as error:
            # The agent was destroyed.
            events = [ReplyEvent(kind=ReplyEventKind.ERROR, text=f"NotFound: {error}")]
        else:
            resumed = [] if is_resumed else follower.resume(last_id, progress)
            events, is_resumed = [*resumed, *follower.advance(progress)], True
            is_away = False
        for event in events:
            yield event
            if event.is_last:
                return
        now = time.monotonic()
        if now - started > settings.ARBOR_MODEL_DEADLINE_S + _PATIENCE_S:
            return
        if events:
            sent_at = now
        elif now - sent_at > COMMENT_EVERY_S:
            sent_at = now
            yield None
        await asyncio.sleep(READ_EVERY_S)


async def last_event(turn: FollowedTurn) -> ReplyEvent | None:
    """Wait for the last event of a reply, and return it; None if no answer comes in time."""
    async for event in reply_events(turn):
        if event is not None and event.is_last:
            return event
    return None


def timeout_event() -> ReplyEvent:
    """Return the last event of a reply that did not come in time."""
    waited_s = settings.ARBOR_MODEL_DEADLINE_S + _PATIENCE_S
    text = (
        f"no answer within {waited_s:.0f} s; the turn stays and is answered when a worker of the model queue runs:"
        " send the same message again to wait for it"
    )
    return ReplyEvent(kind=ReplyEventKind.ERROR, text=text)


def wants_events(request: HttpRequest) -> bool:
    """Return whether a request asks for server-sent events."""
    return _EVENT_STREAM in request.headers.get("Accept", "")


def event_response(turn: FollowedTurn, *, last_id: str = "") -> StreamingHttpResponse:
    """Return the events of a reply as a stream, after the event `last_id`."""
    return stream_response(_event_texts(turn, last_id))


def stream_response(events: AsyncIterator[str]) -> StreamingHttpResponse:
    """Return server-sent events as a response."""
    response = StreamingHttpResponse(events, content_type=_EVENT_STREAM)
    # Proxies would buffer the events.
    response["X-Accel-Buffering"] = "no"
    return response


def data_event(value: dict[str, Any]) -> str:
    """Return an event without a name, whose data is JSON."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


async def _event_texts(turn: FollowedTurn, last_id: str) -> AsyncIterator[str]:
    yield f"event: turn\ndata: {json.dumps({'turn_id': str(turn.turn_id)})}\n\n"
    is_over = False
    async for event in reply_events(turn, last_id=last_id):
        yield COMMENT if event is None else _event_text(event)
        is_over = event is not None and event.is_last
    if not is_over:
        yield _event_text(timeout_event())


def _event_text(event: ReplyEvent) -> str:
    named = f"id: {event.id}\n" if event.id else ""
    return f"{named}event: {event.kind}\ndata: {json.dumps(_event_data(event), ensure_ascii=False)}\n\n"


def _event_data(event: ReplyEvent) -> dict[str, Any]:
    if not event.is_last:
        return {"text": event.text} if event.kind is ReplyEventKind.SENTENCE else {}
    answer = event.answer
    return {
        "reply": answer.content if answer else "",
        "error": answer.error if answer else event.text,
        "model": answer.model if answer else "",
        "withheld": answer is not None and answer.is_withheld,
    }


def _read(turn: FollowedTurn) -> ReplyProgress:
    with tenant_transaction(turn.tenant_id):
        return read_progress(turn_id=turn.turn_id)
