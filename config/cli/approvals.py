"""Decide requests for approval, and manage the trust in agents."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Group
from rich.markup import escape

from apps.authority.models import ActionApproval
from apps.authority.services import approvals, modes
from apps.authority.services.precedents import precedents_of
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tools.services.servers import suggested_rules
from arbor.authority.approvals import ApprovalStatus
from arbor.authority.modes import TrustMode, TrustPreset, TrustRule
from arbor.authority.precedents import Precedent
from config.cli.kit.columns import OutputColumn, bounded_listing, listing, row_to_dict, table_of
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_in_tenant, in_transaction_of, tenant_of_row
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    choose_tenant,
    in_agent_transaction,
    in_tenant_transaction,
    with_optional_agent,
)

_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("agent", "agent", value=lambda row: row.agent.name),
    OutputColumn("action", "action"),
    OutputColumn("about", "about", cell=cut),
    OutputColumn("status", "status"),
    OutputColumn("asked_at", "asked", cell=format_relative_time),
    OutputColumn("expires_at", "expires", cell=format_relative_time),
    *(
        OutputColumn(key)
        for key in (
            "resource",
            "params",
            "reasoning",
            "why",
            "reason",
            "decided_by",
            "decided_at",
            "executed_by",
        )
    ),
)
_PRECEDENT_COLUMNS = tuple(
    OutputColumn(key) for key in ("id", "action", "about", "approved", "reason", "decided_by", "decided_at")
)
_RULE_COLUMNS = (
    OutputColumn("prefix", "resource"),
    OutputColumn("mode", "mode", value=lambda rule: rule.mode.value),
)
_MODE_COLUMNS = (
    OutputColumn("action", "action"),
    OutputColumn("mode", "mode", value=lambda entry: entry.decision.mode.value),
    OutputColumn("source", "by", value=lambda entry: entry.decision.source.value),
    OutputColumn("prefix", "resource", value=lambda entry: entry.decision.prefix),
)
_SUGGESTION_COLUMNS = (OutputColumn("resource"), OutputColumn("approvals"))


@with_optional_agent
def list_approvals(agent: ChosenAgent | None, *, with_decided: bool, tenant_slug: str | None) -> Output:
    """List the requests, the latest first."""
    tenant = choose_tenant(tenant_slug)
    with tenant_transaction(tenant.id):
        rows = approvals.approvals(
            agent_id=agent.id if agent else None,
            statuses=() if with_decided else [ApprovalStatus.PENDING],
        )
        return bounded_listing(
            "approvals",
            rows,
            _COLUMNS,
            about={"tenant": tenant.slug},
            empty="Nothing waits for a person.",
        )


@in_transaction_of(tenant_of_row, ActionApproval, "approval_id")
def show(tenant: Tenant, *, approval_id: str) -> Output:
    """Show a request."""
    row = approvals.approval_of(find_in_tenant(ActionApproval, approval_id))
    lines = [
        f"[bold]{escape(row.agent.name)}[/bold] asks to {row.action} ({short(row.id)}): {row.status}.",
        escape(json.dumps(row.params, indent=2, ensure_ascii=False)),
        *([f"Its reason: {escape(row.reasoning)}"] if row.reasoning else []),
        f"Asked {format_relative_time(row.asked_at)}, {escape(row.why)}; expires {row.expires_at:%Y-%m-%d %H:%M} UTC.",
        *([f"{row.decided_by}: {escape(row.reason)}"] if row.decided_by else []),
    ]
    precedents = precedents_of(row)
    if precedents:
        lines += ["Earlier decisions about requests like this:", *map(_precedent_line, precedents)]
    value = {"tenant": tenant.slug, **row_to_dict(row, _COLUMNS)}
    value["precedents"] = [row_to_dict(precedent, _PRECEDENT_COLUMNS) for precedent in precedents]
    return Output(value, text="\n".join(lines))


def _precedent_line(precedent: Precedent) -> str:
    verdict = "[green]approved[/green]" if precedent.approved else "[red]denied[/red]"
    about = f" “{escape(precedent.about)}”" if precedent.about else ""
    reason = f": {escape(precedent.reason)}" if precedent.reason else ""
    return f"  {verdict} {format_relative_time(precedent.decided_at)}, {precedent.action}{about}{reason}"


@in_transaction_of(tenant_of_row, ActionApproval, "approval_id")
def approve_one(tenant: Tenant, *, approval_id: str, reason: str, always: bool) -> Output:
    """Approve a request."""
    row = approvals.approve(
        approval_id=find_in_tenant(ActionApproval, approval_id), actor=actor(), reason=reason, always=always
    )
    rule = f" {row.resource} needs no approval any more." if always else ""
    return _decision_output(tenant, row, f"is approved; {escape(approvals.describe_execution(row))}.{rule}")


@in_transaction_of(tenant_of_row, ActionApproval, "approval_id")
def deny_one(tenant: Tenant, *, approval_id: str, reason: str) -> Output:
    """Deny a request."""
    row = approvals.deny(
        approval_id=find_in_tenant(ActionApproval, approval_id), actor=actor(), reason=reason
    )
    return _decision_output(tenant, row, "is denied.")


@in_agent_transaction
def show_trust(agent: ChosenAgent) -> Output:
    """Show the trust in an agent."""
    return _trust_output(agent)


@in_agent_transaction
def choose_preset(agent: ChosenAgent, *, preset: str) -> Output:
    """Set the preset of an agent."""
    modes.set_preset(agent_id=agent.id, preset=TrustPreset(preset), actor=actor())
    return _trust_output(agent)


@in_agent_transaction
def set_agent_rule(agent: ChosenAgent, *, prefix: str, mode: str) -> Output:
    """Set a rule of an agent."""
    modes.set_mode(agent_id=agent.id, prefix=prefix, mode=TrustMode(mode), actor=actor())
    return _trust_output(agent)


@in_agent_transaction
def clear_agent_rule(agent: ChosenAgent, *, prefix: str) -> Output:
    """Remove a rule of an agent."""
    modes.clear_mode(agent_id=agent.id, prefix=prefix, actor=actor())
    return _trust_output(agent)


@in_tenant_transaction
def list_rules(tenant: Tenant) -> Output:
    """List the rules for all agents of a tenant."""
    return _tenant_rules_output(tenant)


@in_tenant_transaction
def set_rule(tenant: Tenant, *, prefix: str, mode: str) -> Output:
    """Set a rule for all agents of a tenant."""
    modes.set_mode(agent_id=None, prefix=prefix, mode=TrustMode(mode), actor=actor())
    return _tenant_rules_output(tenant)


@in_tenant_transaction
def clear_rule(tenant: Tenant, *, prefix: str) -> Output:
    """Remove a rule for all agents of a tenant."""
    modes.clear_mode(agent_id=None, prefix=prefix, actor=actor())
    return _tenant_rules_output(tenant)


def _decision_output(tenant: Tenant, row: ActionApproval, ending: str) -> Output:
    return Output(
        {"tenant": tenant.slug, **row_to_dict(row, _COLUMNS)},
        text=f"{row.action} of [bold]{escape(row.agent.name)}[/bold] ({short(row.id)}) {ending}",
    )


def _trust_output(agent: ChosenAgent) -> Output:
    profile = modes.trust_of(agent.id)
    entries, suggestions = modes.action_modes(profile), suggested_rules(agent.id)
    value = {
        "agent": agent.name,
        "preset": profile.preset.value,
        "rules": [row_to_dict(rule, _RULE_COLUMNS) for rule in profile.rules],
        "tenant_rules": [row_to_dict(rule, _RULE_COLUMNS) for rule in profile.tenant_rules],
        "actions": [row_to_dict(entry, _MODE_COLUMNS) for entry in entries],
        "suggestions": [row_to_dict(suggestion, _SUGGESTION_COLUMNS) for suggestion in suggestions],
    }
    shown = [table_of(entries, _MODE_COLUMNS, title=f"{agent.name}: {profile.preset}")]
    if profile.rules:
        shown.append(table_of(profile.rules, _RULE_COLUMNS, title="Rules of this agent"))
    if profile.tenant_rules:
        shown.append(table_of(profile.tenant_rules, _RULE_COLUMNS, title="Rules of its tenant"))
    advice = [
        f"{suggestion.approvals} requests in a row were approved:"
        f" [bold]arbor agent trust set {agent.argument} {suggestion.resource} allow[/bold]"
        for suggestion in suggestions
    ]
    return Output(value, text=Group(*shown, *advice))


def _tenant_rules_output(tenant: Tenant) -> Output:
    rules: Sequence[TrustRule] = modes.tenant_rules()
    return listing(
        "rules",
        rules,
        _RULE_COLUMNS,
        about={"tenant": tenant.slug},
        empty="No rules for all agents of this tenant.",
    )
