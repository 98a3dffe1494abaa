"""Signals, read after a cursor or streamed, and the webhooks that they are posted to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, Rows, delete, get, listed, post, rows_of, segment
from arbor_client.groups import Group, listing, operation, streaming
from arbor_client.json_values import encode
from arbor_client.streams import StreamCall

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A signal."""

    #: Its cursor: reading after it continues with the next signal.
    id: str
    name: str
    #: The agent that the signal is about; None: something that agents share, such as documents.
    agent_id: UUID | None
    #: The heartbeat that it happened in, if any.
    heartbeat_id: UUID | None
    at: datetime
    #: Ids, names and numbers, under the names of the catalogue.
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SignalPage:
    """Signals in the order of their commits."""

    items: list[Signal]
    #: The value of `after` for the next request.
    cursor: str
    #: Whether there is more already.
    more: bool


@dataclass(frozen=True, kw_only=True)
class SignalKind:
    """A name of the catalogue."""

    name: str
    meaning: str
    #: The fields of its data, with their meanings.
    data: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """A webhook and the state of its delivery."""

    id: UUID
    name: str
    #: The host only.
    url: str
    #: Names of signals, or beginnings of names; none: all signals.
    signals: list[str]
    #: None: of all agents.
    agent_id: UUID | None
    #: False: paused, by a person or after a day of failures.
    active: bool
    #: The cursor after the last confirmed signal.
    position: str
    #: The time of the last confirmed request.
    delivered_at: datetime | None
    #: The failed requests since the last confirmed one.
    failures: int
    failing_since: datetime | None
    last_error: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class NewWebhook:
    """A new webhook."""

    webhook: Webhook
    #: The secret that signs its requests (Standard Webhooks), shown once.
    secret: str


class Signals[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about signals."""

    @operation
    def read(
        self, *, after: str = "", agent_ids: Iterable[Id] = (), names: Iterable[str] = (), limit: int = 100
    ) -> Call[SignalPage]:
        """Return the signals after a cursor, the oldest first; an empty cursor: from the beginning."""
        query = {"agent_id": agent_ids, "name": names}
        return get(SignalPage, "/signals", after=after, limit=limit, **query)

    @operation
    def names(self) -> Call[Rows[SignalKind]]:
        """Return the catalogue: all names with their meaning and the fields of their data."""
        return rows_of(get(SignalKind, "/signals/names"), under="")

    @streaming
    def stream(
        self, *, after: str = "", agent_ids: Iterable[Id] = (), names: Iterable[str] = ()
    ) -> StreamCall:
        """Stream signals as they are committed, after a cursor or from now; `id` of an event is its cursor."""
        query = encode({"agent_id": agent_ids, "name": names})
        return StreamCall(path="/signals/stream", query=query, after=after)


class Webhooks[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about webhooks."""

    @listing
    def list(self) -> PagedCall[Webhook]:
        """List the webhooks of the tenant by name."""
        return listed(Webhook, "/webhooks")

    @operation
    def get(self, webhook_id: Id) -> Call[Webhook]:
        """Return a webhook and the state of its delivery."""
        return get(Webhook, f"/webhooks/{segment(webhook_id)}")

    @operation
    def create(
        self, name: str, url: str, *, signals: Iterable[str] = (), agent_id: Id | None = None
    ) -> Call[NewWebhook]:
        """Create a webhook for signals from now on; the secret that signs its requests is shown once."""
        body = {"name": name, "url": url, "signals": signals, "agent_id": agent_id}
        return post(NewWebhook, "/webhooks", body)

    @operation
    def pause(self, webhook_id: Id) -> Call[Webhook]:
        """Pause a webhook."""
        return post(Webhook, f"/webhooks/{segment(webhook_id)}/pause")

    @operation
    def resume(self, webhook_id: Id) -> Call[Webhook]:
        """Resume a webhook after the last confirmed signal."""
        return post(Webhook, f"/webhooks/{segment(webhook_id)}/resume")

    @operation
    def delete(self, webhook_id: Id) -> Call[Webhook | None]:
        """Delete a webhook."""
        return delete(Webhook, f"/webhooks/{segment(webhook_id)}")

    @operation
    def rotate_secret(self, webhook_id: Id) -> Call[NewWebhook]:
        """Give a webhook a new secret, shown once; for a day its requests are also signed by the previous secret."""
        return post(NewWebhook, f"/webhooks/{segment(webhook_id)}/secret")
