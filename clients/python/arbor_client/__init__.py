"""The Python client of Arbor.

`Arbor` blocks, `AsyncArbor` awaits; both have the same operations.
"""

from arbor_client.agents import Agent, Destruction
from arbor_client.clients import Arbor, AsyncArbor
from arbor_client.errors import (
    ArborClientError,
    Conflict,
    Forbidden,
    Missing,
    Refused,
    ServerFailed,
    TokenInvalid,
    TooManyRequests,
    Unprocessable,
    Unreachable,
    UnreadableAnswer,
)
from arbor_client.streams import Event
from arbor_client.tenants import Tenant, Token

__all__ = [
    "Agent",
    "Arbor",
    "ArborClientError",
    "AsyncArbor",
    "Conflict",
    "Destruction",
    "Event",
    "Forbidden",
    "Missing",
    "Refused",
    "ServerFailed",
    "Tenant",
    "Token",
    "TokenInvalid",
    "TooManyRequests",
    "Unprocessable",
    "Unreachable",
    "UnreadableAnswer",
]
