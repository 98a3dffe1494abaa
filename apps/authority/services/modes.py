"""Set and read the trust in agents: presets, rules, and what approvals suggest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.models import ActionApproval, AgentTrust, ModeRule, TrustScore
from apps.signals.services.emission import emit
from apps.tenants.limits import check_row_limit
from apps.tenants.scope import current_tenant
from arbor.agents.template import TrustTier
from arbor.audit.changes import change_of
from arbor.authority.approvals import ApprovalStatus, Suggestion, suggestion_of
from arbor.authority.grants import action_resource
from arbor.authority.modes import (
    DEFAULT_PRESET,
    MAX_RULES,
    ModeDecision,
    TrustMode,
    TrustPreset,
    TrustProfile,
    TrustRule,
    ceiling_of,
    check_prefix,
    effective_mode,
    is_below,
)
from arbor.authority.trust_tiers import TIER_PRESETS
from arbor.errors import Invalid, NotFound
from arbor.heartbeat.actions import ACTIONS
from arbor.signals import SignalName, signal

#: The latest decisions of one agent that streaks are counted in.
_COUNTED = 200
_DECIDED = (ApprovalStatus.APPROVED, ApprovalStatus.EXECUTED, ApprovalStatus.DENIED)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionMode:
    """The mode of one action of an agent."""

    action: str
    resource: str
    decision: ModeDecision


def trust_of(agent_id: UUID) -> TrustProfile:
    """Return the preset and the rules of an agent; the defaults for an unknown agent. Four statements at most."""
    return TrustProfile(preset=_preset(agent_id), rules=_rules(agent_id), tenant_rules=tenant_rules())


def _preset(agent_id: UUID) -> TrustPreset:
    """Return the preset that a person has chosen for an agent, else that of its tier."""
    chosen = AgentTrust.objects.filter(agent_id=agent_id).first()
    if chosen is not None:
        return TrustPreset(chosen.preset)
    tier = TrustScore.objects.filter(agent_id=agent_id).values_list("tier", flat=True).first()
    return DEFAULT_PRESET if tier is None else TIER_PRESETS[TrustTier(tier)]


def tenant_rules() -> tuple[TrustRule, ...]:
    """Return the rules for all agents of the tenant."""
    return _rules(None)


def action_modes(profile: TrustProfile) -> list[ActionMode]:
    """Return the modes of the built-in actions."""
    return [
        ActionMode(action=name, resource=resource, decision=effective_mode(resource, profile))
        for name in ACTIONS
        for resource in (action_resource(name),)
    ]


@transaction.atomic
def set_preset(*, agent_id: UUID, preset: TrustPreset, actor: str) -> None:
    """Set the preset of an agent. Raises NotFound."""
    agent = agent_by_id(agent_id)
    row = AgentTrust.objects.filter(agent_id=agent_id).first()
    before = {"preset": row.preset} if row else {}
    AgentTrust.objects.update_or_create(
        agent_id=agent_id,
        defaults={"preset": preset},
        create_defaults={"tenant_id": current_tenant(), "preset": preset},
    )
    record(
        action=AuditAction.TRUST_CHANGED,
        actor=actor,
        agent_id=agent_id,
        message=f"set the trust in {agent.name} to {preset}",
        detail={"preset": preset.value},
        change=change_of(before, {"preset": preset}),
    )
    _emit(agent_id, name=agent.name, trust=preset.value, actor=actor)


@transaction.atomic
def set_mode(*, agent_id: UUID | None, prefix: str, mode: TrustMode, actor: str) -> ModeRule:
    """Set the mode of a resource and everything below it, for an agent or for all agents of the tenant.

    Raises NotFound, CapabilityInvalid for a wrong URI, Invalid above a ceiling, and LimitReached.
    """
    prefix = check_prefix(prefix)
    ceiling = ceiling_of(prefix)
    if mode.rank > ceiling.rank:
        raise Invalid(f"{prefix} is never above {ceiling}; choose block or {ceiling}")
    whose = "all agents" if agent_id is None else agent_by_id(agent_id).name
    rules = _rows(agent_id)
    if not rules.filter(prefix=prefix).exists():
        refusal = f"there are at most {MAX_RULES} trust rules for {whose}; remove one first"
        check_row_limit(rules, most=MAX_RULES, refusal=refusal)
    # Another transaction may set the same rule at this moment: `get_or_create` waits for it, and locks the rule.
    row: ModeRule
    row, is_new = rules.select_for_update().get_or_create(
        prefix=prefix,
        defaults={"tenant_id": current_tenant(), "agent_id": agent_id, "mode": mode, "set_by": actor},
    )
    before = {} if is_new else {"mode": row.mode}
    if not is_new:
        row.mode, row.set_by = mode, actor
        row.save()
    record(
        action=AuditAction.TRUST_CHANGED,
        actor=actor,
        agent_id=agent_id,
        message=f"set {prefix} to {mode} for {whose}",
        detail={"prefix": prefix, "mode": mode.value},
        change=change_of(before, {"mode": mode}),
    )
    _emit(agent_id, name=whose, resource=prefix, trust=mode.value, actor=actor)
    return row


@transaction.atomic
def clear_mode(*, agent_id: UUID | None, prefix: str, actor: str) -> None:
    """Remove a rule, so that shorter prefixes and the preset decide. Raises NotFound, and CapabilityInvalid for a wrong URI."""
    prefix = check_prefix(prefix)
    rows = _rows(agent_id).filter(prefix=prefix)
    row = rows.first()
    before = {"mode": row.mode} if row else {}
    whose = "all agents" if agent_id is None else agent_by_id(agent_id).name
    deleted, _ = rows.delete()
    if not deleted:
        raise NotFound(f"there is no trust rule of {whose} for {prefix}")
    record(
        action=AuditAction.TRUST_CHANGED,
        actor=actor,
        agent_id=agent_id,
        message=f"removed the rule for {prefix} of {whose}",
        detail={"prefix": prefix},
        change=change_of(before, {}),
    )
    _emit(agent_id, name=whose, resource=prefix, actor=actor)


def clear_modes_below(*, resource: str, actor: str) -> int:
    """Remove all rules for a resource and for those below it, each audited, and return their number."""
    # The condition also finds `mcp.weather-2` for `mcp.weather`.
    alike = ModeRule.objects.filter(prefix__startswith=resource)
    rows = [row for row in alike if is_below(row.prefix, resource)]
    for row in rows:
        clear_mode(agent_id=row.agent_id, prefix=row.prefix, actor=actor)
    return len(rows)


def suggestions_of(
    agent_id: UUID, *, counts: Callable[[str, datetime], bool] = lambda _action, _decided_at: True
) -> list[Suggestion]:
    """Return the rules that a person might set, because all recent requests for a resource were approved. Sets nothing.

    `counts` says whether a decision counts, by its action and time.
    """
    decided: defaultdict[str, list[ApprovalStatus]] = defaultdict(list)
    # Without a decision, a request was executed because a rule allowed its action.
    rows = ActionApproval.objects.filter(
        agent_id=agent_id, status__in=_DECIDED, decided_at__isnull=False
    ).order_by("-decided_at")
    columns = ("resource", "status", "action", "decided_at")
    for resource, status, action, decided_at in rows.values_list(*columns)[:_COUNTED]:
        if counts(action, decided_at):
            decided[resource].append(ApprovalStatus(status))
    profile = trust_of(agent_id)
    found = (suggestion_of(resource, statuses) for resource, statuses in decided.items())
    # Only what still asks can be allowed.
    return [
        suggestion
        for suggestion in found
        if suggestion is not None and effective_mode(suggestion.resource, profile).mode is TrustMode.ASK
    ]


def _emit(agent_id: UUID | None, *, name: str, actor: str, resource: str = "", trust: str = "") -> None:
    """Emit the signal of a change for one agent; a rule for all agents is in the audit log alone."""
    if agent_id is not None:
        emit(
            signal(SignalName.TRUST_CHANGED, agent_id, name=name, resource=resource, trust=trust, actor=actor)
        )


def _rows(agent_id: UUID | None) -> QuerySet[ModeRule]:
    """Return the rules of an agent; None: those for all agents of the tenant."""
    rows = ModeRule.objects.all()
    return rows.filter(agent__isnull=True) if agent_id is None else rows.filter(agent_id=agent_id)


def _rules(agent_id: UUID | None) -> tuple[TrustRule, ...]:
    rows = _rows(agent_id).order_by("prefix")
    return tuple(TrustRule(prefix=row.prefix, mode=TrustMode(row.mode)) for row in rows)
