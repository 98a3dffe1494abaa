"""Groups of operations, written once: on a synchronous client they return values, on an asynchronous one awaitables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, overload

from arbor_client.calls import Call, PagedCall
from arbor_client.streams import Event, StreamCall

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


class Group[C: (Arbor, AsyncArbor)]:
    """The operations about one kind of thing, for the client `C`."""

    def __init__(self, client: C) -> None:
        self._client: C = client


class operation[**P, T]:  # noqa: N801 (a decorator)
    """Make a method that returns a call execute the call."""

    def __init__(self, build: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self._build = build
        update_wrapper(self, build)  # type: ignore[arg-type]

    @overload
    def __get__(self, group: Group[Arbor], owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, group: Group[AsyncArbor], owner: Any) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        """Return the operation of a group."""
        return _bind(group, self._build, lambda client: client.send)


class listing[**P, T]:  # noqa: N801 (a decorator)
    """Make a method that returns a list's call iterate over all its pages."""

    def __init__(self, build: Callable[Concatenate[Any, P], PagedCall[T]]) -> None:
        self._build = build
        update_wrapper(self, build)  # type: ignore[arg-type]

    @overload
    def __get__(self, group: Group[Arbor], owner: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, group: Group[AsyncArbor], owner: Any) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        """Return the operation of a group."""
        return _bind(group, self._build, lambda client: client.iterate)


class streaming[**P]:  # noqa: N801 (a decorator)
    """Make a method that returns a stream's call iterate over its events."""

    def __init__(self, build: Callable[Concatenate[Any, P], StreamCall]) -> None:
        self._build = build
        update_wrapper(self, build)  # type: ignore[arg-type]

    @overload
    def __get__(self, group: Group[Arbor], owner: Any) -> Callable[P, Iterator[Event]]: ...
    @overload
    def __get__(self, group: Group[AsyncArbor], owner: Any) -> Callable[P, AsyncIterator[Event]]: ...
    def __get__(self, group: Any, owner: Any) -> Any:
        """Return the operation of a group."""
        return _bind(group, self._build, lambda client: client.stream)


def _bind(group: Any, build: Callable[..., Any], execute: Callable[[Any], Callable[[Any], Any]]) -> Any:
    def run(*args: Any, **named: Any) -> Any:
        return execute(group._client)(build(group, *args, **named))

    run.__doc__ = build.__doc__
    run.__name__ = build.__name__
    return run
