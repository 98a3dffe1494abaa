"""List the grants of agents, and explain which resources they authorize, and why others are denied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, Sum

from apps.agents.models import Agent
from apps.agents.services.identity import identity_of
from apps.agents.services.lookup import agent_by_id
from apps.authority.models import CapabilityGrant, CapabilityUse
from apps.authority.services.authority_column import GRANTS_COLUMN, parse_authority
from apps.authority.services.grants import to_value
from apps.authority.services.modes import trust_of
from apps.tenants.statements import fetch
from arbor.authority.authorization import (
    AgentAuthority,
    AgentGrants,
    Authorization,
    explain,
    with_trust,
)
from arbor.authority.constraints import Constraints
from arbor.authority.grants import ACTION_PREFIX, action_resource, read_uri, resolve_resource
from arbor.quotations import counted
from arbor.values import replace

_GRANTS = f"SELECT {GRANTS_COLUMN} FROM agents_agent a WHERE a.tenant_id = %(tenant)s AND a.id = %(agent)s"  # noqa: S608 (no external input)


class GrantStatus(StrEnum):
    """The status of a grant, by its times alone."""

    #: Authorizes, as far as its hours, rate and uses allow.
    IN_FORCE = "in_force"
    #: Begins later.
    NOT_YET = "not_yet"
    #: Has expired.
    EXPIRED = "expired"
    #: Was revoked.
    REVOKED = "revoked"
    #: Written by a migration; `arbor prepare` signs it.
    UNSIGNED = "unsigned"


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthorizationReport:
    """The decision whether an agent may use a resource now, and the grants that were tried."""

    resource: str
    authorization: Authorization

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as the API, the MCP server and `--json` show it."""
        found = self.authorization
        return {
            "resource": self.resource,
            "granted": found.granted,
            "capability": found.capability_id,
            "code": found.code.value if found.code is not None else "",
            "reason": found.reason,
            "tried": [
                {
                    "capability": grant.capability_id,
                    "resource": grant.resource,
                    "code": grant.code.value,
                    "reason": grant.reason,
                }
                for grant in found.tried
            ],
        }


def capabilities_of(agent_id: UUID, *, revoked: bool = False) -> QuerySet[CapabilityGrant]:
    """Return the grants of an agent and those of all agents, with their agents; revoked ones on request."""
    rows: QuerySet[CapabilityGrant] = CapabilityGrant.objects.select_related("agent").filter(
        Q(agent_id=agent_id) | Q(agent=None)
    )
    return (rows if revoked else rows.filter(revoked_at=None)).order_by("resource", "id")


def status_of(row: CapabilityGrant, *, now: datetime) -> GrantStatus:
    """Return the status of a grant."""
    limits = Constraints.from_json(row.constraints)
    if row.revoked_at is not None:
        return GrantStatus.REVOKED
    if not row.signature:
        return GrantStatus.UNSIGNED
    if limits.expires_at is not None and now >= limits.expires_at:
        return GrantStatus.EXPIRED
    if limits.not_before is not None and now < limits.not_before:
        return GrantStatus.NOT_YET
    return GrantStatus.IN_FORCE


def uses_of(capability_ids: Collection[UUID]) -> Mapping[UUID, int]:
    """Return the uses of grants that limit them."""
    counted = CapabilityUse.objects.filter(capability_id__in=capability_ids).values("capability_id")
    return dict(counted.annotate(used=Sum("number")).values_list("capability_id", "used"))


def describe_constraints(row: CapabilityGrant) -> str:
    """Return the constraints of a grant in words; empty if there are none."""
    limits = Constraints.from_json(row.constraints)
    parts = [
        f"from {limits.not_before:%Y-%m-%d %H:%M} UTC" if limits.not_before else "",
        f"until {limits.expires_at:%Y-%m-%d %H:%M} UTC" if limits.expires_at else "",
        counted(limits.max_uses, "use") if limits.max_uses is not None else "",
        str(limits.rate) if limits.rate else "",
        str(limits.window) if limits.window else "",
    ]
    return ", ".join(filter(None, parts))


def authority_of(agent_id: UUID) -> AgentAuthority:
    """Return the identity and the grants of an agent, without rules of trust. Raises NotFound."""
    identity = identity_of(agent_id)
    ((grants,),) = fetch(_GRANTS, agent=agent_id)
    return parse_authority(grants, identity)


def explain_authorization(*, agent_id: UUID, resource: str) -> AuthorizationReport:
    """Explain whether an agent may use a resource, or an action by its name, now: each grant that covers it, revoked ones too.

    A grant does not suffice where the trust in the agent blocks the resource; where a person is asked first, the reason says so.
    Raises NotFound for the agent, and CapabilityInvalid for no name, and for a URI that breaks the grammar.
    """
    agent = agent_by_id(agent_id)
    uri = str(read_uri(resolve_resource(resource)))
    own = authority_of(agent.id)
    revoked = tuple(to_value(row) for row in capabilities_of(agent.id, revoked=True).exclude(revoked_at=None))
    authority = replace(own, grants=AgentGrants((*own.grants, *revoked)))
    found = explain(uri, authority=authority, now=datetime.now(UTC))
    return AuthorizationReport(resource=uri, authorization=with_trust(found, uri, trust_of(agent.id)))


def action_names(agent_id: UUID) -> list[str]:
    """Return the actions that an agent has a grant of, as named by the grants, in alphabetical order. One statement."""
    granted = capabilities_of(agent_id).filter(resource__startswith=ACTION_PREFIX)
    return sorted(
        {resource.removeprefix(ACTION_PREFIX) for resource in granted.values_list("resource", flat=True)}
    )


def agents_with_action(action: str) -> QuerySet[Agent]:
    """Return the agents with a grant of exactly this action that is not revoked, by name."""
    rows: QuerySet[Agent] = Agent.objects.filter(
        capabilities__resource=action_resource(action), capabilities__revoked_at=None
    )
    return rows.distinct().order_by("name")
