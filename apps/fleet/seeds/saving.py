"""Save seeds in the database: before risky changes, and of agents that are destroyed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, cast
from uuid import UUID

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.fleet.models import SavedSeed, SavedSeedPart
from apps.fleet.seeds.capture import CaptureOptions, capture
from apps.fleet.seeds.files import verify_seed
from apps.fleet.seeds.refusals import auditing_refusals
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant, tenant_transaction
from arbor.errors import NotFound
from arbor.seeds.limits import MEGABYTE
from arbor.seeds.manifest import SeedManifest
from arbor.seeds.saving import SavedAt, SeedReason, expired_seeds
from arbor.signals import SignalName, signal

#: Bytes of a seed that stay in memory while it is written or read; larger ones are in a temporary file.
IN_MEMORY = 4 * MEGABYTE


def temporary_file() -> BinaryIO:
    """Return a file that is deleted when it is closed."""
    return cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))


def save_seed(*, agent_id: UUID, reason: SeedReason, actor: str) -> SavedSeed:
    """Save a seed of an agent as it is in the open transaction, and delete those that have expired. Raises NotFound."""
    with temporary_file() as file:
        options = CaptureOptions(reason=f"saved: {reason}")
        manifest = capture(agent_id=agent_id, output=file, options=options)
        row = _stored(manifest, reason, actor)
        _store_parts(row, file)
    delete_expired_seeds()
    record(
        action=AuditAction.SEED_EXPORTED,
        actor=actor,
        agent_id=agent_id,
        message=f"saved a seed of {row.name}: {reason}",
        detail={"seed_id": str(row.id), "digest": row.digest, "bytes": row.bytes},
    )
    emit(
        signal(
            SignalName.AGENT_SEED_CAPTURED, agent_id, name=row.name, digest=row.digest, reason=reason.value
        )
    )
    return row


def save_upload(*, tenant_id: UUID, source: BinaryIO, actor: str) -> SavedSeed:
    """Verify a seed from elsewhere and save it; one that is saved already is returned. Raises SeedInvalid."""
    with auditing_refusals(tenant_id=tenant_id, actor=actor), tenant_transaction(tenant_id):
        manifest = verify_seed(source).manifest
        known: SavedSeed | None = SavedSeed.objects.filter(id=manifest.header.id).first()
        if known is not None:
            return known
        row = _stored(manifest, SeedReason.UPLOADED, actor)
        _store_parts(row, source)
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=f"saved a seed of {row.name} from elsewhere",
            detail={"seed_id": str(row.id), "digest": row.digest, "bytes": row.bytes},
        )
    return row


def saved_seed(seed_id: UUID) -> SavedSeed:
    """Return a saved seed. Raises NotFound."""
    row: SavedSeed | None = SavedSeed.objects.filter(id=seed_id).first()
    if row is None:
        raise NotFound(f"there is no saved seed {seed_id} in this tenant; `arbor seed list` shows them")
    return row


def open_saved_seed(seed_id: UUID) -> BinaryIO:
    """Return the file of a saved seed, read in the open transaction. Raises NotFound."""
    row = saved_seed(seed_id)
    file = temporary_file()
    parts = SavedSeedPart.objects.filter(seed_id=row.id).order_by("number")
    for data in parts.values_list("data", flat=True).iterator(chunk_size=1):
        file.write(bytes(data))
    file.seek(0)
    return file


def delete_saved_seed(*, seed_id: UUID, actor: str) -> SavedSeed:
    """Delete a saved seed. Raises NotFound."""
    row = saved_seed(seed_id)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=row.agent_id,
        message=f"deleted the saved seed of {row.name} of {row.at:%Y-%m-%d %H:%M} UTC",
        detail={"seed_id": str(row.id), "digest": row.digest},
    )
    SavedSeed.objects.filter(id=row.id).delete()
    return row


def delete_expired_seeds(now: datetime | None = None) -> int:
    """Delete the current tenant's saved seeds that the policy no longer retains, and return their number."""
    saved = [
        SavedAt(id=seed_id, agent_id=agent_id, at=at)
        for seed_id, agent_id, at in SavedSeed.objects.values_list("id", "agent_id", "at")
    ]
    agents = {seed.agent_id for seed in saved}
    existing = frozenset(Agent.objects.filter(id__in=agents).values_list("id", flat=True))
    expired = expired_seeds(saved, existing=existing, now=now or datetime.now(UTC))
    if expired:
        SavedSeed.objects.filter(id__in=expired).delete()
    return len(expired)


def _stored(manifest: SeedManifest, reason: SeedReason, actor: str) -> SavedSeed:
    header = manifest.header
    row: SavedSeed = SavedSeed.objects.create(
        id=header.id,
        tenant_id=current_tenant(),
        agent_id=header.agent_id,
        name=header.name,
        public_id=header.public_id,
        reason=reason,
        digest=manifest.trailer.digest,
        bytes=manifest.bytes,
        rows=manifest.rows,
        actor=actor,
        at=header.captured_at,
    )
    return row


def _store_parts(row: SavedSeed, file: BinaryIO) -> None:
    file.seek(0)
    for number, data in enumerate(_parts(file)):
        SavedSeedPart.objects.create(tenant_id=row.tenant_id, seed=row, number=number, data=data)


def _parts(file: BinaryIO) -> Iterator[bytes]:
    while data := file.read(MEGABYTE):
        yield data
