"""Grants: signed capabilities of agents, their match by path segment, and the rules of delegation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from arbor.agents.capabilities import SCHEME, CapabilityUri
from arbor.agents.identity import prefixed_bytes, verify_hex
from arbor.authority.constraints import UNCONSTRAINED, Constraints
from arbor.errors import CapabilityInvalid
from arbor.quotations import counted
from arbor.workflows.values import START_WORKFLOW, WORKFLOW_PREFIX

#: The levels of delegation below a grant, by default and at most.
DEFAULT_DEPTH = 3
MAX_DEPTH = 10
#: The holder of a grant to all agents of a tenant.
ALL_AGENTS = "*"
#: The beginning of the resource of an action, before the action's name.
ACTION_PREFIX = "arbor://actions/execute/"
#: The resource that lets an agent search the audit log of its tenant.
AUDIT_RESOURCE = "arbor://knowledge/audit/read"
CAPABILITY_PREFIX = "cap_"

_LABEL = "arbor/capability/v1"
# Entries of the caches of one process; an entry is a few hundred bytes.
_SIGNATURES_CACHED = 16_384
_URIS_CACHED = 4_096


@dataclass(frozen=True, kw_only=True, slots=True)
class Capability:
    """A grant of a resource to an agent."""

    #: `cap_` and 32 hexadecimal digits.
    id: str
    tenant: str
    #: The public id of the holder, or `*` for all agents of the tenant.
    agent: str
    #: The key that signed it: `authority:NUMBER` for a key of the System Authority.
    issuer: str
    resource: CapabilityUri
    constraints: Constraints = UNCONSTRAINED
    #: The grant that this one was delegated from; empty for a grant by a person.
    parent_id: str = ""
    #: The levels of delegation that are allowed below this grant.
    depth: int = DEFAULT_DEPTH
    granted_at: datetime
    #: In hexadecimal digits; empty: not signed yet, so that the grant authorizes nothing.
    signature: str = ""
    #: The grants above this one, the nearest first.
    ancestors: tuple[Capability, ...] = ()
    #: The revocation, which the signature does not cover.
    revoked_at: datetime | None = None
    revoked_reason: str = ""
    #: The bytes that the issuer signs, which each action of a holder verifies.
    _message: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_message", self._encoded())

    def message(self) -> bytes:
        """Return the bytes that the issuer signs: fields behind their lengths, so that no two grants share them."""
        return self._message

    def _encoded(self) -> bytes:
        return prefixed_bytes(
            _LABEL,
            self.id,
            self.tenant,
            self.agent,
            self.issuer,
            str(self.resource),
            self.constraints.canonical(),
            self.parent_id,
            self.depth,
            self.granted_at.astimezone(UTC).isoformat(),
        )

    def is_signed_by(self, key: bytes) -> bool:
        """Return whether the key pair of a public key signed this grant. Results are cached."""
        return bool(self.signature) and _is_signature(key, self._message, self.signature)


_is_signature = lru_cache(maxsize=_SIGNATURES_CACHED)(verify_hex)


@lru_cache(maxsize=_URIS_CACHED)
def read_uri(text: str) -> CapabilityUri:
    """Parse the URI of a resource. Raises CapabilityInvalid."""
    return CapabilityUri.parse(text)


def action_resource(action: str) -> str:
    """Return the resource that an agent needs for an action."""
    return ACTION_PREFIX + action


def resolve_resource(text: str) -> str:
    """Return the resource that a person names, by its URI or by the name of an action. Raises CapabilityInvalid for an empty text.

    Without a name, the URI would be that of all actions.
    """
    named = text.strip()
    if not named:
        raise CapabilityInvalid(f"name an action, such as recall, or a resource that begins with {SCHEME}")
    return named if named.startswith(SCHEME) else action_resource(named)


def resource_of(action: str, params: Mapping[str, Any]) -> str:
    """Return the resource that an agent needs for an action with these parameters: to start a workflow, that workflow."""
    if action == START_WORKFLOW:
        return f"{WORKFLOW_PREFIX}{str(params.get('workflow') or '').strip()}"
    return action_resource(action)


def matches(grant: CapabilityUri, resource: CapabilityUri) -> bool:
    """Return whether a grant covers a resource: by whole segments, never by the beginning of one.

    `*` is one segment, `**` any number of them, none included. A resource with a wildcard is covered as `is_subset` says.
    """
    if resource.wildcard:
        return is_subset(resource, grant)
    if not grant.wildcard:
        return grant.segments == resource.segments
    length = len(grant.segments)
    if resource.segments[:length] != grant.segments:
        return False
    return grant.wildcard == "**" or len(resource.segments) == length + 1


def is_subset(child: CapabilityUri, parent: CapabilityUri) -> bool:
    """Return whether every resource that the child covers is covered by the parent."""
    if not child.wildcard:
        return matches(parent, child)
    if parent.wildcard == "**":
        return child.segments[: len(parent.segments)] == parent.segments
    # `*` covers one segment, so it contains `*` of the same path, and `**` of none.
    return parent.wildcard == child.wildcard and parent.segments == child.segments


def widening(child: Capability, parent: Capability) -> str:
    """Return the respect in which a delegated grant exceeds the grant above it; empty if it does not."""
    if child.tenant != parent.tenant:
        return "it would leave the tenant"
    if not is_subset(child.resource, parent.resource):
        return f"{child.resource} is not within {parent.resource}"
    if child.depth >= parent.depth:
        levels = counted(parent.depth, "level")
        return f"it would be delegated further than {parent.id} allows: {levels} below it"
    return child.constraints.widening(parent.constraints)


def check_depth(depth: int) -> int:
    """Return a depth of delegation; raises CapabilityInvalid."""
    if not 0 <= depth <= MAX_DEPTH:
        raise CapabilityInvalid(f"a grant is delegated 0 to {MAX_DEPTH} levels deep, got {depth}")
    return depth
