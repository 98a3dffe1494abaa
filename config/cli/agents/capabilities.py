"""List, grant, delegate and revoke the capabilities of agents, and explain denials."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from rich.markup import escape

from apps.agents.services.lookup import agent_by_name
from apps.authority.models import CapabilityGrant
from apps.authority.services.authority_column import capability_name
from apps.authority.services.explanations import (
    capabilities_of,
    describe_constraints,
    explain_authorization,
    status_of,
    uses_of,
)
from apps.authority.services.grants import (
    delegate_capability,
    grant_capability,
    holder_name,
    revoke_capability,
)
from arbor.authority.constraints import Constraints, constraints_from_input
from arbor.authority.grants import CAPABILITY_PREFIX, DEFAULT_DEPTH, resolve_resource
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import short, stamp, table
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction

_COLUMNS = ("id", "resource", "status", "limits", "uses", "depth", "granted by")


@in_agent_transaction
def list_grants(agent: ChosenAgent, *, with_revoked: bool) -> Output:
    """List the capabilities of an agent."""
    rows = list(capabilities_of(agent.id, revoked=with_revoked))
    lines = _grant_values(rows)
    cells = [
        (
            short(row.id),
            line["resource"],
            line["status"],
            describe_constraints(row),
            line["uses"] or "",
            line["depth"],
            line["granted_by"],
        )
        for row, line in zip(rows, lines, strict=True)
    ]
    empty = f"{agent.name} has no capability. Grant one: [bold]arbor agent capability grant {agent.argument} ACTION[/bold]"
    return Output(
        {"agent": agent.name, "capabilities": lines}, text=table(_COLUMNS, cells) if rows else empty
    )


@in_agent_transaction
def grant(agent: ChosenAgent, /, *, resource: str, depth: int | None, **limits: Any) -> Output:
    """Grant a capability to an agent."""
    row = grant_capability(
        agent_id=agent.id,
        resource=resolve_resource(resource),
        constraints=_build_constraints(limits),
        depth=DEFAULT_DEPTH if depth is None else depth,
        actor=actor(),
    )
    return _grant_output(agent.name, row, "was granted to")


@in_agent_transaction
def delegate(
    agent: ChosenAgent,
    /,
    *,
    capability: str,
    to_agent: str,
    resource: str | None,
    depth: int | None,
    **limits: Any,
) -> Output:
    """Delegate a capability of an agent to another agent."""
    other = agent_by_name(to_agent)
    row = delegate_capability(
        capability_id=find_id(agent, CapabilityGrant, capability.removeprefix(CAPABILITY_PREFIX)),
        to_agent_id=other.id,
        resource=resolve_resource(resource) if resource is not None else "",
        constraints=_build_constraints(limits),
        depth=depth,
        actor=actor(),
    )
    return _grant_output(other.name, row, "was delegated to")


@in_agent_transaction
def revoke(agent: ChosenAgent, *, capability: str, reason: str) -> Output:
    """Revoke a capability and all that was delegated from it."""
    capability_id = find_id(agent, CapabilityGrant, capability.removeprefix(CAPABILITY_PREFIX))
    revoked = revoke_capability(capability_id=capability_id, reason=reason, actor=actor())
    further = f", and {revoked - 1} delegated from it" if revoked > 1 else ""
    return Output(
        {"agent": agent.name, "capability": capability_name(capability_id), "revoked": revoked},
        text=f"revoked {capability_name(capability_id)}{further}",
    )


@in_agent_transaction
def why(agent: ChosenAgent, *, resource: str) -> Output:
    """Explain whether an agent may use a resource now."""
    report = explain_authorization(agent_id=agent.id, resource=resource)
    found = report.authorization
    if found.granted:
        note = f"; {found.reason}" if found.reason else ""
        text = f"{agent.name} may use {report.resource}, by {found.capability_id}{note}"
    else:
        text = f"{agent.name} may not use {report.resource}: {found.reason}"
    tried = "".join(f"\n  {grant.capability_id} ({grant.resource}): {grant.reason}" for grant in found.tried)
    return Output(
        {"agent": agent.name, **report.to_json()},
        text=escape(text + tried),
        code=ExitCode.DONE if found.granted else ExitCode.FAILED,
    )


def _build_constraints(limits: dict[str, Any]) -> Constraints:
    period: timedelta | None = limits.pop("rate_period")
    return constraints_from_input(
        **limits, rate_seconds=int(period.total_seconds()) if period is not None else None
    )


def _grant_values(rows: list[CapabilityGrant]) -> list[dict[str, Any]]:
    now, uses = datetime.now(UTC), uses_of([row.id for row in rows])
    return [
        {
            "id": capability_name(row.id),
            "resource": row.resource,
            "holder": holder_name(row),
            "status": status_of(row, now=now).value,
            "constraints": row.constraints or {},
            "uses": uses.get(row.id, 0),
            "depth": row.depth,
            "parent": capability_name(row.parent_id) if row.parent_id else None,
            "granted_by": row.granted_by,
            "granted_at": stamp(row.granted_at),
            "revoked_at": stamp(row.revoked_at),
            "revoked_reason": row.revoked_reason,
        }
        for row in rows
    ]


def _grant_output(holder: str, row: CapabilityGrant, act: str) -> Output:
    (line,) = _grant_values([row])
    limits = describe_constraints(row)
    text = f"{line['id']} {act} {holder}: {row.resource}" + (f", {limits}" if limits else "")
    return Output(line, text=escape(text))
