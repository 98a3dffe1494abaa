"""Read and change an agent's policy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent, AgentPolicy
from apps.agents.services.energy import energy_terms
from apps.agents.services.locks import lock_agent
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.fleet.daily_limits import LIMITS, check_daily_limits, is_raised, resume_halted_agents
from apps.knowledge.services.active_skills import update_skill_versions
from apps.tenants.scope import current_tenant
from arbor.agents.energy import EnergyPolicy, EnergyTerms, check_terms, terms_of
from arbor.audit.changes import change_of
from arbor.clock import find_time_zone
from arbor.errors import Invalid
from arbor.heartbeat.actions import DEFAULT_COSTS
from arbor.heartbeat.budgets import BudgetKind
from arbor.heartbeat.dialogue import MAX_VOICES, MIN_VOICES
from arbor.heartbeat.pacing import ActiveHours
from arbor.heartbeat.replies.round_trips import MAX_ROUND_TRIPS
from arbor.heartbeat.tiers import ThinkTier
from arbor.models.handles import Handle

#: The fields of a policy, in the order in which they are shown.
FIELDS = (
    "budget",
    "allowance",
    "energy",
    "tier_models",
    "active_from",
    "active_until",
    "time_zone",
    "adaptive",
    "daily_heartbeats",
    "daily_tokens",
    "daily_usd",
    "follow_ups",
    "voices",
)
#: The largest allowance.
MAX_ALLOWANCE = 256


def policy_of(agent_id: UUID) -> AgentPolicy:
    """Return an agent's policy, or an unsaved one with the defaults. Raises NotFound."""
    agent = agent_by_id(agent_id)
    policy: AgentPolicy | None = AgentPolicy.objects.filter(agent_id=agent_id).first()
    return policy or AgentPolicy(tenant_id=current_tenant(), agent=agent)


def create_policy(agent: Agent, *, energy: EnergyPolicy) -> None:
    """Create the policy of a new agent, if its template sets anything. Raises Invalid."""
    policy = AgentPolicy(tenant_id=current_tenant(), agent=agent, energy=energy.to_json())
    if policy.energy:
        _check(policy)
        policy.save(force_insert=True)


def check_policy(agent_id: UUID) -> None:
    """Check the stored policy of an agent, if it has one. Raises Invalid."""
    policy = AgentPolicy.objects.select_related("tenant").filter(agent_id=agent_id).first()
    if policy is not None:
        _check(policy)


def check_own_energy(tenant: EnergyPolicy) -> None:
    """Check the energy policies of the current tenant's agents together with the tenant's. Raises Invalid, which names the agent."""
    policies = AgentPolicy.objects.exclude(energy={}).order_by("agent_id")
    for name, own in policies.values_list("agent__name", "energy"):
        try:
            check_terms(terms_of(tenant, EnergyPolicy.model_validate(own)), default_costs=DEFAULT_COSTS)
        except Invalid as error:
            raise Invalid(
                f"the energy policy of the agent {name} does not fit the tenant's: {error}; change the agent's policy first"
            ) from error


@transaction.atomic
def set_policy(*, agent_id: UUID, changes: Mapping[str, Any], actor: str) -> AgentPolicy:
    """Change fields of an agent's policy by names of `FIELDS`; None removes a limit.

    `energy` names fields of an `EnergyPolicy`, of which the others stay.
    An agent halted by a limit resumes when the limit is raised.

    Raises NotFound, Invalid, and LimitReached for models that the agent's skills do not fit.
    """
    unknown = [name for name in changes if name not in FIELDS]
    if unknown:
        raise Invalid(f"a policy has {', '.join(FIELDS)}; got {', '.join(unknown)}")
    # In the order of locks: a raised limit changes the schedule, and models are checked with the skills of the agent.
    agent = lock_agent(agent_id)
    policy = AgentPolicy.objects.select_for_update().filter(agent_id=agent_id).first() or AgentPolicy(
        tenant_id=current_tenant(), agent=agent
    )
    limits = _daily_limits(policy)
    before = {name: _shown(getattr(policy, name)) for name in changes}
    for name, value in changes.items():
        setattr(policy, name, _changed_energy(policy.energy, value) if name == "energy" else value)
    _check(policy)
    policy.tier_models = {
        tier: [str(Handle.parse(model)) for model in models] for tier, models in policy.tier_models.items()
    }
    policy.save(force_insert=policy._state.adding)
    if "tier_models" in changes:
        update_skill_versions(agent, actor=actor)
    if is_raised(before=limits, after=_daily_limits(policy)):
        resume_halted_agents(tenant_id=policy.tenant_id, agent_id=agent_id)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"changed the policy of {agent.name}: {', '.join(sorted(changes)) or 'nothing'}",
        change=change_of(before, {name: _shown(getattr(policy, name)) for name in changes}),
    )
    return policy


def _daily_limits(policy: AgentPolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in LIMITS}


def _changed_energy(stored: Mapping[str, Any], changes: Any) -> dict[str, Any]:
    return EnergyPolicy.model_validate(stored).changed(changes).to_json()


def _check(policy: AgentPolicy) -> None:
    if policy.budget not in list(BudgetKind):
        raise Invalid(f"a budget is {', '.join(BudgetKind)}, got {policy.budget!r}")
    if policy.allowance is not None and not 1 <= policy.allowance <= MAX_ALLOWANCE:
        raise Invalid(f"an allowance is 1 to {MAX_ALLOWANCE}, got {policy.allowance}")
    if policy.follow_ups is not None and not 0 <= policy.follow_ups < MAX_ROUND_TRIPS:
        raise Invalid(f"follow-ups of a heartbeat are 0 to {MAX_ROUND_TRIPS - 1}, got {policy.follow_ups}")
    if policy.voices and not MIN_VOICES <= policy.voices <= MAX_VOICES:
        raise Invalid(f"inner voices are {MIN_VOICES} to {MAX_VOICES}, or 0 for none, got {policy.voices}")
    check_daily_limits(_daily_limits(policy))
    check_terms(
        energy_terms(tenant=policy.tenant.energy, agent=policy.energy) or EnergyTerms(),
        default_costs=DEFAULT_COSTS,
    )
    _check_tiers(policy.tier_models)
    _check_hours(policy.active_from, policy.active_until, policy.time_zone)


def _check_tiers(tiers: Any) -> None:
    if not isinstance(tiers, Mapping):
        raise Invalid("models by tier are an object: {tier: [provider/model, …]}")
    for tier, models in tiers.items():
        if tier not in list(ThinkTier):
            raise Invalid(f"a tier is {', '.join(ThinkTier)}, got {tier!r}")
        if not isinstance(models, list) or not models:
            raise Invalid(f"the tier {tier} needs a list of one model or more, each as provider/model")
        for model in models:
            Handle.parse_input(str(model))


def _check_hours(start: time | None, end: time | None, zone: str) -> None:
    time_zone = find_time_zone(zone)
    if (start is None) != (end is None):
        raise Invalid("active hours need a beginning and an end; give both, or neither for all hours")
    if start is not None and end is not None:
        ActiveHours(start=start, end=end, zone=time_zone)


def _shown(value: Any) -> Any:
    return value if isinstance(value, int | dict | None) else str(value)
