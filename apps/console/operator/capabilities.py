"""The page of an agent's capabilities: granted, delegated, revoked and explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.agents.models import Agent
from apps.agents.services.lookup import agent_by_id
from apps.authority.models import CapabilityGrant
from apps.authority.services.authority_column import capability_name
from apps.authority.services.explanations import (
    AuthorizationReport,
    capabilities_of,
    describe_constraints,
    explain_authorization,
    status_of,
    uses_of,
)
from apps.authority.services.grants import delegate_capability, grant_capability, revoke_capability
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.forms import agent_choices, agent_named
from apps.console.row_acts import RowAct, run_act
from apps.console.views import console_page, refuse
from arbor.authority.constraints import Constraints, constraints_from_input
from arbor.authority.grants import resolve_resource
from arbor.errors import Invalid, NotFound
from arbor.heartbeat.actions import ACTIONS
from arbor.ids import read_id

#: The longest time of a grant in the form, in days; the command line and the API take dates.
_MAX_DAYS = 36_500


@dataclass(frozen=True, kw_only=True)
class GrantLine:
    """A capability as a row of the page."""

    row: CapabilityGrant
    name: str
    status: str
    limits: str
    uses: int
    may_change: bool
    may_delegate: bool


@dataclass(frozen=True, kw_only=True)
class CapabilityPage:
    """The capabilities of an agent, and the explanation that was asked for."""

    agent: Agent
    grants: list[GrantLine]
    #: Names of actions, to choose from.
    actions: list[str]
    #: The names of other agents, to suggest.
    others: list[str]
    asked: str
    report: AuthorizationReport | None
    fault: str
    may_operate: bool
    with_revoked: bool


@require_http_methods(["GET", "HEAD", "POST"])
def show_capabilities(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Show an agent's capabilities and, for `resource`, whether it may use it; apply a posted act."""
    require_member(request, to="see what its agents may do")
    if request.method == "POST":
        if not has_right(request, Right.OPERATE):
            return refuse(request, agent_id=agent_id, attempted="change the capabilities of an agent")
        run_act(request, _ACTS, agent_id)
        return HttpResponseRedirect(reverse("admin:agent-capabilities", args=[agent_id]))
    page = _read(request, agent_by_id(agent_id))
    title = f"Capabilities of {page.agent.name}"
    return console_page(request, "console/capabilities.html", title=title, page=page)


def _read(request: HttpRequest, agent: Agent) -> CapabilityPage:
    with_revoked, asked = "revoked" in request.GET, request.GET.get("resource", "").strip()
    rows = list(capabilities_of(agent.id, revoked=with_revoked))
    uses, now = uses_of([row.id for row in rows if row.constraints]), datetime.now(UTC)
    report, fault = None, ""
    if asked:
        try:
            report = explain_authorization(agent_id=agent.id, resource=asked)
        except Invalid as error:
            fault = str(error)
    return CapabilityPage(
        agent=agent,
        grants=[
            GrantLine(
                row=row,
                name=capability_name(row.id),
                status=status_of(row, now=now).value,
                limits=describe_constraints(row),
                uses=uses.get(row.id, 0),
                may_change=row.agent_id is not None and row.revoked_at is None,
                may_delegate=row.agent_id is not None and row.revoked_at is None and row.depth > 0,
            )
            for row in rows
        ],
        actions=list(ACTIONS),
        others=[name for _, name in agent_choices() if name != agent.name],
        asked=asked,
        report=report,
        fault=fault,
        may_operate=has_right(request, Right.OPERATE),
        with_revoked=with_revoked,
    )


def _grant(request: HttpRequest, agent_id: UUID) -> str:
    row = grant_capability(
        agent_id=agent_id,
        resource=resolve_resource(request.POST.get("resource", "")),
        constraints=_constraints(request),
        actor=actor_of(request),
    )
    return f"{row.resource} is granted."


def _delegate(request: HttpRequest, agent_id: UUID) -> str:
    other = agent_named(request.POST.get("to", ""))
    if other is None:
        raise Invalid("there is no such agent; write the name or id of the one that receives the capability")
    row = delegate_capability(
        capability_id=_posted_capability(request, agent_id),
        to_agent_id=other.id,
        constraints=_constraints(request),
        actor=actor_of(request),
    )
    return f"{row.resource} is delegated."


def _revoke(request: HttpRequest, agent_id: UUID) -> str:
    revoked = revoke_capability(
        capability_id=_posted_capability(request, agent_id),
        reason=request.POST.get("reason", ""),
        actor=actor_of(request),
    )
    return "The capability is revoked." if revoked == 1 else f"{revoked} capabilities are revoked."


_ACTS: Mapping[str, RowAct] = MappingProxyType({"grant": _grant, "delegate": _delegate, "revoke": _revoke})


def _posted_capability(request: HttpRequest, agent_id: UUID) -> UUID:
    """Return the id of the posted capability of the agent. Raises NotFound for a capability of another agent."""
    capability_id = read_id(request.POST.get("capability"))
    rows = CapabilityGrant.objects.filter(agent_id=agent_id)
    if capability_id is None or not rows.filter(id=capability_id).exists():
        raise NotFound("the agent has no such capability")
    return capability_id


def _constraints(request: HttpRequest) -> Constraints:
    """Return the posted constraints. Raises Invalid."""
    days, uses = (request.POST.get(name, "").strip() for name in ("days", "uses"))
    if not all(number.isdecimal() and len(number) < 8 for number in (days, uses) if number):
        raise Invalid("days and uses are whole numbers")
    if days and int(days) > _MAX_DAYS:
        raise Invalid(
            f"a grant lasts at most {_MAX_DAYS:,} days, got {days}; leave the days out for one without an end"
        )
    return constraints_from_input(
        expires_at=datetime.now(UTC) + timedelta(days=int(days)) if days else None,
        max_uses=int(uses) if uses else None,
        hours=request.POST.get("hours", ""),
    )
