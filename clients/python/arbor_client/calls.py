"""Calls as values: the request to send, and the reading of its answer. Nothing here reaches the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx

from arbor_client.errors import UnreadableAnswer
from arbor_client.json_values import decode, encode

IDEMPOTENCY_KEY = "Idempotency-Key"

#: The id of a row.
type Id = UUID | str
#: A list of rows, where the name `list` is that of an operation.
type Rows[T] = list[T]


class Unchanged(Enum):
    """The default of a field that a change leaves as it is; None removes a value."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@dataclass(frozen=True, kw_only=True)
class Call[T]:
    """One request, and the reading of its answer."""

    method: str
    path: str
    parse: Callable[[Any], T]
    #: The type of the answer, or of a row of a list; tests compare it with the API.
    kind: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    #: A file as the body, instead of JSON.
    content: bytes | None = None
    #: The answer is a file, not JSON.
    answers_file: bool = False
    #: Repeated with each retry, so that the server executes the request once.
    idempotency_key: str = ""
    #: The call that asks again for a value that is not complete yet; None: the value is complete.
    follow: Callable[[T], Call[T] | None] | None = None

    def request(self, client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """Return the request, with the client's address and headers."""
        headers = {IDEMPOTENCY_KEY: self.idempotency_key} if self.idempotency_key else {}
        if self.content is not None:
            headers["Content-Type"] = "application/octet-stream"
        return client.build_request(
            self.method,
            self.path,
            params=_encoded(self.query),
            json=self.body,
            content=self.content,
            headers=headers,
        )


@dataclass(frozen=True, kw_only=True)
class PagedCall[T]:
    """The first request of a list, and the reading of one row."""

    first: Call[Any]
    row: Callable[[Any], T]

    def page(self, cursor: str | None) -> Call[tuple[list[T], str | None]]:
        """Return the call of a page: its rows, and the cursor of the next page."""
        query = {**self.first.query, "cursor": cursor}
        return replace(self.first, query=query, parse=partial(self._read, cursor))

    def _read(self, cursor: str | None, value: Any) -> tuple[list[T], str | None]:
        rows, following = [self.row(item) for item in _items(value, "items")], value.get("next_cursor")
        if following is not None and following in (cursor, ""):
            raise UnreadableAnswer("the list does not end: the cursor of the next page is that of this one")
        return rows, following


def get[T](kind: type[T], path: str, /, **query: Any) -> Call[T]:
    """Return a call that reads."""
    return Call(method="GET", path=path, parse=decoder(kind), kind=kind, query=_encoded(query))


def rows_of[T](call: Call[T], *, under: str = "items") -> Call[Rows[T]]:
    """Return the call for an answer that is a list of the call's values, under the name `under`, or alone if that is empty."""
    rows: Call[Any] = call
    return replace(rows, parse=lambda value: [call.parse(item) for item in _items(value, under)])


def _items(value: Any, under: str) -> list[Any]:
    """Return the list under a name of the answer, or the answer itself if the name is empty. Raises UnreadableAnswer."""
    listed = value.get(under) if under and isinstance(value, dict) else None if under else value
    if not isinstance(listed, list):
        raise UnreadableAnswer(f"the answer has no list{f' under {under}' if under else ''}")
    return listed


def listed[T](kind: type[T], path: str, /, **query: Any) -> PagedCall[T]:
    """Return a call of a list that comes in pages."""
    first = Call(method="GET", path=path, parse=lambda value: value, kind=kind, query=_encoded(query))
    return PagedCall(first=first, row=decoder(kind))


def post[T](kind: type[T], path: str, body: Mapping[str, Any] | None = None) -> Call[T]:
    """Return a call that creates or acts, with a new idempotency key."""
    return Call(
        method="POST",
        path=path,
        parse=decoder(kind),
        kind=kind,
        body=None if body is None else _encoded(body),
        idempotency_key=str(uuid4()),
    )


def put[T](kind: type[T], path: str, body: Mapping[str, Any]) -> Call[T]:
    """Return a call that stores a thing under its name."""
    return Call(method="PUT", path=path, parse=decoder(kind), kind=kind, body=_encoded(body))


def patch[T](kind: type[T], path: str, changes: Mapping[str, Any]) -> Call[T]:
    """Return a call that changes the fields that are not `UNCHANGED`. The server has idempotency keys for POST only."""
    body = {name: value for name, value in changes.items() if value is not UNCHANGED}
    return Call(method="PATCH", path=path, parse=decoder(kind), kind=kind, body=encode(body))


def delete[T](kind: type[T], path: str, /, **query: Any) -> Call[T | None]:
    """Return a call that deletes. Its value is None if a repeated request found nothing, because an earlier one may have been executed."""
    read = decoder(kind)

    def read_deleted(value: Any) -> T | None:
        return None if value is None else read(value)

    return Call(method="DELETE", path=path, parse=read_deleted, kind=kind, query=_encoded(query))


def segment(name: Id) -> str:
    """Return a name or an id as a segment of a path. Raises ValueError for an empty one, `.` and `..`, which lead to another path."""
    if str(name) in ("", ".", ".."):
        raise ValueError(f"{str(name)!r} cannot be a part of an address; use the console")
    return quote(str(name), safe="")


def decoder[T](kind: type[T]) -> Callable[[Any], T]:
    """Return the function that reads a value of this type."""

    def read(value: Any) -> T:
        result: T = decode(kind, value)
        return result

    return read


def _encoded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not None as JSON: a retry sends them again, and a generator yields its items once."""
    return {name: encode(value) for name, value in values.items() if value is not None}
