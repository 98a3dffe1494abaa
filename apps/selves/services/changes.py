"""Write the self history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.selves.models import SelfChange
from apps.tenants.scope import current_tenant

#: The kinds of changed parts (`SelfChange.what`).
BELIEF = "belief"
ASPECT = "aspect"
PREFERENCE = "preference"


def note_change(
    *,
    agent_id: UUID,
    what: str,
    target_id: UUID,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    decided_by: str,
    proposal_id: UUID | None = None,
) -> None:
    """Record one change, in the transaction of the change itself. One statement."""
    SelfChange.objects.create(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        what=what,
        target_id=target_id,
        before=dict(before),
        after=dict(after),
        proposal_id=proposal_id,
        decided_by=decided_by,
    )
