"""Signals about agents: read by a cursor, or streamed live."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from apps.access.services import TokenAccess
from apps.api.authentication import READ_OWN, STREAM_OWN
from apps.api.requests import access_of, require_reach
from apps.api.signal_hub import hub_of, live_signals, read_page
from apps.api.threads import in_thread
from apps.signals.services.reading import MAX_SIGNALS, SignalFilter, SignalRecord, read_signals
from arbor.errors import RateLimited
from arbor.signals import CATALOGUE, Cursor

router = Router()

_CURSOR_LENGTH = 60


class SignalView(Schema):
    """A signal."""

    id: str = Field(description="Its cursor: reading after it continues with the next signal.")
    name: str = Field(description="Its name in the catalogue.", examples=["memory.goal_achieved"])
    agent_id: UUID | None = Field(
        description="The agent that it is about; null: what the agents share, such as documents."
    )
    heartbeat_id: UUID | None = Field(description="The heartbeat that it happened in, if any.")
    at: datetime = Field(description="The time of the transaction.")
    data: dict[str, Any] = Field(description="Ids, names and numbers, under the names of the catalogue.")


class SignalList(Schema):
    """Signals in the order of their commits."""

    items: list[SignalView]
    cursor: str = Field(description="The value of `after` for the next request.")
    more: bool = Field(description="Whether there is more already.")


class SignalKindView(Schema):
    """A name of the catalogue."""

    name: str
    meaning: str
    data: dict[str, str] = Field(description="The fields of its data, with their meanings.")


class WantedSignals(Schema):
    """The wanted signals."""

    agent_id: list[UUID] = Field(default=[], max_length=100, description="Only these agents'.")
    name: list[Annotated[str, Field(max_length=80)]] = Field(
        default=[], max_length=100, description="Only these names; `memory.goal_*` means all that begin so."
    )
    after: Annotated[
        str,
        Field(
            max_length=_CURSOR_LENGTH,
            description="A cursor; if empty, a list begins with the first signal, a stream with the next one.",
        ),
    ] = ""


class WantedPage(WantedSignals):
    """The wanted signals, and how many."""

    limit: Annotated[int, Field(ge=1, le=MAX_SIGNALS, description="The most signals of a page.")] = 100


@router.get("/signals", response=SignalList, auth=READ_OWN, summary="List signals after a cursor")
def list_signals(request: HttpRequest, wanted: Query[WantedPage]) -> SignalList:
    """List the signals after a cursor, oldest first. Signals that are committed late are never skipped."""
    after = Cursor.parse(wanted.after) if wanted.after else Cursor()
    page = read_signals(after=after, wanted=_filter(access_of(request), wanted), limit=wanted.limit)
    return SignalList(
        items=[SignalView(**record.as_json()) for record in page.signals],
        cursor=str(page.cursor),
        more=page.more,
    )


@router.get("/signals/names", response=list[SignalKindView], auth=READ_OWN, summary="List the catalogue")
def list_signal_names(request: HttpRequest) -> list[SignalKindView]:
    """List the names of all signals with their meaning and the fields of their data."""
    return [
        SignalKindView(name=name.value, meaning=kind.meaning, data=dict(kind.fields))
        for name, kind in CATALOGUE.items()
    ]


@router.get(
    "/signals/stream",
    auth=STREAM_OWN,
    summary="Stream signals",
    openapi_extra={
        "responses": {
            200: {
                "description": "Server-sent events: `id` is the cursor, `event` the name, `data` the signal as JSON.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            }
        },
        "parameters": [
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "The id of the last event that arrived: the stream continues after it.",
                "schema": {"type": "string"},
            }
        ],
    },
)
async def stream_signals(request: HttpRequest, wanted: Query[WantedSignals]) -> StreamingHttpResponse:
    """Stream signals as they are committed, from a cursor or from now, until the token ends or the client leaves."""
    access = access_of(request)
    chosen = _filter(access, wanted)
    hub_of(access.tenant_id).require_room(access)
    text = request.headers.get("Last-Event-ID", "")[:_CURSOR_LENGTH] or wanted.after
    cursor = Cursor.parse(text) if text else (await in_thread(read_page, access.tenant_id, None)).cursor
    return StreamingHttpResponse(
        _events(access, cursor, chosen),
        content_type="text/event-stream",
        # Proxies would buffer the events.
        headers={"X-Accel-Buffering": "no"},
    )


async def _events(access: TokenAccess, cursor: Cursor, wanted: SignalFilter) -> AsyncIterator[str]:
    hub = hub_of(access.tenant_id)
    try:
        # Again, because other streams of the token may have begun since this one was asked for.
        hub.require_room(access)
    except RateLimited as error:
        yield _end_of(str(error))
        return
    with hub.listen(access) as listener:
        # Sent at once, so that the client knows that the stream is open.
        yield "retry: 2000\n\n"
        async for record in live_signals(listener, after=cursor, wanted=wanted):
            yield ": alive\n\n" if record is None else event_of(record)
    yield _end_of("the token was revoked or has expired, or the tenant is suspended")


def _end_of(reason: str) -> str:
    """Return the last event of a stream that the server ends."""
    return f"event: end\ndata: {json.dumps({'reason': reason}, ensure_ascii=False)}\n\n"


def event_of(record: SignalRecord) -> str:
    """Return a signal as a server-sent event."""
    body = json.dumps(record.as_json(), ensure_ascii=False, separators=(",", ":"))
    return f"id: {record.cursor}\nevent: {record.name}\ndata: {body}\n\n"


def _filter(access: TokenAccess, wanted: WantedSignals) -> SignalFilter:
    """Return the filter; a token of one agent sees that agent's signals only. Raises PermissionDenied for other agents."""
    for agent_id in wanted.agent_id:
        require_reach(access, agent_id)
    agents = wanted.agent_id if access.agent_id is None else [access.agent_id]
    return SignalFilter.of(agents=agents, names=wanted.name)
