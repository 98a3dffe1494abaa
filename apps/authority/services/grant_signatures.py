"""Replace the signatures of agents' grants by those of the System Authority's latest key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from apps.agents.services.authority import authority_public_keys, ensure_system_authority
from apps.agents.services.reendorsement import SignedAnew
from apps.authority.models import CapabilityGrant
from apps.authority.services.authority_column import issuer_of, to_record
from apps.authority.services.grants import to_value
from arbor.agents.keys import SigningKey
from arbor.authority.grants import Capability
from arbor.values import replace


def signed_by(numbers: Collection[int]) -> Q:
    """Return the condition of grants in force whose signature, or that of a grant above, is by these keys of the System Authority."""
    issuers = [issuer_of(number) for number in numbers]
    found = Q(issuer__in=issuers)
    for issuer in issuers:
        found |= Q(ancestors__contains=[{"issuer": issuer}])
    return found & Q(revoked_at=None)


@transaction.atomic
def sign_grants_anew(*, after: UUID | None, batch: int) -> SignedAnew:
    """Sign a batch of grants of the current tenant anew, in the order of their ids, with their copies of the grants above.

    A grant is left as it is if its signature, or that of a grant above, is not valid; so are revoked grants, which authorize nothing.
    Raises ConfigurationInvalid without a master key, and SealBroken.
    """
    key, public_keys = ensure_system_authority(), authority_public_keys()
    issuers = {issuer_of(number): public for number, public in public_keys.items()}
    rows = CapabilityGrant.objects.filter(signed_by(public_keys.keys() - {key.number})).order_by("id")
    if after is not None:
        rows = rows.filter(id__gt=after)
    found = list(rows.select_related("agent").select_for_update(of=("self",), no_key=True)[:batch])
    signed: list[CapabilityGrant] = []
    refused: list[str] = []
    for row in found:
        grant = to_value(row)
        if not all(_is_genuine(link, issuers) for link in (grant, *grant.ancestors)):
            refused.append(
                f"the signature of {grant.id}, or of a grant above it, is not by a key of the System Authority"
            )
            continue
        signed_grant = _sign(grant, key)
        row.issuer, row.signature = signed_grant.issuer, signed_grant.signature
        row.ancestors = [to_record(_sign(above, key)) for above in grant.ancestors] or None
        signed.append(row)
    CapabilityGrant.objects.bulk_update(signed, ["issuer", "signature", "ancestors"])
    return SignedAnew(
        read=len(found), signed=len(signed), refused=tuple(refused), last=found[-1].id if found else None
    )


def _is_genuine(grant: Capability, issuers: Mapping[str, bytes]) -> bool:
    key = issuers.get(grant.issuer)
    return key is not None and grant.is_signed_by(key)


def _sign(grant: Capability, key: SigningKey) -> Capability:
    unsigned = replace(grant, issuer=issuer_of(key.number))
    return replace(unsigned, signature=key.sign(unsigned.message()).hex())
