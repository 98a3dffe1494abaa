"""Sign the endorsements of agents anew with the System Authority's latest key."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from apps.agents.models import AgentEndorsement
from apps.agents.services.authority import ensure_system_authority
from apps.agents.services.identity import identities_of
from arbor.agents.endorsement import endorse


@dataclass(frozen=True, kw_only=True)
class SignedAnew:
    """The result of signing a batch of rows anew."""

    #: Rows that were read; fewer than the size of the batch: no further rows follow.
    read: int
    signed: int
    #: Why rows were not signed.
    refused: tuple[str, ...] = ()
    #: The last row, after which the next batch begins.
    last: UUID | None = None


@transaction.atomic
def reendorse_agents(*, after: UUID | None, batch: int) -> SignedAnew:
    """Sign a batch of endorsements of the current tenant anew, in the order of agents; only the signatures change.

    An endorsement that is not genuine is left as it is. Raises ConfigurationInvalid without a master key, and SealBroken.
    """
    authority = ensure_system_authority()
    rows = AgentEndorsement.objects.exclude(authority_number=authority.number).order_by("agent_id")
    if after is not None:
        rows = rows.filter(agent_id__gt=after)
    found = list(rows.select_for_update(of=("self",), no_key=True)[:batch])
    identities = identities_of([row.agent_id for row in found])
    signed: list[AgentEndorsement] = []
    refused: list[str] = []
    for row in found:
        identity = identities[row.agent_id]
        before = identity.endorsement
        if before is None:
            refused.append(f"the endorsement of {identity.chain.public_id}: {identity.refusal}")
            continue
        statement = endorse(
            identity.chain,
            authority=authority,
            serial=before.serial,
            at=before.at,
            status=before.status,
            reason=before.reason,
        )
        row.authority_number, row.signature = statement.authority_number, statement.signature
        signed.append(row)
    AgentEndorsement.objects.bulk_update(signed, ["authority_number", "signature"])
    return SignedAnew(
        read=len(found),
        signed=len(signed),
        refused=tuple(refused),
        last=found[-1].agent_id if found else None,
    )
