"""A call leased by a worker, and the message for the worker that executes a call."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.providers import TenantProvider
from apps.queues import Task, TaskMessage
from arbor.models.ports import ModelRequest


@dataclass(frozen=True, kw_only=True)
class LeasedCall:
    """A call leased by this worker; `attempt` is its fencing token."""

    call_id: UUID
    tenant_id: UUID
    agent_id: UUID
    model: str
    request: ModelRequest
    attempt: int
    #: The subject of a maintenance call; empty for the call of a heartbeat.
    subject: dict[str, Any]
    #: Failed tries of a maintenance call so far.
    failures: int
    #: The tenant's own access to the model's provider; None: the installation's.
    provider: TenantProvider | None = None
    #: The time of the lease, by the monotonic clock.
    leased_at: float = field(default_factory=time.monotonic)


def execution_message(*, call_id: UUID, tenant_id: UUID, agent_name: str) -> TaskMessage:
    """Return the message to execute a call."""
    return TaskMessage(
        task=Task.EXECUTE_CALL,
        tenant_id=tenant_id,
        arguments={"call_id": str(call_id)},
        shown=f"agent={agent_name} call={call_id}",
    )
