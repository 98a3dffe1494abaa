"""Proposals about an agent's self."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from arbor_client.calls import Call, PagedCall, listed, post
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A change of the self that waits for a decision, or was decided."""

    id: UUID
    kind: str
    content: str
    change: Any
    confidence: float
    evidence: Any
    status: str
    source: str
    deferrals: int
    reason: str
    decided_by: str
    created_at: datetime
    decided_at: datetime | None


class Proposals[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about proposals."""

    @listing
    def list(self, agent_id: UUID | str, *, status: str | None = None) -> PagedCall[Proposal]:
        """List proposals, the latest first; `status="pending"`: those that wait for a decision."""
        return listed(Proposal, f"/agents/{agent_id}/proposals", status=status)

    @operation
    def add(
        self, agent_id: UUID | str, content: str, *, kind: str = "insight", confidence: float = 0.7
    ) -> Call[Proposal]:
        """Add a proposal. The agent decides it at its next heartbeat, unless a person does before."""
        body = {"content": content, "kind": kind, "confidence": confidence}
        return post(Proposal, f"/agents/{agent_id}/proposals", body)

    @operation
    def decide(
        self,
        agent_id: UUID | str,
        proposal_id: UUID | str,
        verb: Literal["accept", "reject", "defer"],
        *,
        reason: str = "",
    ) -> Call[Proposal]:
        """Decide a proposal. Raises Conflict for a decided one."""
        return post(Proposal, f"/agents/{agent_id}/proposals/{proposal_id}/{verb}", {"reason": reason})
