"""Start, pause, resume, stop, wake and destroy agents."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import models, transaction

from apps.agents.models import Agent, AgentPolicy, AgentState
from apps.agents.services.identity import identity_of
from apps.agents.services.locks import lock_agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.models import ActionApproval, AgentTrust, CapabilityGrant, ModeRule
from apps.calls.models import ExternalCall
from apps.contacts.models import Channel, ChatSession, OutboxMessage
from apps.fleet.seeds.saving import save_seed
from apps.heartbeats.services.schedule import switch_off, switch_on
from apps.memories.services.store.term_counts import lock_minds
from apps.selves.models import Belief, Boundary, IdentityAspect, Preference, Proposal
from apps.signals.services.emission import emit
from apps.tenants.fields import OnDelete, WithinTenant
from apps.tenants.models import TenantModel
from apps.tenants.services import require_active
from arbor.agents.lifecycle import AgentStatus, LifecycleVerb, transition
from arbor.audit.changes import change_of
from arbor.errors import Invalid
from arbor.seeds.saving import SeedReason
from arbor.signals import SignalName, signal

_ACTS: dict[LifecycleVerb, tuple[AuditAction, str]] = {
    LifecycleVerb.START: (AuditAction.AGENT_STARTED, "started"),
    LifecycleVerb.PAUSE: (AuditAction.AGENT_PAUSED, "paused"),
    LifecycleVerb.RESUME: (AuditAction.AGENT_RESUMED, "resumed"),
    LifecycleVerb.STOP: (AuditAction.AGENT_STOPPED, "stopped"),
    LifecycleVerb.SLEEP: (AuditAction.AGENT_DORMANT, "put to sleep"),
    # The audit log has no action of its own for waking.
    LifecycleVerb.WAKE: (AuditAction.AGENT_RESUMED, "woke"),
}

_SIGNALS: dict[LifecycleVerb, SignalName] = {
    LifecycleVerb.START: SignalName.AGENT_STARTED,
    LifecycleVerb.PAUSE: SignalName.AGENT_PAUSED,
    LifecycleVerb.RESUME: SignalName.AGENT_RESUMED,
    LifecycleVerb.STOP: SignalName.AGENT_STOPPED,
    LifecycleVerb.SLEEP: SignalName.AGENT_DORMANT,
    LifecycleVerb.WAKE: SignalName.AGENT_WOKEN,
}

#: Rows that people edit one by one, without the agent's lock.
_EDITED_BY_PEOPLE = (
    ActionApproval,
    AgentPolicy,
    AgentTrust,
    Belief,
    Boundary,
    CapabilityGrant,
    Channel,
    IdentityAspect,
    ModeRule,
    Preference,
    Proposal,
)

#: Verbs that need an active tenant and an endorsed identity. Waking does not: a message wakes an agent.
_NEEDING_RIGHTS = frozenset({LifecycleVerb.START, LifecycleVerb.RESUME})


def start_agent(*, agent_id: UUID, actor: str) -> Agent:
    """Start a new or stopped agent, and store again the template's knowledge that the agent no longer has.

    Raises NotFound, TransitionIllegal, IdentityRefused.
    """
    return _change(agent_id, LifecycleVerb.START, actor)


def pause_agent(*, agent_id: UUID, actor: str) -> Agent:
    """Pause an agent; a running heartbeat is finished. Raises NotFound, TransitionIllegal."""
    return _change(agent_id, LifecycleVerb.PAUSE, actor)


def resume_agent(*, agent_id: UUID, actor: str) -> Agent:
    """End a pause. Raises NotFound, TransitionIllegal, IdentityRefused."""
    return _change(agent_id, LifecycleVerb.RESUME, actor)


def stop_agent(*, agent_id: UUID, actor: str) -> Agent:
    """Stop an agent, reversibly; its data stays. Raises NotFound, TransitionIllegal."""
    return _change(agent_id, LifecycleVerb.STOP, actor)


def sleep_agent(*, agent_id: UUID, actor: str) -> Agent:
    """Make an agent dormant until it is woken, or gets a message. Raises NotFound, TransitionIllegal."""
    return _change(agent_id, LifecycleVerb.SLEEP, actor)


def wake_agent(*, agent_id: UUID, actor: str) -> Agent:
    """Wake a dormant agent and reset its count of unusable replies. Raises NotFound, TransitionIllegal."""
    with transaction.atomic():
        agent = _change(agent_id, LifecycleVerb.WAKE, actor)
        AgentState.objects.filter(agent_id=agent_id).update(nops=0)
    return agent


@transaction.atomic
def destroy_agent(*, agent_id: UUID, confirm: str, actor: str, saves_seed: bool = True) -> dict[str, int]:
    """Delete an agent with all its rows, and return the number of deleted rows that refer to it, by kind. Its audit log stays.

    A seed of the agent is saved first, for 30 days, unless `saves_seed` is false.

    Raises NotFound, Invalid unless `confirm` is the agent's name, and IdentityRefused for an agent without a key to sign the seed.
    """
    agent = lock_whole_agent(agent_id)
    if confirm != agent.name:
        raise Invalid(f"to destroy {agent.name!r}, confirm with its exact name, got {confirm!r}")
    saved = save_seed(agent_id=agent_id, reason=SeedReason.DESTROY, actor=actor) if saves_seed else None
    counts = _count_own(agent_id)
    # The database deletes what refers to the agent (`apps.tenants.protection`).
    Agent.objects.filter(id=agent_id).delete()
    record(
        action=AuditAction.AGENT_DESTROYED,
        actor=actor,
        agent_id=agent_id,
        message=f"destroyed {agent.name} and all its rows",
        detail={"name": agent.name, "public_id": agent.public_id, "status": agent.status, "deleted": counts}
        | ({"saved_seed_id": str(saved.id)} if saved else {}),
    )
    emit(signal(SignalName.AGENT_DESTROYED, agent_id, name=agent.name, actor=actor))
    return counts


def _change(agent_id: UUID, verb: LifecycleVerb, actor: str) -> Agent:
    with transaction.atomic():
        if verb in _NEEDING_RIGHTS:
            require_active()
        agent = lock_agent(agent_id)
        identity = identity_of(agent_id)
        if verb in _NEEDING_RIGHTS:
            identity.require_active()
        previous = agent.status
        agent.status = transition(AgentStatus(previous), verb)
        agent.save(update_fields=["status"])
        # A message wakes an agent whose identity is suspended, but the agent has no heartbeats before the identity is reinstated.
        if agent.status == AgentStatus.ACTIVE and not identity.refusal:
            switch_on(agent_id=agent_id, now=datetime.now(UTC))
        else:
            switch_off(agent_id=agent_id)
        detail: dict[str, Any] = {"from": previous, "to": agent.status}
        if verb is LifecycleVerb.START and (reseeded := _reseed(agent)):
            detail["reseeded"] = [str(memory_id) for memory_id in reseeded]
        action, word = _ACTS[verb]
        record(
            action=action,
            actor=actor,
            agent_id=agent_id,
            message=f"{word} {agent.name}",
            detail=detail,
            change=change_of({"status": previous}, {"status": agent.status}),
        )
        emit(signal(_SIGNALS[verb], agent_id, name=agent.name, actor=actor))
    return agent


def _reseed(agent: Agent) -> tuple[UUID, ...]:
    """Store missing knowledge of the template again; return the ids of the new memories."""
    from apps.fleet.reseeding import reseed_knowledge  # noqa: PLC0415 (loads the embedders; most acts store nothing)

    return reseed_knowledge(agent)


def lock_whole_agent(agent_id: UUID) -> Agent:
    """Lock an agent with all of its rows that others change, in the order in which all writers lock them. Raises NotFound."""
    _lock_ahead(agent_id)
    agent = lock_agent(agent_id)
    # Whoever has one of these locks may still need the agent's row.
    lock_minds([agent_id])
    _lock_rows(agent_id, *_EDITED_BY_PEOPLE)
    return agent


def _lock_ahead(agent_id: UUID) -> None:
    """Lock what others lock before the agent's schedule: its maintenance calls, conversations and messages."""
    calls = ExternalCall.objects.filter(agent_id=agent_id).exclude(subject_key="")
    list(calls.order_by("id").select_for_update().values_list("id"))
    _lock_rows(agent_id, ChatSession, OutboxMessage)


def _lock_rows(agent_id: UUID, *kinds: type[TenantModel]) -> None:
    for model in kinds:
        rows = model._default_manager.filter(models.Q(agent_id=agent_id))
        list(rows.order_by("pk").select_for_update().values_list("pk"))


def _count_own(agent_id: UUID) -> dict[str, int]:
    """Count the rows that the database deletes with the agent, by the plural of their model's name."""
    counts: Counter[str] = Counter()
    # Hidden relations too: those without a name at the agent.
    for relation in Agent._meta.get_fields(include_hidden=True):
        field = getattr(relation, "remote_field", None)
        if relation.concrete or not isinstance(field, WithinTenant) or field.deleting is not OnDelete.CASCADE:
            continue
        rows = field.model._default_manager.filter(**{field.name: agent_id})
        counts[str(field.model._meta.verbose_name_plural)] += rows.count()
    return {name: count for name, count in sorted(counts.items()) if count}
