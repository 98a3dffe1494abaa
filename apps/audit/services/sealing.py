"""Seal what was committed: audit records in the order of their transactions, and the heartbeats that ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connections, transaction

from apps.audit.models import AuditSeal, PlatformBlock, PlatformSeal, SealedBlock
from apps.audit.services.chains import AuditChain
from apps.tenants.scope import OPS
from arbor.agents.keys import SigningKey
from arbor.audit.chain import (
    NO_SEAL,
    Seal,
    SealedRow,
    SealHeader,
    block_digest,
    pack_events,
    pack_heartbeats,
)
from arbor.ids import uuid7

log = structlog.get_logger(__name__)

#: Audit records under one seal at most.
MAX_EVENTS = 1_000
# One process seals a chain at a time; any other returns without waiting.
_LOCK = "SELECT pg_try_advisory_xact_lock(hashtext('arbor.audit.seal'), hashtext(%s)), audit_horizon()"


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedHeartbeats:
    """The heartbeats that ended since a seal, and the cursor among the tenant's signals after them."""

    rows: Sequence[SealedRow] = ()
    cursor: str = ""


def add_seal(
    chain: AuditChain,
    *,
    after: Seal | None,
    heartbeats: EndedHeartbeats,
    signer: SigningKey,
    now: datetime,
) -> Seal | None:
    """Seal the next audit records of a chain with the heartbeats that ended meanwhile, in one transaction of the operations role.

    Returns None if there is nothing to seal, if another process seals this chain, or if it has added a seal after `after`. Records whose
    position a running transaction may still precede are left for a later seal. A new key seals once without records, so that its seal
    proves those of the key before; an older key seals nothing after it.
    """
    with transaction.atomic(using=OPS):
        horizon = _lock(chain)
        if horizon is None or (head := chain.head()) != after:
            return None
        if head is not None and head.key_number > signer.number:
            log.warning("seal_refused_older_key", tenant_id=str(chain.tenant_id), key=signer.number)
            return None
        rows = list(chain.events_after(head).filter(position__lt=horizon)[:MAX_EVENTS])
        is_proof = head is not None and head.key_number < signer.number
        if not rows and not heartbeats.rows and not is_proof:
            return None
        events = pack_events(SealedRow(id=row.id, digest=chain.digest_of(row)) for row in rows)
        ended = pack_heartbeats(heartbeats.rows)
        position, last_id = _end_of(rows, head)
        header = SealHeader(
            chain=chain.name,
            number=head.header.number + 1 if head else 1,
            at=now,
            previous=head.digest if head else NO_SEAL,
            position=position,
            last_id=last_id,
            events=len(rows),
            events_digest=block_digest(events),
            cursor=heartbeats.cursor,
            heartbeats=len(heartbeats.rows),
            heartbeats_digest=block_digest(ended),
        )
        seal = Seal(
            header=header,
            digest=header.digest,
            key_number=signer.number,
            signature=signer.sign(header.signed_bytes),
        )
        _store(chain, seal, events=events, heartbeats=ended)
    return seal


def _lock(chain: AuditChain) -> int | None:
    """Lock the chain and return the horizon; None where another process has it."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(_LOCK, [chain.name])
        locked, horizon = cursor.fetchone()
        return int(horizon) if locked else None


def _end_of(rows: Sequence[Any], head: Seal | None) -> tuple[int, UUID | None]:
    """Return the position and id of the last sealed record."""
    if rows:
        return rows[-1].position, rows[-1].id
    return (head.header.position, head.header.last_id) if head else (0, None)


def _store(chain: AuditChain, seal: Seal, *, events: bytes, heartbeats: bytes) -> None:
    header = seal.header
    seal_model: Any = AuditSeal if chain.tenant_id else PlatformSeal
    block_model: Any = SealedBlock if chain.tenant_id else PlatformBlock
    row = seal_model(
        id=uuid7(),
        **chain.owner,
        number=header.number,
        at=header.at,
        previous=header.previous,
        last_position=header.position,
        last_id=header.last_id,
        events=header.events,
        events_digest=header.events_digest,
        cursor=header.cursor,
        heartbeats=header.heartbeats,
        heartbeats_digest=header.heartbeats_digest,
        digest=seal.digest,
        key_number=seal.key_number,
        signature=seal.signature,
    )
    block = block_model(seal_id=row.id, **chain.owner, at=header.at, events=events, heartbeats=heartbeats)
    chain.seals().bulk_create([row])
    chain.blocks().bulk_create([block])
