"""Set and remove preferences (seed 000, 2, "Preferences"); each change is recorded."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from apps.agents.services.locks import lock_agent_row
from apps.selves.models import Preference
from apps.selves.services.changes import record_part_change
from apps.selves.services.parts import preference_values
from apps.tenants.scope import current_tenant
from arbor.errors import LimitReached, NotFound
from arbor.selves.values import MAX_PREFERENCES, check_preference


@transaction.atomic
def set_preference(
    *,
    agent_id: UUID,
    key: str,
    value: str,
    actor: str,
    source: str = "operator",
    proposal_id: UUID | None = None,
) -> Preference:
    """Set a preference of an agent; the earlier value of the key is recorded.

    Raises NotFound for the agent, Invalid, LimitReached.
    """
    key, value = check_preference(key, value)
    # Without the lock, two concurrent additions could exceed the limit.
    lock_agent_row(agent_id)
    row: Preference | None = Preference.objects.filter(agent_id=agent_id, key=key).first()
    if row is None and Preference.objects.filter(agent_id=agent_id).count() >= MAX_PREFERENCES:
        raise LimitReached(f"an agent has at most {MAX_PREFERENCES} preferences; remove one first")
    previous = preference_values(row) if row else {}
    row = row or Preference(tenant_id=current_tenant(), agent_id=agent_id, key=key)
    row.value, row.source = value, source
    row.save()
    record_part_change(
        row,
        before=previous,
        actor=actor,
        message=f"set its preference {key}: {value}",
        proposal_id=proposal_id,
    )
    return row


@transaction.atomic
def unset_preference(*, agent_id: UUID, key: str, actor: str) -> Preference:
    """Remove a preference; its value is recorded. Raises NotFound, also for the agent."""
    lock_agent_row(agent_id)
    row: Preference | None = (
        Preference.objects.select_for_update().filter(agent_id=agent_id, key=key.strip().casefold()).first()
    )
    if row is None:
        raise NotFound(f"the agent has no preference {key!r}")
    message = f"removed its preference {row.key}"
    record_part_change(row, before=preference_values(row), actor=actor, message=message, is_removed=True)
    row.delete()
    return row
