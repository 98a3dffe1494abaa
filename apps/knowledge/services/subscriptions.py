"""Subscribe agents to signals, and end subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent
from apps.agents.services.locks import lock_agent_row
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.knowledge.models import SignalSubscription
from apps.signals.services.emission import emit
from apps.signals.services.reading import horizon, match_names
from apps.tenants.scope import current_tenant
from arbor.errors import Invalid, LimitReached, NotFound
from arbor.knowledge.subscriptions import (
    MAX_NAMES,
    MAX_SUBSCRIPTIONS,
    NAME_LENGTH,
    SignalSource,
    SubscriptionRequest,
    check_names,
)
from arbor.signals import SignalName, signal


@dataclass(frozen=True, kw_only=True)
class NewSubscription:
    """A subscription to add: names of signals or patterns, what the signals are about, and the peer if they are about one."""

    names: Sequence[str]
    source: SignalSource
    peer_id: UUID | None = None


def subscriptions_of(agent_id: UUID) -> list[SignalSubscription]:
    """Return the subscriptions of an agent, the oldest first. Raises NotFound."""
    rows = SignalSubscription.objects.filter(agent_id=agent_by_id(agent_id).id)
    return list(rows.select_related("agent", "source").order_by("created_at", "id"))


def source_of(row: SignalSubscription) -> SignalSource:
    """Return what the signals of a subscription are about."""
    if row.source_id is None:
        return SignalSource.SHARED
    return SignalSource.OWN if row.source_id == row.agent_id else SignalSource.PEER


@transaction.atomic
def subscribe(*, agent_id: UUID, wanted: NewSubscription, actor: str) -> SignalSubscription:
    """Subscribe an agent to signals from now on; its next prompt includes them.

    Raises NotFound for the agent or peer, Invalid for names or the source, and LimitReached.
    """
    agent = agent_by_id(agent_id)
    lock_agent_row(agent.id)
    names = _valid_names(wanted)
    source = _source_agent(agent, wanted)
    rows = list(SignalSubscription.objects.filter(agent_id=agent.id))
    if len(rows) >= MAX_SUBSCRIPTIONS:
        raise LimitReached(
            f"an agent has at most {MAX_SUBSCRIPTIONS} subscriptions, and {agent.name} has them; end one, or name several"
            " signals in one"
        )
    source_id = source.id if source else None
    if any(row.source_id == source_id and set(row.names) == set(names) for row in rows):
        raise Invalid(f"{agent.name} is subscribed to {', '.join(names)} already")
    row = _new_row(agent, names=names, source=source, position=horizon().row_id, actor=actor)
    row.save(force_insert=True)
    _record(row, actor=actor, change="added")
    return row


@transaction.atomic
def unsubscribe(*, agent_id: UUID, subscription_id: UUID, actor: str) -> SignalSubscription:
    """End a subscription of an agent. Raises NotFound."""
    rows = SignalSubscription.objects.select_related("agent", "source").select_for_update(of=("self",))
    row: SignalSubscription | None = rows.filter(id=subscription_id, agent_id=agent_id).first()
    if row is None:
        raise NotFound(f"agent {agent_id} has no subscription {subscription_id}")
    _record(row, actor=actor, change="removed")
    SignalSubscription.objects.filter(id=row.id).delete()
    return row


def create_subscriptions(
    agents: Sequence[Agent], *, requests: Sequence[SubscriptionRequest], actor: str
) -> None:
    """Subscribe new agents of one template to the signals that it names."""
    if not requests:
        return
    position = horizon().row_id
    SignalSubscription.objects.bulk_create(
        [
            _new_row(
                agent,
                names=list(request.signals),
                source=agent if request.source is SignalSource.OWN else None,
                position=position,
                actor=actor,
            )
            for agent in agents
            for request in requests
        ]
    )


def _new_row(
    agent: Agent, *, names: list[str], source: Agent | None, position: UUID, actor: str
) -> SignalSubscription:
    return SignalSubscription(
        tenant_id=current_tenant(),
        agent=agent,
        source=source,
        names=names,
        position=position,
        created_by=actor,
    )


def _valid_names(wanted: NewSubscription) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in wanted.names))
    if not 0 < len(names) <= MAX_NAMES:
        raise Invalid(f"a subscription has 1 to {MAX_NAMES} names of signals, got {len(names)}")
    if (longest := max(map(len, names))) > NAME_LENGTH:
        raise Invalid(f"a signal's name has at most {NAME_LENGTH} characters, got {longest:,}")
    check_names({name for text in names for name in match_names(text)}, wanted.source)
    return names


def _source_agent(agent: Agent, wanted: NewSubscription) -> Agent | None:
    if wanted.source is not SignalSource.PEER:
        if wanted.peer_id is not None:
            raise Invalid(f"a peer is named with the source {SignalSource.PEER} only, got {wanted.source}")
        return agent if wanted.source is SignalSource.OWN else None
    if wanted.peer_id is None or wanted.peer_id == agent.id:
        raise Invalid("name another agent as the peer; for the agent's own signals the source is self")
    return agent_by_id(wanted.peer_id)


def _record(row: SignalSubscription, *, actor: str, change: str) -> None:
    about = {
        SignalSource.SHARED: "what its tenant shares",
        SignalSource.OWN: "itself",
        SignalSource.PEER: str(row.source),
    }[source_of(row)]
    verb = "subscribed" if change == "added" else "unsubscribed"
    record(
        action=AuditAction.SUBSCRIPTION_CHANGED,
        actor=actor,
        agent_id=row.agent_id,
        message=f"{verb} {row.agent.name}: {', '.join(row.names)} about {about}",
        detail={
            "subscription": str(row.id),
            "names": row.names,
            "source": str(row.source_id or ""),
            "change": change,
        },
    )
    emit(
        signal(
            SignalName.AGENT_SUBSCRIPTION_CHANGED,
            row.agent_id,
            subscription=row.id,
            names=row.names,
            source=row.source_id or "",
            change=change,
            actor=actor,
        )
    )
