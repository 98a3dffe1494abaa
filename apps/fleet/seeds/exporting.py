"""Export an agent as a seed file."""

from __future__ import annotations

from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.fleet.seeds.capture import CaptureOptions, begin_snapshot, capture
from apps.signals.services.emission import emit
from apps.tenants.scope import tenant_transaction
from arbor.seeds.manifest import SeedManifest
from arbor.seeds.writing import SeedOutput
from arbor.signals import SignalName, signal


def export_seed(
    *, tenant_id: UUID, agent_id: UUID, output: SeedOutput, options: CaptureOptions, actor: str
) -> SeedManifest:
    """Write an agent's seed as it is at one moment, and return its manifest. Raises NotFound, IdentityRefused."""
    with tenant_transaction(tenant_id):
        begin_snapshot()
        manifest = capture(agent_id=agent_id, output=output, options=options)
        record(
            action=AuditAction.SEED_EXPORTED,
            actor=actor,
            agent_id=agent_id,
            message=f"exported a seed of {manifest.header.name}",
            detail={"digest": manifest.trailer.digest, "bytes": manifest.bytes, "rows": manifest.rows},
        )
        emit(
            signal(
                SignalName.AGENT_SEED_CAPTURED,
                agent_id,
                name=manifest.header.name,
                digest=manifest.trailer.digest,
                reason="export",
            )
        )
    return manifest
