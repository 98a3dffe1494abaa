"""Agents: listed, created, and moved through their life."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, PagedCall, delete, get, listed, post
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent."""

    id: UUID
    public_id: str
    name: str
    #: created, active, paused, dormant or stopped.
    status: str
    template: str
    template_version: str
    trust_tier: str
    #: `provider/model`; empty: the installation's.
    model: str
    energy: float
    heartbeats: int
    #: Whether agents elsewhere find its card at `card_path`, below the API's address.
    published: bool = False
    public_description: str = ""
    card_path: str = ""
    interval_s: float
    due_at: datetime | None
    last_heartbeat_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Destruction:
    """A destroyed agent, with the number of its deleted rows by kind."""

    id: UUID
    deleted: dict[str, int]


class Agents[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about agents."""

    @listing
    def list(self, *, name: str | None = None, status: str | None = None) -> PagedCall[Agent]:
        """List the agents of the tenant by name."""
        return listed(Agent, "/agents", name=name, status=status)

    @operation
    def create(
        self,
        name: str,
        *,
        template: str,
        interval_s: float | None = None,
        model: str | None = None,
        start: bool = False,
    ) -> Call[Agent]:
        """Create an agent from a template; it has no heartbeats before it is started."""
        body = {"name": name, "template": template, "interval_s": interval_s, "model": model, "start": start}
        return post(Agent, "/agents", body)

    @operation
    def get(self, agent_id: UUID | str) -> Call[Agent]:
        """Return an agent."""
        return get(Agent, f"/agents/{agent_id}")

    @operation
    def change_status(self, agent_id: UUID | str, verb: str) -> Call[Agent]:
        """Carry out a verb: start, pause, resume, stop, sleep or wake. Raises Conflict where the status forbids it."""
        return post(Agent, f"/agents/{agent_id}/{verb}")

    @operation
    def publish(self, agent_id: UUID | str, *, description: str | None = None) -> Call[Agent]:
        """Publish an agent to agents elsewhere; without a description the card says what it said, or its role."""
        return post(Agent, f"/agents/{agent_id}/publish", {"description": description})

    @operation
    def unpublish(self, agent_id: UUID | str) -> Call[Agent]:
        """Withdraw an agent's card; agents elsewhere reach it no longer."""
        return post(Agent, f"/agents/{agent_id}/unpublish")

    @operation
    def destroy(self, agent_id: UUID | str, *, confirm: str) -> Call[Destruction]:
        """Delete an agent and all its data, for good; `confirm` is its exact name."""
        return delete(Destruction, f"/agents/{agent_id}", confirm=confirm)
