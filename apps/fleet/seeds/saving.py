"""Save seeds in the database: before risky changes, and of agents that are destroyed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, cast
from uuid import UUID

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.fleet.models import SavedSeed, SavedSeedPart
from apps.fleet.seeds.capture import CaptureOptions, capture
from apps.fleet.seeds.files import VerifiedSeed, receive_seed
from apps.fleet.seeds.refusals import audit_refusals
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant, tenant_transaction
from arbor.errors import NotFound, SeedInvalid
from arbor.seeds.id_mapping import derived_id
from arbor.seeds.limits import MEGABYTE
from arbor.seeds.manifest import SeedManifest
from arbor.seeds.saving import AFTER_DESTRUCTION, DAILY, LATEST, DatedSeed, SeedReason, expired_seeds
from arbor.signals import SignalName, signal

#: A seed up to this size is written and read in memory, a larger one in a temporary file.
_IN_MEMORY = 4 * MEGABYTE
_JOB_RUN_DURATION = timedelta(seconds=6)
# Agents that may have seeds which `arbor.seeds.saving.expired_seeds` returns. Several seeds of one day are deleted
# when the next seed is saved.
_EXPIRED = f"""
SELECT s.agent_id FROM fleet_savedseed s WHERE s.tenant_id = t.id GROUP BY s.agent_id
HAVING CASE WHEN EXISTS (SELECT FROM agents_agent a WHERE a.tenant_id = t.id AND a.id = s.agent_id)
    THEN count(*) > {LATEST} AND min(s.saved_at) < now() - interval '{DAILY.days} days'
    ELSE min(s.saved_at) < now() - interval '{AFTER_DESTRUCTION.days} days' END
"""  # noqa: S608 (no external input)


def temporary_file() -> BinaryIO:
    """Return a file that is deleted when it is closed."""
    return cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))


def save_seed(*, agent_id: UUID, reason: SeedReason, actor: str) -> SavedSeed:
    """Save a seed of an agent as it is in the open transaction, and delete the agent's expired seeds.

    Raises NotFound, IdentityRefused.
    """
    with temporary_file() as file:
        options = CaptureOptions(reason=f"saved: {reason}")
        manifest = capture(agent_id=agent_id, output=file, options=options)
        row = _create_row(manifest, reason, actor)
        _store_parts(row, file)
    delete_expired_seeds(agent_id)
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
    """Verify a seed from elsewhere, save it unless that was done before, and return it as saved. Raises SeedInvalid."""
    manifest = receive_seed(source, tenant_id=tenant_id, actor=actor).manifest
    with audit_refusals(tenant_id=tenant_id, actor=actor), tenant_transaction(tenant_id):
        # Another tenant may have the seed too, and ids are unique in the whole installation.
        own_id = derived_id(manifest.header.id, owner=tenant_id)
        known: SavedSeed | None = SavedSeed.objects.filter(id__in=(manifest.header.id, own_id)).first()
        if known is not None:
            if known.digest != manifest.trailer.digest:
                raise SeedInvalid(f"the saved seed {known.id} has the id of this seed, but another digest")
            return known
        row = _create_row(manifest, SeedReason.UPLOADED, actor, seed_id=own_id)
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


@contextmanager
def verified_saved_seed(*, tenant_id: UUID, seed_id: UUID, actor: str) -> Iterator[VerifiedSeed]:
    """Open and verify a saved seed, outside of transactions. Raises NotFound, SeedInvalid."""
    with tenant_transaction(tenant_id):
        file = open_saved_seed(seed_id)
    with file:
        yield receive_seed(file, tenant_id=tenant_id, actor=actor)


def open_saved_seed(seed_id: UUID) -> BinaryIO:
    """Return the file of a saved seed, read in the open transaction. Raises NotFound."""
    row = saved_seed(seed_id)
    file = temporary_file()
    parts = SavedSeedPart.objects.filter(seed_id=row.id).order_by("number")
    for data in parts.values_list("data", flat=True).iterator(chunk_size=1):
        file.write(bytes(data))
    file.seek(0)
    return file


def download_saved_seed(*, seed_id: UUID, actor: str) -> BinaryIO:
    """Return the file of a saved seed for a download, which is audited as an export. Raises NotFound."""
    row = saved_seed(seed_id)
    record(
        action=AuditAction.SEED_EXPORTED,
        actor=actor,
        agent_id=row.agent_id,
        message=f"downloaded the saved seed of {row.name} of {row.at:%Y-%m-%d %H:%M} UTC",
        detail={"seed_id": str(row.id), "digest": row.digest, "bytes": row.bytes},
    )
    return open_saved_seed(seed_id)


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


def sweep_saved_seeds() -> JobRunResult:
    """Delete the saved seeds that the policy no longer retains, agent by agent."""

    def delete(tenant_id: UUID, agent_id: UUID) -> int:
        with tenant_transaction(tenant_id):
            return delete_expired_seeds(agent_id)

    return run_job("saved seeds", waiting=_EXPIRED, step=delete, max_duration=_JOB_RUN_DURATION)


def delete_expired_seeds(agent_id: UUID) -> int:
    """Delete an agent's saved seeds that the policy no longer retains, and return their number."""
    rows = SavedSeed.objects.filter(agent_id=agent_id).values_list("id", "saved_at")
    saved = [DatedSeed(id=seed_id, agent_id=agent_id, at=saved_at) for seed_id, saved_at in rows]
    existing = frozenset(Agent.objects.filter(id=agent_id).values_list("id", flat=True))
    expired = expired_seeds(saved, existing=existing, now=datetime.now(UTC))
    if expired:
        SavedSeed.objects.filter(id__in=expired).delete()
    return len(expired)


def _create_row(
    manifest: SeedManifest, reason: SeedReason, actor: str, *, seed_id: UUID | None = None
) -> SavedSeed:
    header = manifest.header
    row: SavedSeed = SavedSeed.objects.create(
        id=seed_id or header.id,
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
