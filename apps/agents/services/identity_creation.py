"""Give new agents their identities, and endorse agents from before endorsements."""

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


@dataclass(frozen=True, kw_only=True)
class NewIdentity:
    """A new agent's agent row, not yet stored, and its signing key pair."""

    agent: Agent
    pair: KeyPair


def create_identities(new: Sequence[NewIdentity], *, now: datetime) -> None:
    """Store the keys and endorsements of agents whose rows have just been stored. Two statements for all.

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


def endorse_agents(*, agent_ids: Collection[UUID], actor: str) -> int:
    """Endorse agents of the current tenant that have no endorsement, and return their number; audited.

    Gives an exchange key to those without one. For agents from before endorsements; agents without a key are left out,
    since nobody can sign for them. Idempotent.
    """
    with transaction.atomic():
        rows = Agent.objects.filter(id__in=agent_ids, endorsement__isnull=True).order_by("id")
        agents = list(rows.select_for_update(of=("self",), no_key=True))
        keys_by_agent: dict[UUID, list[AgentKey]] = {agent.id: [] for agent in agents}
        for key in AgentKey.objects.filter(agent_id__in=keys_by_agent).order_by("number"):
            keys_by_agent[key.agent_id].append(key)
        endorsed = 0
        for agent in agents:
            endorsed += _endorse_existing(agent, keys_by_agent[agent.id], actor)
        return endorsed


def _endorse_existing(agent: Agent, rows: Sequence[AgentKey], actor: str) -> bool:
    signing = [row for row in rows if row.purpose == KeyPurpose.SIGNING]
    if not signing:
        return False
    keys = master_keys()
    chain = chain_of(agent, [chain_key(row) for row in signing])
    # Opening the key proves that the row is this agent's: nothing else did before endorsements.
    private = open_key(agent, signing[-1], keys)
    chain.verify()
    if len(signing) == len(rows):
        exchange_row(agent, chain, number=FIRST, signing=private, keys=keys).save(force_insert=True)
    statement = endorse(chain, authority=ensure_system_authority(), serial=1, at=datetime.now(UTC))
    endorsement_row(agent, statement).save(force_insert=True)
    record_statement(
        agent, AuditAction.IDENTITY_ENDORSED, actor, f"endorsed the identity of {agent.name}", statement
    )
    return True
