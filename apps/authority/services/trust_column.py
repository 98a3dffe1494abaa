"""The trust in an agent as one column of a statement, and its parser: what every heartbeat reads."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from apps.tenants.encoding import from_json
from arbor.authority.approvals import ApprovalStatus, ApprovalView
from arbor.authority.authorization import AgentAuthority
from arbor.authority.modes import (
    DEFAULT_PRESET,
    TrustMode,
    TrustPreset,
    TrustProfile,
    TrustRule,
)
from arbor.authority.trust_tiers import TIER_PRESETS
from arbor.values import replace

# The oldest request first. The parameters are read of approved requests only, which are few.
_APPROVALS = """(
    SELECT json_agg(json_build_array(r.id, r.status, r.action, r.resource, r.body_hash, r.expires_at,
        CASE WHEN r.status = 'approved' THEN r.body ELSE '' END, r.about, r.reasoning, r.goal_id, r.intent_id, r.reason)
        ORDER BY r.asked_at, r.id)
    FROM authority_actionapproval r
    WHERE r.tenant_id = %(tenant)s AND r.agent_id = a.id AND r.status IN ('pending', 'approved', 'denied')
        AND r.expires_at > now()
)"""
_RULES = """(
    SELECT json_agg(json_build_array(m.prefix, m.mode) ORDER BY m.prefix) FROM authority_moderule m
    WHERE m.tenant_id = %(tenant)s AND m.agent_id {whose}
)"""
# A chosen preset, else that of the agent's tier; null for the default one.
_TIERS = " ".join(
    f"WHEN '{tier}' THEN '{preset}'" for tier, preset in TIER_PRESETS.items() if preset is not DEFAULT_PRESET
)
_PRESET = f"""COALESCE(
    (SELECT p.preset FROM authority_agenttrust p WHERE p.tenant_id = %(tenant)s AND p.agent_id = a.id),
    (SELECT CASE s.tier {_TIERS} END FROM authority_trustscore s WHERE s.tenant_id = %(tenant)s AND s.agent_id = a.id)
)"""  # noqa: S608 (no external input)
#: The trust in the agent `a` as JSON text, null for an agent without preset, rules and requests. Needs `%(tenant)s`.
TRUST_COLUMN = f"""(
    SELECT CASE WHEN COALESCE(t.own, t.shared, t.approvals, to_json(t.preset)) IS NOT NULL THEN
        json_build_array(t.preset, t.own, t.shared, t.approvals)::text END
    FROM (
        SELECT {_PRESET} AS preset,
            {_RULES.format(whose="= a.id")} AS own,
            {_RULES.format(whose="IS NULL")} AS shared,
            {_APPROVALS} AS approvals
    ) t
)"""  # noqa: S608 (no external input)
#: Texts that a process has parsed: most agents of a tenant have the same rules, and no requests.
_TRUST_CACHED = 2048

type _Trust = tuple[TrustProfile, tuple[ApprovalView, ...]]


def with_trust(authority: AgentAuthority, text: str | None) -> AgentAuthority:
    """Return the authority of an agent with the trust that `TRUST_COLUMN` read."""
    if text is None:
        return authority
    modes, approvals = _parse(text)
    return replace(authority, modes=modes, approvals=approvals)


@lru_cache(maxsize=_TRUST_CACHED)
def _parse(text: str) -> _Trust:
    preset, own, shared, approvals = from_json(text)
    profile = TrustProfile(
        preset=TrustPreset(preset) if preset else DEFAULT_PRESET,
        rules=_rules(own),
        tenant_rules=_rules(shared),
    )
    return profile, tuple(map(_approval, approvals or ()))


def _rules(rows: list[list[str]] | None) -> tuple[TrustRule, ...]:
    return tuple(TrustRule(prefix=prefix, mode=TrustMode(mode)) for prefix, mode in rows or ())


def _approval(row: list[Any]) -> ApprovalView:
    (
        approval_id,
        status,
        action,
        resource,
        body_hash,
        expires_at,
        body,
        about,
        reasoning,
        goal_id,
        intent_id,
        reason,
    ) = row
    return ApprovalView(
        id=UUID(approval_id),
        status=ApprovalStatus(status),
        action=action,
        resource=resource,
        body_hash=body_hash,
        expires_at=datetime.fromisoformat(expires_at),
        body=body,
        about=about,
        reasoning=reasoning,
        goal_id=goal_id,
        intent_id=intent_id,
        reason=reason,
    )
