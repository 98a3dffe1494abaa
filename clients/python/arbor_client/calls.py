"""Calls as values: what is sent, and how the answer is read. Nothing here reaches the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import httpx

from arbor_client.decoding import decode

IDEMPOTENCY_KEY = "Idempotency-Key"


@dataclass(frozen=True, kw_only=True)
class Call[T]:
    """One request, and the reading of its answer."""

    method: str
    path: str
    parse: Callable[[Any], T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    #: Repeated with each retry, so that the server carries the request out once.
    idempotency_key: str = ""
    #: The call that asks again for a value that is not complete yet; None: the value is complete.
    follow: Callable[[T], Call[T] | None] | None = None

    def request(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Return the request, with the client's address and headers."""
        headers = {IDEMPOTENCY_KEY: self.idempotency_key} if self.idempotency_key else {}
        return client.build_request(
            self.method, self.path, params=_given(self.query), json=self.body, headers=headers
        )


@dataclass(frozen=True, kw_only=True)
class PagedCall[T]:
    """The first request of a list, and the reading of one row."""

    first: Call[Any]
    row: Callable[[Any], T]

    def page(self, cursor: str | None) -> Call[tuple[list[T], str | None]]:
        """Return the call of a page: its rows, and the cursor of the next page."""
        query = {**self.first.query, "cursor": cursor}
        return replace(self.first, query=query, parse=self._read)

    def _read(self, value: Any) -> tuple[list[T], str | None]:
        return [self.row(item) for item in value["items"]], value["next_cursor"]


def get[T](kind: type[T], path: str, **query: Any) -> Call[T]:
    """Return a call that reads."""
    return Call(method="GET", path=path, parse=decoder(kind), query=query)


def post[T](kind: type[T], path: str, body: Mapping[str, Any] | None = None) -> Call[T]:
    """Return a call that creates or acts, with a new idempotency key."""
    return Call(
        method="POST",
        path=path,
        parse=decoder(kind),
        body=None if body is None else _given(body),
        idempotency_key=str(uuid4()),
    )


def patch[T](kind: type[T], path: str, body: Mapping[str, Any]) -> Call[T]:
    """Return a call that changes what is given, with a new idempotency key."""
    return replace(post(kind, path, body), method="PATCH")


def delete[T](kind: type[T], path: str, **query: Any) -> Call[T]:
    """Return a call that deletes."""
    return Call(method="DELETE", path=path, parse=decoder(kind), query=query)


def listed[T](kind: type[T], path: str, **query: Any) -> PagedCall[T]:
    """Return a call of a list."""
    return PagedCall(
        first=Call(method="GET", path=path, parse=lambda value: value, query=query), row=decoder(kind)
    )


def decoder[T](kind: type[T]) -> Callable[[Any], T]:
    """Return the function that reads a value of this type."""

    def read(value: Any) -> T:
        result: T = decode(kind, value)
        return result

    return read


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what the caller did not give."""
    return {name: value for name, value in values.items() if value is not None}
