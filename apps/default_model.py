"""The default model of the installation, and the credentials that decide it, without a client of any provider."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from django.conf import settings

from arbor.adapters.credentials import Credentials, default_handle


@lru_cache(maxsize=1)
def credentials() -> Credentials:
    """Return the providers' keys and addresses."""
    return Credentials(
        openai_api_key=settings.OPENAI_API_KEY,
        openai_base_url=settings.OPENAI_BASE_URL,
        openai_org_id=settings.OPENAI_ORG_ID,
        openai_project_id=settings.OPENAI_PROJECT_ID,
        openrouter_api_key=settings.OPENROUTER_API_KEY,
        anthropic_api_key=settings.ANTHROPIC_API_KEY,
        anthropic_base_url=settings.ANTHROPIC_BASE_URL,
        gemini_api_key=settings.GEMINI_API_KEY,
        ollama_host=settings.OLLAMA_HOST,
    )


def default_model() -> str:
    """Return the handle of the model for agents without a model of their own; keys withheld from this process count too."""
    return settings.ARBOR_DEFAULT_MODEL or default_handle(with_withheld_keys())


def with_withheld_keys() -> Credentials:
    """Return the installation's credentials, with a placeholder for each key that is withheld from this process."""
    withheld = {name.lower(): "withheld" for name in settings.ARBOR_WITHHELD}
    return replace(credentials(), **withheld)
