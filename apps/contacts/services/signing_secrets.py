"""Seal, open and rotate the secrets of a hook or a webhook: the current one, and the one before while it is valid too."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from apps.contacts.models import Hook, SignalWebhook
from apps.tenants.keys import master_keys
from arbor.contacts.signing import SIGNING_SECRETS
from arbor.errors import Invalid, SealBroken

#: The time for which the secret before is valid too, unless another is asked for.
OVERLAP = timedelta(days=1)
LONGEST_OVERLAP = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class SecretPair:
    """The current secret, and the one before; empty: there is none that is still valid."""

    current: str = field(repr=False)
    previous: str = field(default="", repr=False)

    @classmethod
    def of(cls, row: Hook | SignalWebhook, *, now: datetime | None = None) -> SecretPair:
        """Open the secrets of a row. Raises SealBroken."""
        opened = SIGNING_SECRETS.unseal(
            row.sealed_secret, keys=master_keys(), tenant_id=row.tenant_id, row_id=row.id
        )
        current, _, previous = opened.raw.decode().partition("\n")
        valid = row.previous_until is not None and (now or timezone.now()) < row.previous_until
        return cls(current=current, previous=previous if valid else "")

    @property
    def valid(self) -> tuple[str, ...]:
        """Return the secrets that are valid, the current one first."""
        return (self.current, self.previous) if self.previous else (self.current,)


def rotate_secret(row: Hook | SignalWebhook, *, new: str, overlap: timedelta) -> None:
    """Store a new secret of a locked row; the one before stays valid for `overlap`, unless it cannot be opened. Raises Invalid."""
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise Invalid(f"the secret before stays valid for 0 to {LONGEST_OVERLAP.days} days, got {overlap}")
    before = _current_secret(row) if overlap else ""
    row.sealed_secret = seal_pair(SecretPair(current=new, previous=before), row=row)
    row.previous_until = timezone.now() + overlap if before else None
    row.save(update_fields=["sealed_secret", "previous_until"])


def _current_secret(row: Hook | SignalWebhook) -> str:
    """Return the secret of a row; empty where it cannot be opened: a new one is the remedy."""
    try:
        return SecretPair.of(row).current
    except SealBroken:
        return ""


def seal_pair(pair: SecretPair, *, row: Hook | SignalWebhook) -> dict[str, Any]:
    """Seal secrets for a row under the current master key."""
    return SIGNING_SECRETS.seal(
        "\n".join(pair.valid), keys=master_keys(), tenant_id=row.tenant_id, row_id=row.id
    )
