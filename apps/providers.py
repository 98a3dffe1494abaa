"""Model providers of this process: the installation's, created from the settings once, and those of tenants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from uuid import UUID

import httpx
import structlog
from django.conf import settings

from apps.default_model import credentials, with_withheld_keys
from apps.tenants.keys import master_keys
from arbor.adapters.connect import connect_model
from arbor.adapters.credentials import Credentials, calls_at_once, tenant_credentials
from arbor.adapters.token_counts import load_counter
from arbor.adapters.transport import public_client, shared_client
from arbor.errors import ConfigurationInvalid
from arbor.models.breaker import Breakers
from arbor.models.handles import Provider
from arbor.models.ports import Model
from arbor.models.provider_keys import unseal_provider_key
from arbor.models.slots import ProviderSlots, Slots
from arbor.models.token_counts import NO_TOKENIZERS, CountTokens

log = structlog.get_logger(__name__)

#: Shared by all threads of the process.
_breakers = Breakers()


def calls_limit(provider: Provider) -> int:
    """Return how many calls a process sends to a provider at once."""
    return settings.ARBOR_PROVIDER_CALLS.get(provider) or calls_at_once(provider, credentials())


#: Shared by all threads of the process.
provider_slots = ProviderSlots(calls_limit)


def slots_for(handle: str) -> Slots | None:
    """Return the slots of a handle's provider; None where nothing is sent to one."""
    name = handle.partition("/")[0]
    if name not in set(Provider) or name == Provider.REFLEX:
        return None
    return provider_slots.of(Provider(name))


@lru_cache(maxsize=64)
def model_for(handle: str) -> Model:
    """Return the model; raises ConfigurationInvalid for a handle whose provider is not known or has no key."""
    return connect_model(handle, credentials(), breakers=_breakers)


def installation_has(handle: str) -> bool:
    """Return whether the installation can call a model without a tenant's key; a key withheld from this process counts."""
    try:
        connect_model(handle, with_withheld_keys(), breakers=Breakers())
    except ConfigurationInvalid:
        return False
    return True


def token_counters() -> Mapping[str, CountTokens]:
    """Return the configured tokenizers by provider or beginning of a handle, loaded once in a process.

    A tokenizer that cannot be loaded is left out: tokens are then estimated, and `arbor doctor` names the error.
    """
    files: Mapping[str, Path] = settings.ARBOR_TOKENIZERS
    return _token_counters(tuple(files.items())) if files else NO_TOKENIZERS


@lru_cache(maxsize=8)
def _token_counters(files: tuple[tuple[str, Path], ...]) -> Mapping[str, CountTokens]:
    loaded: dict[str, CountTokens] = {}
    # Two names of one file share its tokenizer.
    of_file: dict[Path, CountTokens] = {}
    for name, file in files:
        try:
            loaded[name] = of_file[file] = of_file.get(file) or load_counter(file)
        except ConfigurationInvalid as error:
            log.warning("tokenizer_load_failed", models=name, error=str(error))
    return loaded


# --- Tenants' own providers -----------------------------------------------------------------------------

#: The most models of tenants' providers that a process caches, and the most of their breakers and slots.
_TENANT_PROVIDERS_CACHED = 512
#: The place of tenants' keys, as errors name it.
ADVICE = "the key and the address on the page Models of the tenant"


@dataclass(frozen=True, kw_only=True)
class TenantProvider:
    """A tenant's own access to a provider, with its key still sealed."""

    tenant_id: UUID
    provider: Provider
    base_url: str
    #: The sealed record as JSON text; `{}` for a server without a key.
    sealed_key: str = field(repr=False)


def client_for(base_url: str) -> httpx.Client:
    """Return the client of a tenant's provider: at an address that a tenant entered, public servers only, by default."""
    return public_client() if base_url and not settings.ARBOR_MODEL_ALLOW_PRIVATE else shared_client()


@lru_cache(maxsize=_TENANT_PROVIDERS_CACHED)
def tenant_model(handle: str, own: TenantProvider) -> Model:
    """Return a model that is called by a tenant's own key. Raises SealBroken, and ConfigurationInvalid for the handle.

    Cached by the sealed key: a new one makes another model, and a removed one is no longer looked up.
    """
    return connect_model(
        handle,
        credentials_of(own),
        breakers=_tenant_breakers(own),
        client=client_for(own.base_url),
        advice=ADVICE,
    )


@lru_cache(maxsize=_TENANT_PROVIDERS_CACHED)
def tenant_slots(own: TenantProvider) -> Slots:
    """Return the slots of a tenant's provider: tenants neither share them nor wait for each other."""
    limit = settings.ARBOR_PROVIDER_CALLS.get(own.provider)
    bare = tenant_credentials(own.provider, key="", base_url=own.base_url)
    return Slots(limit or calls_at_once(own.provider, bare))


@lru_cache(maxsize=_TENANT_PROVIDERS_CACHED)
def _tenant_breakers(_own: TenantProvider) -> Breakers:
    # Not shared between tenants: a server that fails for one of them may be another tenant's working one.
    return Breakers()


def credentials_of(own: TenantProvider) -> Credentials:
    """Return the credentials of a tenant's provider, its key opened. Raises SealBroken."""
    sealed = json.loads(own.sealed_key)
    key = ""
    if sealed:
        opened = unseal_provider_key(
            sealed,
            keys=master_keys(),
            tenant_id=own.tenant_id,
            provider=own.provider,
            base_url=own.base_url,
        )
        key = opened.raw.decode()
    return tenant_credentials(own.provider, key=key, base_url=own.base_url)
