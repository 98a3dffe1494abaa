"""The page of the trust in an agent: preset, rules, tier, and the drift of its self since birth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.agents.models import Agent
from apps.agents.services.lookup import agent_by_id
from apps.authority.models import TrustScore
from apps.authority.services.modes import (
    ActionMode,
    action_modes,
    clear_mode,
    set_mode,
    set_preset,
    trust_of,
)
from apps.authority.services.trust_tiers import read_trust_score, set_tier
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.row_acts import RowAct, run_act
from apps.console.views import console_page, refuse
from apps.selves.services.drift import SelfDrift, measure_self_drift
from apps.tools.services.servers import suggested_rules
from arbor.agents.template import TrustTier
from arbor.authority.approvals import Suggestion
from arbor.authority.grants import resolve_resource
from arbor.authority.modes import TrustMode, TrustPreset, TrustProfile
from arbor.errors import Invalid
from arbor.heartbeat.actions import ACTIONS


@dataclass(frozen=True, kw_only=True)
class TrustPage:
    """The trust in an agent."""

    agent: Agent
    profile: TrustProfile
    #: The resulting mode of each action.
    modes: list[ActionMode]
    suggestions: list[Suggestion]
    score: TrustScore
    drift: SelfDrift
    may_operate: bool
    presets: tuple[TrustPreset, ...] = tuple(TrustPreset)
    rule_modes: tuple[TrustMode, ...] = tuple(TrustMode)
    tiers: tuple[TrustTier, ...] = tuple(TrustTier)
    #: Names of actions, to choose from.
    actions: tuple[str, ...] = tuple(ACTIONS)


@require_http_methods(["GET", "HEAD", "POST"])
def show_trust(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Show the trust in an agent; apply a posted act."""
    require_member(request, to="see the trust in its agents")
    if request.method == "POST":
        if not has_right(request, Right.OPERATE):
            return refuse(request, agent_id=agent_id, attempted="change the trust in an agent")
        run_act(request, _ACTS, agent_id)
        return HttpResponseRedirect(reverse("admin:agent-trust", args=[agent_id]))
    agent = agent_by_id(agent_id)
    profile = trust_of(agent.id)
    page = TrustPage(
        agent=agent,
        profile=profile,
        modes=action_modes(profile),
        suggestions=suggested_rules(agent.id),
        score=read_trust_score(agent),
        drift=measure_self_drift(agent.id),
        may_operate=has_right(request, Right.OPERATE),
    )
    return console_page(request, "console/trust.html", title=f"Trust in {agent.name}", page=page)


def _set_preset(request: HttpRequest, agent_id: UUID) -> str:
    preset = request.POST.get("preset", "")
    if preset not in TrustPreset:
        raise Invalid(f"a preset is one of {', '.join(TrustPreset)}, got {preset[:60]!r}")
    set_preset(agent_id=agent_id, preset=TrustPreset(preset), actor=actor_of(request))
    return f"The preset is {preset} now."


def _set_rule(request: HttpRequest, agent_id: UUID) -> str:
    mode = request.POST.get("mode", "")
    if mode not in TrustMode:
        raise Invalid(f"a mode is one of {', '.join(TrustMode)}, got {mode[:60]!r}")
    rule_agent_id = _rule_agent_id(request, agent_id)
    row = set_mode(
        agent_id=rule_agent_id,
        prefix=resolve_resource(request.POST.get("resource", "")),
        mode=TrustMode(mode),
        actor=actor_of(request),
    )
    return f"{row.prefix} is set to {mode}{'' if rule_agent_id else ' for all agents'}."


def _clear_rule(request: HttpRequest, agent_id: UUID) -> str:
    prefix = resolve_resource(request.POST.get("resource", ""))
    clear_mode(agent_id=_rule_agent_id(request, agent_id), prefix=prefix, actor=actor_of(request))
    return f"The rule for {prefix} is removed."


def _set_tier(request: HttpRequest, agent_id: UUID) -> str:
    tier, reason = request.POST.get("tier", ""), request.POST.get("reason", "")
    if tier not in TrustTier:
        raise Invalid(f"a tier is one of {', '.join(TrustTier)}, got {tier[:60]!r}")
    set_tier(agent_id=agent_id, tier=TrustTier(tier), actor=actor_of(request), reason=reason)
    return f"The tier is {tier} now; no score lowers it."


_ACTS: Mapping[str, RowAct] = MappingProxyType(
    {"preset": _set_preset, "rule": _set_rule, "clear": _clear_rule, "tier": _set_tier}
)


def _rule_agent_id(request: HttpRequest, agent_id: UUID) -> UUID | None:
    """Return the agent that the posted rule is for; None for all agents."""
    return None if "all" in request.POST else agent_id
