"""Store and remove the keys by which a tenant calls providers of models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.calls.models import ProviderKey
from apps.tenants.keys import master_keys
from apps.tenants.scope import current_tenant
from arbor.adapters.credentials import TENANT_PROVIDERS, is_self_hosted, tenant_credentials
from arbor.audit.changes import AuditChange, change_of
from arbor.errors import ConfigurationInvalid, Invalid, NotFound
from arbor.models.handles import Provider
from arbor.models.provider_keys import key_end, seal_provider_key

MAX_KEY_LENGTH = 1_000
MAX_URL_LENGTH = 500


@dataclass(frozen=True, kw_only=True)
class ProviderAccess:
    """A provider, the key and the address that a person entered for it; checked and without blanks around them."""

    provider: Provider
    key: str = field(repr=False)
    base_url: str

    @classmethod
    def of(cls, provider: str, *, key: str = "", base_url: str = "") -> ProviderAccess:
        """Check what a person entered. Raises Invalid, with an error that never quotes the key."""
        key, base_url = key.strip(), base_url.strip().rstrip("/")
        known = [name.value for name in TENANT_PROVIDERS]
        if provider not in known:
            raise Invalid(f"a provider is one of {', '.join(known)}, got {provider!r}")
        access = cls(provider=Provider(provider), key=key, base_url=base_url)
        access._check_address()
        if len(key) > MAX_KEY_LENGTH or not all("!" <= letter <= "~" for letter in key):
            raise Invalid(f"a key has at most {MAX_KEY_LENGTH} printable ASCII characters without spaces")
        if not key and not base_url:
            raise Invalid(f"{provider} needs a key")
        if key and access.provider is Provider.OLLAMA:
            raise Invalid(
                "Ollama takes no key; for a server with one choose openai, with the server's address"
            )
        return access

    def _check_address(self) -> None:
        accepts_address, needs_address = TENANT_PROVIDERS[self.provider]
        if not self.base_url:
            if needs_address:
                raise Invalid(f"{self.provider} needs the address of its server")
            return
        if not accepts_address:
            raise Invalid(
                f"{self.provider} has an address of its own; for another server choose openai, with its address"
            )
        if len(self.base_url) > MAX_URL_LENGTH or not self.base_url.isprintable():
            raise Invalid(f"an address has at most {MAX_URL_LENGTH} printable characters")
        try:
            parts = urlsplit(self.base_url)
            tenant_credentials(self.provider, key="", base_url=self.base_url)
        except (ValueError, ConfigurationInvalid) as error:
            raise Invalid("an address is one such as https://models.example.org/v1") from error
        if parts.username or parts.password or parts.query or parts.fragment:
            raise Invalid(
                "an address has no user, password, query or fragment; the key has a field of its own"
            )
        self._check_network(parts.scheme)

    def _check_network(self, scheme: str) -> None:
        if settings.ARBOR_MODEL_ALLOW_PRIVATE:
            if scheme not in ("http", "https"):
                raise Invalid("an address begins with http:// or https://")
            return
        hint = "who runs the installation allows it by ARBOR_MODEL_ALLOW_PRIVATE=true"
        if scheme != "https":
            raise Invalid(f"an address begins with https://, so that nobody on the way reads the key; {hint}")
        if is_self_hosted(self.base_url):
            raise Invalid(f"the address is in the installation's own network; {hint}")


@transaction.atomic
def store_provider_key(*, access: ProviderAccess, listed: Sequence[str], actor: str) -> ProviderKey:
    """Seal and store a tenant's access to a provider, instead of an earlier one; the calls from now on use it."""
    now = timezone.now()
    sealed = (
        seal_provider_key(
            access.key,
            keys=master_keys(),
            tenant_id=current_tenant(),
            provider=access.provider,
            base_url=access.base_url,
        )
        if access.key
        else {}
    )
    before = ProviderKey.objects.filter(provider=access.provider.value).first()
    row: ProviderKey
    row, is_new = ProviderKey.objects.update_or_create(
        tenant_id=current_tenant(),
        provider=access.provider.value,
        defaults={
            "base_url": access.base_url,
            "sealed_key": sealed,
            "key_end": key_end(access.key),
            "listed": list(listed),
            "checked_at": now,
            "entered_by": actor,
            "entered_at": now,
        },
    )
    message = f"{'entered' if is_new else 'replaced'} the key of {row.provider}"
    _audit(row, actor, message, change_of(_shown(before), _shown(row)))
    return row


@transaction.atomic
def store_listed_models(*, provider: str, listed: Sequence[str]) -> ProviderKey:
    """Store the models that a provider listed now. Raises NotFound."""
    row = _lock_provider_key(provider)
    row.listed, row.checked_at = list(listed), timezone.now()
    row.save(update_fields=["listed", "checked_at"])
    return row


@transaction.atomic
def remove_provider_key(*, provider: str, actor: str) -> ProviderKey:
    """Remove a tenant's access to a provider; calls fall back to the installation's. Raises NotFound."""
    row = _lock_provider_key(provider)
    ProviderKey.objects.filter(id=row.id).delete()
    _audit(row, actor, f"removed the key of {row.provider}", change_of(_shown(row), {}))
    return row


def _lock_provider_key(provider: str) -> ProviderKey:
    """Lock and return the current tenant's access to a provider. Raises NotFound."""
    row: ProviderKey | None = ProviderKey.objects.select_for_update().filter(provider=provider).first()
    if row is None:
        known = ", ".join(ProviderKey.objects.values_list("provider", flat=True)) or "none yet"
        raise NotFound(f"this tenant has no key of {provider!r}; it has: {known}")
    return row


def listed_handles(listed: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the handles of models by the lists of their providers, sorted."""
    return sorted(f"{provider}/{name}" for provider, names in listed for name in names)


def _shown(row: ProviderKey | None) -> dict[str, Any]:
    """Return the values of a key for the audit log, with the time of its entry, so that a new key with the same end differs."""
    return {"base_url": row.base_url, "key_end": row.key_end, "entered_at": row.entered_at} if row else {}


def _audit(row: ProviderKey, actor: str, message: str, change: AuditChange) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        message=message,
        detail={"provider": row.provider, "base_url": row.base_url, "key_end": row.key_end},
        change=change,
    )
