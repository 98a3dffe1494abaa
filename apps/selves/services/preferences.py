"""Set and remove preferences (seed 000, 2, "Preferences"); each change is recorded."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from apps.agents.services.profile import lock_agent_row
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import Preference
from apps.tenants.scope import current_tenant
from arbor.errors import LimitReached, NotFound
from arbor.selves.values import MAX_PREFERENCES, check_preference


@transaction.atomic
def set_preference(
    *, agent_id: UUID, key: str, value: str, actor: str, source: str = "operator"
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
    previous = row.value if row else None
    row = row or Preference(tenant_id=current_tenant(), agent_id=agent_id, key=key)
    row.value, row.source = value, source
    row.save()
    if previous != value:
        _audit(row, actor, f"let it prefer {key}: {value}", previous)
    return row


@transaction.atomic
def unset_preference(*, agent_id: UUID, key: str, actor: str) -> Preference:
    """Remove a preference; its value is recorded. Raises NotFound."""
    row: Preference | None = (
        Preference.objects.select_for_update().filter(agent_id=agent_id, key=key.strip().casefold()).first()
    )
    if row is None:
        raise NotFound(f"the agent has no preference {key!r}")
    _audit(row, actor, f"took its preference {row.key} away", row.value)
    row.delete()
    return row


def _audit(row: Preference, actor: str, message: str, before: str | None) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=row.agent_id,
        message=message,
        detail={"key": row.key, "before": before},
    )
