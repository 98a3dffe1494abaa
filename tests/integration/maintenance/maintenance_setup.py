"""Set-up for tests of maintenance calls: stored talk, elapsed time, and the state of the calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import F

from apps.agents.models import Agent
from apps.calls.models import ExternalCall, LedgerEntry
from apps.maintenance.services.recovery import recover_maintenance_calls
from apps.maintenance.services.settlement import RETRY_DELAYS
from apps.memories.models import Episode, Memory, MemoryConcept, Upkeep
from apps.memories.services.jobs.episodes import close_episodes
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import NewMemory
from arbor.models.ports import ScriptedModel
from tests.integration.heartbeats.fleet import Fleet

LONG_AGO = datetime(2024, 3, 1, 12, tzinfo=UTC)
TALK = (
    "The keel of the Heron was laid in Lisbon, and the oak for the Heron came from Galicia.",
    "Breakfast was cold porridge again.",
    "We agreed that the Heron sails to the Azores on Friday.",
    "The compass of the Heron still needs a new glass.",
)

#: A reply with a summary of the talk.
SUMMARY = json.dumps({"summary": "The Heron was built in Lisbon and sails on Friday."})

type Script = Callable[..., ScriptedModel]


def remember_talk(agent: Agent, *texts: str, session: str = "talk") -> list[UUID]:
    """Store the turns of an old talk, a minute apart; return their ids."""
    memories = [
        NewMemory(
            content=text,
            session=session,
            position=place,
            role="Ada" if place % 2 else "Ben",
            occurred_at=LONG_AGO + timedelta(minutes=place),
            importance=0.5,
        )
        for place, text in enumerate(texts or TALK)
    ]
    return list(remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories).ids)


def close_and_settle(agent: Agent) -> None:
    """Close the agent's episodes, and let the time before their summary pass."""
    close_episodes()
    with tenant_transaction(agent.tenant_id):
        Episode.objects.filter(agent_id=agent.id, ended_at__isnull=False).update(
            ended_at=F("ended_at") - timedelta(minutes=6)
        )


def move_into_past(agent: Agent, time: timedelta) -> None:
    """Move the times of the agent's maintenance calls into the past."""
    with tenant_transaction(agent.tenant_id):
        ExternalCall.objects.filter(agent_id=agent.id).update(
            due_at=F("due_at") - time,
            lease_until=F("lease_until") - time,
            ended_at=F("ended_at") - time,
            requested_at=F("requested_at") - time,
        )


def run_all_tries(agent: Agent, fleet: Fleet) -> None:
    """Run each try of the agent's maintenance calls, with the waits between them."""
    for wait in RETRY_DELAYS:
        fleet.run()
        move_into_past(agent, wait + timedelta(seconds=1))
        recover_maintenance_calls()
    fleet.run()


def calls_of(agent: Agent) -> list[ExternalCall]:
    """Return the agent's maintenance calls, the oldest first."""
    with tenant_transaction(agent.tenant_id):
        return list(ExternalCall.objects.filter(agent_id=agent.id).exclude(subject_key="").order_by("id"))


def only_call(agent: Agent) -> ExternalCall:
    """Return the only maintenance call of an agent."""
    (call,) = calls_of(agent)
    return call


def ledger_of(agent: Agent) -> list[LedgerEntry]:
    """Return the ledger entries of the agent's calls, in order."""
    with tenant_transaction(agent.tenant_id):
        return list(LedgerEntry.objects.filter(agent_id=agent.id).order_by("id"))


def episodes_of(agent: Agent) -> list[Episode]:
    """Return the agent's current episodes, the oldest first."""
    with tenant_transaction(agent.tenant_id):
        return list(Episode.objects.filter(agent_id=agent.id).order_by("started_at"))


def concepts_of(agent: Agent) -> dict[str, set[str]]:
    """Return the concepts of each memory that has some, by its text."""
    with tenant_transaction(agent.tenant_id):
        links = MemoryConcept.objects.filter(memory__agent_id=agent.id).values_list(
            "memory__content", "concept__name"
        )
        concepts: dict[str, set[str]] = {}
        for content, name in links:
            concepts.setdefault(content, set()).add(name)
        return concepts


def waiting_for(agent: Agent, flag: str) -> set[UUID]:
    """Return the memories of the agent with this maintenance flag."""
    with tenant_transaction(agent.tenant_id):
        rows = Upkeep.objects.filter(agent_id=agent.id, **{flag: True})
        return set(rows.values_list("memory_id", flat=True))


def importance_of(agent: Agent, memory_id: UUID) -> float:
    """Return the importance of a memory."""
    with tenant_transaction(agent.tenant_id):
        return float(Memory.objects.values_list("importance", flat=True).get(id=memory_id))
