"""Hooks, at which other systems post what agents should perceive, and deliveries at hooks and of webhooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from arbor_client.calls import (
    UNCHANGED,
    Call,
    Id,
    PagedCall,
    Unchanged,
    delete,
    get,
    listed,
    patch,
    post,
    segment,
)
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Hook:
    """A hook."""

    id: UUID
    name: str
    agent_id: UUID
    #: github or json.
    kind: str
    #: The path on the API's address to which deliveries are posted.
    path: str
    signature_header: str
    mapping: dict[str, str]
    events: list[str]
    urgent_from: float | None
    active: bool
    previous_until: datetime | None
    refused_at: datetime | None
    last_refusal: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class HookSecret:
    """A hook and its new secret, which is shown once."""

    hook: Hook
    secret: str


@dataclass(frozen=True, kw_only=True)
class MappingTrial:
    """The message that a body would give."""

    content: str
    event: str
    sender: str
    importance: float
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A request at a hook, or of a webhook."""

    id: UUID
    hook_id: UUID | None
    webhook_id: UUID | None
    event: str
    #: perceived, ignored, confirmed, retrying, resending or failed.
    status: str
    attempts: int
    error: str
    delivery_id: str
    percept_id: UUID | None
    at: datetime
    tried_at: datetime


class Hooks[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about hooks and deliveries."""

    @listing
    def list(self) -> PagedCall[Hook]:
        """List the hooks of the tenant by name."""
        return listed(Hook, "/hooks")

    @operation
    def get(self, hook_id: Id) -> Call[Hook]:
        """Return a hook."""
        return get(Hook, f"/hooks/{segment(hook_id)}")

    @operation
    def create(
        self,
        name: str,
        agent_id: Id,
        *,
        kind: Literal["github", "json"] = "json",
        mapping: Mapping[str, str] | None = None,
        events: Iterable[str] = (),
        urgent_from: float | None = None,
        signature_header: str = "",
        secret: str = "",
    ) -> Call[HookSecret]:
        """Create a hook of an agent; without a secret of the sender, Arbor generates one."""
        body = {
            "name": name,
            "agent_id": agent_id,
            "kind": kind,
            "mapping": mapping,
            "events": events,
            "urgent_from": urgent_from,
            "signature_header": signature_header,
            "secret": secret,
        }
        return post(HookSecret, "/hooks", body)

    @operation
    def change(
        self,
        hook_id: Id,
        *,
        mapping: Mapping[str, str] | Unchanged = UNCHANGED,
        events: Iterable[str] | Unchanged = UNCHANGED,
        urgent_from: float | Unchanged | None = UNCHANGED,
    ) -> Call[Hook]:
        """Change the given fields; with `urgent_from=None`, no delivery starts a heartbeat at once."""
        return patch(
            Hook,
            f"/hooks/{segment(hook_id)}",
            {"mapping": mapping, "events": events, "urgent_from": urgent_from},
        )

    @operation
    def enable(self, hook_id: Id) -> Call[Hook]:
        """Enable a hook."""
        return post(Hook, f"/hooks/{segment(hook_id)}/enable")

    @operation
    def disable(self, hook_id: Id) -> Call[Hook]:
        """Disable a hook; deliveries to it are refused."""
        return post(Hook, f"/hooks/{segment(hook_id)}/disable")

    @operation
    def rotate_secret(
        self, hook_id: Id, *, secret: str = "", overlap_s: int | None = None
    ) -> Call[HookSecret]:
        """Give a hook a new secret; the previous secret stays valid for a day, or for `overlap_s`."""
        return post(
            HookSecret, f"/hooks/{segment(hook_id)}/secret", {"secret": secret, "overlap_s": overlap_s}
        )

    @operation
    def remove(self, hook_id: Id) -> Call[Hook | None]:
        """Delete a hook with the log of its deliveries."""
        return delete(Hook, f"/hooks/{segment(hook_id)}")

    @operation
    def try_mapping(self, mapping: Mapping[str, str], sample: str) -> Call[MappingTrial]:
        """Return the message that a mapping would give for a body; nothing is stored."""
        return post(MappingTrial, "/try-hook-mapping", {"mapping": mapping, "sample": sample})

    @listing
    def deliveries(
        self,
        *,
        hook_id: Id | None = None,
        webhook_id: Id | None = None,
        direction: Literal["in", "out"] | None = None,
        status: str | None = None,
    ) -> PagedCall[Delivery]:
        """List deliveries at hooks (in) and of webhooks (out), the latest first."""
        return listed(
            Delivery,
            "/deliveries",
            hook_id=hook_id,
            webhook_id=webhook_id,
            direction=direction,
            status=status,
        )

    @operation
    def resend(self, delivery_id: Id) -> Call[Delivery]:
        """Send a delivery of a webhook again within seconds."""
        return post(Delivery, f"/deliveries/{segment(delivery_id)}/resend")
