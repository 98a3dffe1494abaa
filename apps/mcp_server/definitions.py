"""Definitions of tools: the function, the annotations for clients, and the role that may call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import getdoc, iscoroutinefunction
from typing import Annotated, Any

from django.db import DataError, InterfaceError, OperationalError
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from psycopg.errors import QueryCanceled
from pydantic import BaseModel, Field

from apps.api.threads import DATABASE_AWAY, TOO_SLOW, UNSTORABLE, in_thread
from apps.tenants.models import Role
from arbor.errors import ArborError

#: The parameter of all tools about one agent.
AgentParam = Annotated[
    str | None,
    Field(description="Name or id of the agent. Leave it out where only one agent is served."),
]


class ToolResult(BaseModel, frozen=True):
    """The base of structured results."""


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool. Its name, description and schemas are the name, docstring and types of its function."""

    run: Callable[..., Any]
    title: str
    role: Role
    annotations: ToolAnnotations

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(self.run.__name__)

    @property
    def description(self) -> str:
        """The tool's description for the client's model: the whole docstring."""
        return getdoc(self.run) or ""


def reading(run: Callable[..., Any], title: str) -> ToolDefinition:
    """Define a tool that changes nothing; every role may call it."""
    annotations = ToolAnnotations(
        title=title, read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    return ToolDefinition(run=run, title=title, role=Role.VIEWER, annotations=annotations)


def writing(
    run: Callable[..., Any],
    title: str,
    *,
    destructive: bool = False,
    idempotent: bool = False,
    asks_model: bool = False,
) -> ToolDefinition:
    """Define a tool that changes an agent; operators may call it.

    `destructive`: the change may lose something; `idempotent`: a second call with the same arguments changes nothing more;
    `asks_model`: the call reaches a language model.
    """
    annotations = ToolAnnotations(
        title=title,
        read_only_hint=False,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=asks_model,
    )
    return ToolDefinition(run=run, title=title, role=Role.OPERATOR, annotations=annotations)


def guarded(run: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return the function with errors of Arbor as answers; a function that blocks runs in a thread."""

    @wraps(run)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with errors_for_client(ToolError):
            if iscoroutinefunction(run):
                return await run(*args, **kwargs)
            return await in_thread(run, *args, **kwargs)

    return call


@contextmanager
def errors_for_client(error_of: Callable[[str], Exception]) -> Iterator[None]:
    """Raise errors of Arbor and of the database as errors of MCP, which `error_of` makes from a message for the client."""
    try:
        yield
    except ArborError as error:
        raise error_of(str(error)) from error
    except DataError as error:
        raise error_of(UNSTORABLE) from error
    except (OperationalError, InterfaceError) as error:
        is_canceled = isinstance(error.__cause__, QueryCanceled)
        raise error_of(TOO_SLOW if is_canceled else DATABASE_AWAY) from error
