"""Create the identities of new agents, and endorse agents that are older than endorsements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent, AgentEndorsement, AgentKey
from apps.agents.services.authority import ensure_system_authority
from apps.agents.services.identity import record_statement
from apps.agents.services.identity_rows import (
    chain_key,
    chain_of,
    endorsement_row,
    exchange_row,
    key_row,
    open_key,
)
from apps.audit.models import AuditAction
from apps.tenants.keys import master_keys
from arbor.agents.endorsement import endorse
from arbor.agents.identity import KeyPair
from arbor.agents.keys import FIRST, ChainKey, KeyPurpose
from arbor.errors import IdentityRefused, SealBroken


@dataclass(frozen=True, kw_only=True)
class NewIdentity:
    """The row of a new agent, and its signing key pair."""

    agent: Agent
    pair: KeyPair


def create_identities(new: Sequence[NewIdentity], *, now: datetime) -> None:
    """Store the keys and endorsements of agents whose rows have just been stored. Three statements for all.

    Raises ConfigurationInvalid without a master key.
    """
    keys, authority = master_keys(), ensure_system_authority()
    key_rows: list[AgentKey] = []
    endorsements: list[AgentEndorsement] = []
    for identity in new:
        agent, pair = identity.agent, identity.pair
        first = ChainKey(number=FIRST, public=pair.public)
        chain = chain_of(agent, [first])
        key_rows += [
            key_row(agent, KeyPurpose.SIGNING, first, pair.private, keys),
            exchange_row(agent, chain, number=FIRST, signing=pair.private, keys=keys),
        ]
        statement = endorse(chain, authority=authority, serial=1, at=now)
        endorsements.append(endorsement_row(agent, statement))
    AgentKey.objects.bulk_create(key_rows)
    AgentEndorsement.objects.bulk_create(endorsements)


@dataclass(frozen=True, kw_only=True)
class EndorsedAgents:
    """The result of endorsing agents that are older than endorsements."""

    endorsed: int
    #: Why agents could not be endorsed.
    refused: tuple[str, ...] = ()


def endorse_agents(*, agent_ids: Collection[UUID], actor: str) -> EndorsedAgents:
    """Endorse agents of the current tenant that have no endorsement, and give them exchange keys; audited, idempotent.

    An agent is endorsed if its private key opens under the master key: that is the proof that the key is its own.
    """
    endorsed = 0
    refused: list[str] = []
    with transaction.atomic():
        rows = Agent.objects.filter(id__in=agent_ids, endorsement__isnull=True).order_by("id")
        agents = list(rows.select_for_update(of=("self",), no_key=True))
        keys_by_agent: dict[UUID, list[AgentKey]] = {agent.id: [] for agent in agents}
        for key in AgentKey.objects.filter(agent_id__in=keys_by_agent).order_by("number"):
            keys_by_agent[key.agent_id].append(key)
        for agent in agents:
            try:
                _endorse_existing(agent, keys_by_agent[agent.id], actor)
                endorsed += 1
            except (IdentityRefused, SealBroken) as error:
                refused.append(f"{agent.name}: {error}")
    return EndorsedAgents(endorsed=endorsed, refused=tuple(refused))


def _endorse_existing(agent: Agent, rows: Sequence[AgentKey], actor: str) -> None:
    signing = [row for row in rows if row.purpose == KeyPurpose.SIGNING]
    chain = chain_of(agent, [chain_key(row) for row in signing])
    chain.verify()
    keys = master_keys()
    private = open_key(agent, signing[-1], keys)
    if len(signing) == len(rows):
        exchange_row(agent, chain, number=FIRST, signing=private, keys=keys).save(force_insert=True)
    statement = endorse(chain, authority=ensure_system_authority(), serial=1, at=datetime.now(UTC))
    endorsement_row(agent, statement).save(force_insert=True)
    record_statement(
        agent,
        action=AuditAction.IDENTITY_ENDORSED,
        actor=actor,
        message=f"endorsed the identity of {agent.name}",
        statement=statement,
    )
