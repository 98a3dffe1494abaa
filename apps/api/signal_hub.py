"""Live signals: one reader for each tenant of a process passes new signals to all streams of the tenant."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakKeyDictionary

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError

from apps.access.services import TokenAccess, live_tokens
from apps.api.threads import in_thread
from apps.signals.services.reading import (
    MAX_SIGNALS,
    SignalFilter,
    SignalPage,
    SignalRecord,
    horizon,
    read_signals,
)
from apps.tenants.scope import tenant_transaction
from arbor.errors import RateLimited
from arbor.quotations import counted
from arbor.signals import Cursor

log = structlog.get_logger(__name__)

#: Seconds between two reads, and between two checks of the streams' tokens.
POLL_S = 0.5
TOKENS_CHECKED_EVERY_S = 5.0
#: Seconds without a signal after which a stream sends a keep-alive.
SILENCE_S = 15.0
#: The most pages that wait for a slow client; beyond, its stream reads on from its own cursor.
_PAGES_WAITING = 20


@dataclass(eq=False, slots=True)
class _Listener:
    """A stream, with the pages that wait for it."""

    access: TokenAccess
    pages: deque[SignalPage] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    #: Whether the stream has to read signals itself, because pages were dropped.
    behind: bool = False
    ended: bool = False

    def fall_behind(self) -> None:
        self.pages.clear()
        self.behind = True
        self.news.set()

    def receive(self, page: SignalPage) -> None:
        if len(self.pages) == _PAGES_WAITING:
            self.fall_behind()
        if not self.behind:
            self.pages.append(page)
        self.news.set()

    def end(self) -> None:
        self.ended = True
        self.news.set()


class SignalHub:
    """The streams of one tenant, and the task that reads for them while there are any."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant_id = tenant_id
        self._listeners: set[_Listener] = set()
        self._reader: asyncio.Task[None] | None = None

    def require_room(self, access: TokenAccess) -> None:
        """Raise RateLimited if the token has as many streams as it may have."""
        of_token = sum(listener.access.token_id == access.token_id for listener in self._listeners)
        if of_token >= settings.ARBOR_API_STREAMS:
            raise RateLimited(
                f"the token {access.name} has {counted(of_token, 'open stream')}, the most it may have; close one first"
            )

    @contextmanager
    def listen(self, access: TokenAccess) -> Iterator[_Listener]:
        """Add a stream, and remove it at the end of the block; the reader ends with the last stream."""
        listener = _Listener(access)
        self._listeners.add(listener)
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read())
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        cursor, checked, is_away = None, loop.time(), False
        while True:
            try:
                page = await in_thread(read_page, self._tenant_id, cursor)
                if cursor is None:
                    # The reader begins at the latest signal; each stream reads the signals before it.
                    for listener in self._listeners:
                        listener.fall_behind()
                elif page.signals:
                    for listener in self._listeners:
                        listener.receive(page)
                cursor = page.cursor
                if loop.time() - checked >= TOKENS_CHECKED_EVERY_S:
                    checked = loop.time()
                    await self._end_refused()
                is_away = False
            except Exception:
                # The database may not answer for a moment: the streams stay open and miss nothing.
                if not is_away:
                    log.exception("signal_read_failed", tenant_id=str(self._tenant_id))
                is_away = True
                await asyncio.sleep(POLL_S)
                continue
            if not page.more:
                await asyncio.sleep(POLL_S)

    async def _end_refused(self) -> None:
        """End the streams whose token was revoked or has expired, or whose tenant is suspended."""
        token_ids = {listener.access.token_id for listener in self._listeners}
        live = await in_thread(_live_tokens, self._tenant_id, token_ids)
        for listener in self._listeners:
            if listener.access.token_id not in live:
                listener.end()


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[UUID, SignalHub]] = WeakKeyDictionary()


def hub_of(tenant_id: UUID) -> SignalHub:
    """Return the hub of a tenant in this event loop."""
    hubs = _hubs.setdefault(asyncio.get_running_loop(), {})
    if tenant_id not in hubs:
        hubs[tenant_id] = SignalHub(tenant_id)
    return hubs[tenant_id]


async def live_signals(
    listener: _Listener, *, after: Cursor, wanted: SignalFilter
) -> AsyncIterator[SignalRecord | None]:
    """Yield the wanted signals after a cursor, in order, until the listener is ended; None after a silence of SILENCE_S.

    Signals that are committed while the stream catches up wait in the pages of the listener.
    """
    loop = asyncio.get_running_loop()
    cursor, listener.behind, is_away = after, True, False
    #: The time of the latest signal or keep-alive: signals that are not wanted end no silence.
    silent_since = loop.time()
    while not listener.ended:
        if loop.time() - silent_since >= SILENCE_S:
            yield None
            silent_since = loop.time()
        if listener.behind:
            listener.behind = False
            try:
                page = await in_thread(read_page, listener.access.tenant_id, cursor, wanted)
            except (OperationalError, InterfaceError) as error:
                # As in the reader: the stream stays open and misses nothing.
                listener.behind = True
                if not is_away:
                    tenant_id = str(listener.access.tenant_id)
                    log.warning("signal_read_failed", tenant_id=tenant_id, error=str(error))
                is_away = True
                await asyncio.sleep(POLL_S)
                continue
            is_away = False
            listener.behind = listener.behind or page.more
        elif listener.pages:
            page = listener.pages.popleft()
        else:
            listener.news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(listener.news.wait(), silent_since + SILENCE_S - loop.time())
            continue
        for record in page.signals:
            if record.cursor > cursor and wanted.passes(record):
                yield record
                silent_since = loop.time()
        cursor = max(cursor, page.cursor)


def read_page(tenant_id: UUID, after: Cursor | None, wanted: SignalFilter | None = None) -> SignalPage:
    """Read the signals after a cursor; without a cursor, an empty page at the latest signal."""
    with tenant_transaction(tenant_id):
        if after is None:
            return SignalPage(signals=(), cursor=horizon(), more=False)
        return read_signals(after=after, wanted=wanted, limit=MAX_SIGNALS)


def _live_tokens(tenant_id: UUID, token_ids: set[UUID]) -> set[UUID]:
    with tenant_transaction(tenant_id):
        return live_tokens(token_ids)
