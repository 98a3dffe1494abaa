"""Read the state of the tenant's chain of seals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.audit.services.chains import AuditChain
from arbor.audit.chain import Seal

#: The latest seals that the page shows.
SEALS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class ChainPage:
    """The latest seals, and the number of records that are not sealed yet."""

    seals: Sequence[Seal]
    unsealed: int

    @property
    def head(self) -> Seal | None:
        """Return the last seal."""
        return self.seals[0] if self.seals else None


def read_chain(tenant_id: UUID) -> ChainPage:
    """Read the latest seals of a tenant."""
    chain = AuditChain(tenant_id=tenant_id)
    seals = [chain.seal_of(row) for row in chain.seals().order_by("-number")[:SEALS_SHOWN]]
    return ChainPage(
        seals=seals,
        unsealed=chain.events_after(seals[0] if seals else None).count(),
    )
