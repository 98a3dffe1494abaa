"""Agents: list, create, start, publish, message and destroy them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, delete, get, listed, post, segment
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
    #: The tier that its template asks for; `tiers.get` returns its tier now.
    trust_tier: str
    #: `provider/model`; empty: the default of its tenant, else of the installation.
    model: str
    energy: float
    #: The heartbeats that ran to a decision.
    heartbeats: int
    #: Whether agents elsewhere find its card at `card_path`, below the API's address.
    published: bool = False
    public_description: str = ""
    card_path: str = ""
    interval_s: float
    #: The time of its next heartbeat; None: it has none.
    due_at: datetime | None
    last_heartbeat_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Destruction:
    """A destroyed agent, with the number of its deleted rows by kind."""

    id: UUID
    deleted: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class SentMessage:
    """A message that an agent receives at its next heartbeat."""

    agent_id: UUID
    percept_id: UUID


@dataclass(frozen=True, kw_only=True)
class ChangedAgents:
    """The number of agents whose status changed."""

    changed: int


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
    def get(self, agent_id: Id) -> Call[Agent]:
        """Return an agent."""
        return get(Agent, f"/agents/{segment(agent_id)}")

    @operation
    def start(self, agent_id: Id) -> Call[Agent]:
        """Start an agent's heartbeats. Like all changes of status, raises Conflict where the present status forbids it."""
        return post(Agent, f"/agents/{segment(agent_id)}/start")

    @operation
    def publish(self, agent_id: Id, *, description: str | None = None) -> Call[Agent]:
        """Publish an agent to agents elsewhere; without a description, its card has the one before, or the agent's role."""
        return post(Agent, f"/agents/{segment(agent_id)}/publish", {"description": description})

    @operation
    def unpublish(self, agent_id: Id) -> Call[Agent]:
        """Withdraw an agent's card; agents elsewhere reach it no longer."""
        return post(Agent, f"/agents/{segment(agent_id)}/unpublish")

    @operation
    def pause(self, agent_id: Id) -> Call[Agent]:
        """Pause an agent until it is resumed."""
        return post(Agent, f"/agents/{segment(agent_id)}/pause")

    @operation
    def resume(self, agent_id: Id) -> Call[Agent]:
        """Resume a paused agent."""
        return post(Agent, f"/agents/{segment(agent_id)}/resume")

    @operation
    def stop(self, agent_id: Id) -> Call[Agent]:
        """Stop an agent."""
        return post(Agent, f"/agents/{segment(agent_id)}/stop")

    @operation
    def sleep(self, agent_id: Id) -> Call[Agent]:
        """Make an agent dormant until something happens to it."""
        return post(Agent, f"/agents/{segment(agent_id)}/sleep")

    @operation
    def wake(self, agent_id: Id) -> Call[Agent]:
        """Wake a dormant agent."""
        return post(Agent, f"/agents/{segment(agent_id)}/wake")

    @operation
    def pause_all(self, *, reason: str = "") -> Call[ChangedAgents]:
        """Pause all active agents of the tenant; heartbeats under way end by themselves."""
        return post(ChangedAgents, "/pause-agents", {"reason": reason})

    @operation
    def resume_all(self) -> Call[ChangedAgents]:
        """Resume the paused agents of the tenant, except those that were paused one by one."""
        return post(ChangedAgents, "/resume-agents")

    @operation
    def message(self, agent_id: Id, text: str) -> Call[SentMessage]:
        """Send an agent a message; its next heartbeat starts at once. `conversations.say` waits for an answer."""
        return post(SentMessage, f"/agents/{segment(agent_id)}/messages", {"text": text})

    @operation
    def destroy(self, agent_id: Id, *, confirm: str, seed: bool = True) -> Call[Destruction | None]:
        """Delete an agent and all its data, for good; `confirm` is its exact name. A seed is saved first, for 30 days."""
        return delete(Destruction, f"/agents/{segment(agent_id)}", confirm=confirm, seed=seed)
