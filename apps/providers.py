"""Model providers of this process, created from the settings once."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from django.conf import settings

from arbor.adapters.connect import Credentials, connect_model, default_handle
from arbor.adapters.credentials import calls_at_once
from arbor.models.breaker import Breakers
from arbor.models.handles import Provider
from arbor.models.ports import Model
from arbor.models.slots import ProviderSlots, Slots

#: Shared by all threads of the process.
_breakers = Breakers()


@lru_cache(maxsize=1)
def credentials() -> Credentials:
    """Return the providers' keys and addresses."""
    return Credentials(
        openai_api_key=settings.OPENAI_API_KEY,
        openai_base_url=settings.OPENAI_BASE_URL,
        openrouter_api_key=settings.OPENROUTER_API_KEY,
        anthropic_api_key=settings.ANTHROPIC_API_KEY,
        anthropic_base_url=settings.ANTHROPIC_BASE_URL,
        ollama_host=settings.OLLAMA_HOST,
    )


def default_model() -> str:
    """Return the handle of the model for agents without one of their own; a key withheld from this process counts."""
    return settings.ARBOR_DEFAULT_MODEL or default_handle(_with_withheld_keys())


def _with_withheld_keys() -> Credentials:
    withheld = {name.lower(): "withheld" for name in settings.ARBOR_WITHHELD}
    return replace(credentials(), **withheld)


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
