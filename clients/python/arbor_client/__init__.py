"""The Python client of Arbor.

`Arbor` blocks, `AsyncArbor` awaits; both have the same operations.
"""

from arbor_client.agents import Agent, Destruction
from arbor_client.clients import Arbor, AsyncArbor
from arbor_client.conversations import AnsweredTurn, Turn
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
from arbor_client.goals import Goal
from arbor_client.heartbeats import Heartbeat, HeartbeatTrace
from arbor_client.hooks import Delivery, Hook
from arbor_client.memories import Memory, Recalled
from arbor_client.selves import Proposal
from arbor_client.streams import Event
from arbor_client.tenants import Tenant, Token

__all__ = [
    "Agent",
    "AnsweredTurn",
    "Arbor",
    "ArborClientError",
    "AsyncArbor",
    "Conflict",
    "Delivery",
    "Destruction",
    "Event",
    "Forbidden",
    "Goal",
    "Heartbeat",
    "HeartbeatTrace",
    "Hook",
    "Memory",
    "Missing",
    "Proposal",
    "Recalled",
    "Refused",
    "ServerFailed",
    "Tenant",
    "Token",
    "TokenInvalid",
    "TooManyRequests",
    "Turn",
    "Unprocessable",
    "Unreachable",
    "UnreadableAnswer",
]
