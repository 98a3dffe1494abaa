"""Offer the workflows that an agent may start, from its grants."""

from __future__ import annotations

from collections.abc import Collection

from arbor.authority.authorization import AgentAuthority
from arbor.heartbeat.situation import Situation
from arbor.workflows.values import START_WORKFLOW

_EXECUTE = ("workflows", "execute")


def startable(authority: AgentAuthority) -> tuple[str, ...]:
    """Return the workflows that the agent's grants name, in alphabetical order; `*` for all."""
    names = {
        grant.resource.segments[2] if len(grant.resource.segments) > 2 else "*"
        for grant in authority.grants
        if grant.resource.segments[:2] == _EXECUTE and grant.revoked_at is None
    }
    return tuple(sorted(names))


def with_startable(situation: Situation, authority: AgentAuthority, possible: Collection[str]) -> Situation:
    """Return the situation in which the offer of `start_workflow`, if there is one, names the workflows."""
    if START_WORKFLOW not in possible:
        return situation
    named = {"workflow": f"its name: {', '.join(startable(authority))}"}
    actions = [
        offer.model_copy(update={"params": offer.params | named}) if offer.name == START_WORKFLOW else offer
        for offer in situation.actions
    ]
    return situation.model_copy(update={"actions": actions})
