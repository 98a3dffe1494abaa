"""Offer the workflows that an agent may start, from its grants."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from arbor.authority.authorization import AgentAuthority
from arbor.heartbeat.situation import Situation
from arbor.workflows.values import START_WORKFLOW, WORKFLOW_PREFIX

_EXECUTE = ("workflows", "execute")


def startable(authority: AgentAuthority, now: datetime) -> tuple[str, ...]:
    """Return the workflows that the agent may start now, by its grants, in alphabetical order; `*` for all."""
    names = {
        grant.resource.segments[2] if len(grant.resource.segments) > 2 else "*"
        for grant in authority.grants
        if grant.resource.segments[:2] == _EXECUTE and grant.revoked_at is None
    }
    return tuple(sorted(name for name in names if authority.permits(WORKFLOW_PREFIX + name, now=now)))


def with_startable(
    situation: Situation, authority: AgentAuthority, possible: Collection[str], now: datetime
) -> Situation:
    """Return the situation in which the offer of `start_workflow`, if there is one, names the workflows."""
    if START_WORKFLOW not in possible:
        return situation
    named = {"workflow": f"its name: {', '.join(startable(authority, now))}"}
    actions = [
        offer.model_copy(update={"params": offer.params | named}) if offer.name == START_WORKFLOW else offer
        for offer in situation.actions
    ]
    return situation.model_copy(update={"actions": actions})
