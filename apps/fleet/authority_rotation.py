"""Rotate the System Authority's key: sign endorsements and grants anew, in small transactions and while the fleet runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.agents.models import AgentEndorsement, AuthorityKey
from apps.agents.services.authority import (
    add_authority_key,
    authority_keys,
    ensure_system_authority,
    retire_authority_keys,
)
from apps.agents.services.reendorsement import SignedAnew, reendorse_agents
from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.authority.models import CapabilityGrant
from apps.authority.services.grant_signatures import sign_grants_anew, signed_by
from apps.fleet.audit_seals import seal_by_latest_key
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, ops_scope, tenant_transaction
from arbor.errors import TransitionIllegal
from arbor.quotations import counted, first_lines

#: Rows signed anew in one transaction, which locks them.
BATCH = 500
#: Errors in a report at most, besides the number of others.
_ERRORS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class AuthorityKeyUse:
    """A key of the System Authority, and the numbers of its signatures in force."""

    number: int
    created_at: datetime
    #: Whether the key signs; the keys before it only verify, until they are retired.
    signs: bool
    retired: bool
    endorsements: int = 0
    grants: int = 0


@dataclass(frozen=True, kw_only=True)
class AuthorityRotation:
    """The result of one run: what was signed anew, and why other rows were not."""

    number: int
    endorsements: int
    grants: int
    refused: tuple[str, ...] = ()


def authority_key_uses() -> list[AuthorityKeyUse]:
    """Return the System Authority's keys with the numbers of their signatures in force, the oldest key first."""
    in_use = set(authority_keys().values_list("number", flat=True))
    rows = list(AuthorityKey.objects.order_by("number"))
    with ops_scope():
        return [
            AuthorityKeyUse(
                number=row.number,
                created_at=row.created_at,
                signs=row is rows[-1],
                retired=row.number not in in_use,
                endorsements=AgentEndorsement.objects.filter(authority_number=row.number).count(),
                grants=CapabilityGrant.objects.filter(signed_by([row.number])).count(),
            )
            for row in rows
        ]


def rotate_authority(*, actor: str, batch: int = BATCH) -> AuthorityRotation:
    """Create a further key of the System Authority, and sign with it all that earlier keys have signed.

    With two keys in use, an interrupted rotation is continued. Both keys are valid until `retire_authority`. Rows that are not genuine
    are left as they are, and reported. Raises ConfigurationInvalid without a master key, and SealBroken.
    """
    key = ensure_system_authority()
    if authority_keys().count() == 1:
        key = add_authority_key()
    _record(actor, f"began to sign with the key {key.number} of the System Authority", {"key": key.number})
    endorsements = grants = 0
    refused: list[str] = []
    for tenant_id in list(Tenant.objects.using(OPS).order_by("id").values_list("id", flat=True)):
        signed, faults = _sign_all(tenant_id, reendorse_agents, batch)
        endorsements, refused = endorsements + signed, refused + faults
        signed, faults = _sign_all(tenant_id, sign_grants_anew, batch)
        grants, refused = grants + signed, refused + faults
    message = (
        f"signed with the key {key.number} of the System Authority: {_counted(endorsements, grants, ', ')}"
    )
    _record(actor, message, {"key": key.number, "endorsements": endorsements, "grants": grants})
    return AuthorityRotation(
        number=key.number,
        endorsements=endorsements,
        grants=grants,
        refused=first_lines(refused, _ERRORS_SHOWN),
    )


def retire_authority(*, actor: str, force: bool = False) -> list[int]:
    """Retire all keys of the System Authority but the latest, and return their numbers: their signatures become invalid.

    The latest key seals the audit log first, which proves the seals of the others. Raises TransitionIllegal without a key to retire, and,
    unless `force` gives that up, while one has signed something in force or another process seals the log.
    """
    outdated = [use for use in authority_key_uses() if not use.signs and not use.retired]
    if not outdated:
        raise TransitionIllegal("one key of the System Authority is in use: there is none to retire")
    used = [use for use in outdated if use.endorsements or use.grants]
    if used and not force:
        left = ", ".join(
            f"the key {use.number} has signed {_counted(use.endorsements, use.grants, ' and ')}"
            for use in used
        )
        raise TransitionIllegal(f"{left}: run `arbor keys authority rotate` first")
    unsealed = seal_by_latest_key()
    if unsealed and not force:
        raise TransitionIllegal(
            f"the audit log of {', '.join(unsealed[:_ERRORS_SHOWN])} is being sealed by another process: try again in a minute"
        )
    numbers = retire_authority_keys()
    _record(actor, f"retired keys of the System Authority: {', '.join(map(str, numbers))}", {"keys": numbers})
    return numbers


def _counted(endorsements: int, grants: int, separator: str) -> str:
    return f"{counted(endorsements, 'endorsement')}{separator}{counted(grants, 'grant')}"


def _sign_all(tenant_id: UUID, sign: Callable[..., SignedAnew], batch: int) -> tuple[int, list[str]]:
    """Sign all rows of a tenant anew, in a transaction for each batch."""
    signed, after = 0, None
    refused: list[str] = []
    while True:
        with tenant_transaction(tenant_id):
            done = sign(after=after, batch=batch)
        signed, after = signed + done.signed, done.last
        refused += done.refused
        if done.read < batch:
            return signed, refused


def _record(actor: str, message: str, detail: dict[str, Any]) -> None:
    record_platform(action=AuditAction.OPERATOR_ACT, actor=actor, message=message, detail=detail)
