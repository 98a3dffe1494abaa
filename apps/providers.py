"""Model providers of this process, created from the settings once."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from arbor.adapters.connect import Credentials, connect_model, default_handle
from arbor.models.breaker import Breakers
from arbor.models.ports import Model

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
    """Return the handle of the model for agents without one of their own."""
    return settings.ARBOR_DEFAULT_MODEL or default_handle(credentials())


@lru_cache(maxsize=64)
def model_for(handle: str) -> Model:
    """Return the model; raises ConfigurationInvalid for a handle whose provider is not known or has no key."""
    return connect_model(handle, credentials(), breakers=_breakers)
