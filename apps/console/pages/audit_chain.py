"""Read the state of the tenant's chain of seals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.audit.services.chains import AuditChain
from apps.audit.services.verification import ChainReport
from apps.fleet.audit_seals import verify_audit
from arbor.audit.chain import Seal

#: Seals shown, and seals that a page verifies: the command verifies all.
SEALS_SHOWN = 20
SEALS_VERIFIED = 1_000


@dataclass(frozen=True, kw_only=True)
class ChainPage:
    """The latest seals, the records that are not sealed yet, and the result of a verification, if one was wanted."""

    seals: Sequence[Seal]
    unsealed: int
    report: ChainReport | None

    @property
    def head(self) -> Seal | None:
        """The last seal."""
        return self.seals[0] if self.seals else None

    @property
    def verified(self) -> int:
        """The most seals that the page verifies."""
        return SEALS_VERIFIED


def read_chain(tenant_id: UUID, *, verify: bool) -> ChainPage:
    """Read the page, and verify the latest seals if that is wanted. Reading changes nothing."""
    chain = AuditChain(tenant_id=tenant_id)
    seals = [chain.seal_of(row) for row in chain.seals().order_by("-number")[:SEALS_SHOWN]]
    return ChainPage(
        seals=seals,
        unsealed=chain.events_after(seals[0] if seals else None).count(),
        report=verify_audit(chain, latest=SEALS_VERIFIED) if verify else None,
    )
