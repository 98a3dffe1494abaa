"""The grants of an agent as one column of a statement, and its parser: what every heartbeat reads and checks.

The column is text, so that a process parses the grants of an agent once, however often its heartbeats read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from apps.agents.services.identity_column import AgentIdentity
from apps.tenants.encoding import from_json
from arbor.authority.authorization import AgentAuthority, AgentGrants, GrantUses
from arbor.authority.constraints import UNCONSTRAINED, Constraints
from arbor.authority.grants import ALL_AGENTS, CAPABILITY_PREFIX, Capability, read_uri
from arbor.errors import CapabilityInvalid

#: The grants of the agent `a` and of all agents as JSON text, with the uses of grants that limit them; null for none. Needs
#: `%(tenant)s`.
GRANTS_COLUMN = """(
    SELECT json_agg(json_build_array(g.id, g.agent_id IS NULL, g.resource, g.constraints, g.parent_id, g.depth, g.issuer,
        g.signature, g.granted_at, g.ancestors, CASE WHEN g.constraints ?| ARRAY['rate', 'max_uses'] THEN (
            SELECT json_build_array(coalesce(sum(u.number), 0), coalesce(sum(u.number) FILTER (
                WHERE u.at > now() - make_interval(secs => (g.constraints -> 'rate' ->> 1)::int)), 0))
            FROM authority_capabilityuse u WHERE u.tenant_id = %(tenant)s AND u.capability_id = g.id
        ) END) ORDER BY g.id)::text
    FROM authority_capabilitygrant g
    WHERE g.tenant_id = %(tenant)s AND (g.agent_id = a.id OR g.agent_id IS NULL) AND g.revoked_at IS NULL
)"""
#: Agents whose grants a process has parsed, about 10 KB each.
_GRANTS_CACHED = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedGrants:
    """The grants of an agent, and the uses of those that limit them."""

    grants: AgentGrants
    uses: Mapping[str, GrantUses]


def parse_authority(grants: str | None, identity: AgentIdentity) -> AgentAuthority:
    """Return the rights of an agent, from the text of `GRANTS_COLUMN`."""
    chain = identity.chain
    parsed = _parse(grants or "[]", chain.public_id, chain.tenant_id)
    return AgentAuthority(
        tenant=chain.tenant_id,
        public_id=chain.public_id,
        keys={key.number: key.public for key in chain.keys},
        identity_fault=identity.refusal,
        issuers={issuer_of(number): public for number, public in identity.authority_keys},
        grants=parsed.grants,
        uses=parsed.uses,
    )


def issuer_of(number: int) -> str:
    """Return the issuer of grants that a key of the System Authority signs."""
    return f"authority:{number}"


def capability_name(capability_id: UUID) -> str:
    """Return the id of a grant as it is signed and shown."""
    return CAPABILITY_PREFIX + capability_id.hex


def to_record(grant: Capability) -> dict[str, Any]:
    """Return a signed grant as JSON, for the ancestors of its delegates."""
    return {
        "id": grant.id,
        "agent": grant.agent,
        "resource": str(grant.resource),
        "constraints": grant.constraints.to_json(),
        "parent_id": grant.parent_id,
        "depth": grant.depth,
        "issuer": grant.issuer,
        "granted_at": grant.granted_at.isoformat(),
        "signature": grant.signature,
    }


def from_record(record: Mapping[str, Any], *, tenant: str) -> Capability:
    """Read a grant from `to_record`. Raises CapabilityInvalid, KeyError, ValueError for a damaged one."""
    return Capability(
        tenant=tenant,
        id=record["id"],
        agent=record["agent"],
        resource=read_uri(record["resource"]),
        constraints=Constraints.from_json(record["constraints"]),
        parent_id=record["parent_id"],
        depth=record["depth"],
        issuer=record["issuer"],
        granted_at=datetime.fromisoformat(record["granted_at"]),
        signature=record["signature"],
    )


@lru_cache(maxsize=_GRANTS_CACHED)
def _parse(text: str, public_id: str, tenant: str) -> ParsedGrants:
    grants: list[Capability] = []
    uses: dict[str, GrantUses] = {}
    for row in from_json(text):
        try:
            grant = _grant(row, public_id, tenant)
        except (CapabilityInvalid, KeyError, ValueError):
            # A damaged row grants nothing: its signature could not be verified either.
            continue
        grants.append(grant)
        if (used := row[-1]) is not None:
            uses[grant.id] = GrantUses(total=used[0], recent=used[1])
    return ParsedGrants(grants=AgentGrants(grants), uses=uses)


def _grant(row: list[Any], public_id: str, tenant: str) -> Capability:
    (
        capability_id,
        is_for_all,
        resource,
        constraints,
        parent_id,
        depth,
        issuer,
        signature,
        at,
        ancestors,
        _,
    ) = row
    return Capability(
        id=capability_name(UUID(capability_id)),
        tenant=tenant,
        agent=ALL_AGENTS if is_for_all else public_id,
        issuer=issuer,
        resource=read_uri(resource),
        constraints=Constraints.from_json(constraints) if constraints else UNCONSTRAINED,
        parent_id=capability_name(UUID(parent_id)) if parent_id else "",
        depth=depth,
        granted_at=datetime.fromisoformat(at),
        signature=signature,
        ancestors=tuple(from_record(record, tenant=tenant) for record in ancestors or ()),
    )
