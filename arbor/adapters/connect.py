"""Connect a model by its handle, `provider/model`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import SecretStr

from arbor.adapters.anthropic import VERSION, MessagesModel
from arbor.adapters.credentials import OPENAI_BASE_URL, Credentials, is_on_slow_server, ollama_base_url
from arbor.adapters.exchange import ApiEndpoint, KeyAuth
from arbor.adapters.openai import ChatCompletionsModel
from arbor.adapters.reflex import ReflexModel
from arbor.adapters.transport import shared_client
from arbor.errors import ConfigurationInvalid
from arbor.models.breaker import Breakers
from arbor.models.handles import Handle, Provider
from arbor.models.ports import Model
from arbor.models.retry import GuardedModel, RetryPolicy

__all__ = ["Credentials", "connect_model"]

_OPENROUTER = "https://openrouter.ai/api/v1"
_ANTHROPIC = "https://api.anthropic.com"
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"


@dataclass(frozen=True, kw_only=True)
class _Provider:
    """The address, key and adapter of one provider."""

    make: Callable[..., Model]
    #: The path of a request, below the base URL.
    path: str
    #: The base URL; empty when the credentials have none.
    base_url: Callable[[Credentials], str]
    key: Callable[[Credentials], str]
    #: Whether the server at this base URL needs no key.
    keyless: Callable[[Credentials], bool]
    #: The settings that an error names when one is missing or the provider refuses the request.
    settings: str
    auth: Mapping[str, str] | None = None
    #: The path of the list of models, below the base URL.
    models_path: str = "/models"
    #: The path of a request that the provider answers to valid keys only; empty: the list of models is one.
    key_path: str = ""
    headers: Callable[[Credentials], dict[str, str]] = lambda _: {}
    options: Callable[[Credentials], dict[str, Any]] = lambda _: {}


def _openai_options(credentials: Credentials) -> dict[str, Any]:
    """Return the options of OpenAI itself; other servers know the older name of the limit, and perhaps no reasoning."""
    is_openai = not credentials.openai_base_url
    return {"limit": "max_completion_tokens", "quiet": True} if is_openai else {}


def _self_hosted() -> _Provider:
    return _Provider(
        make=ChatCompletionsModel,
        path="/chat/completions",
        base_url=lambda credentials: credentials.openai_base_url,
        key=lambda credentials: credentials.openai_api_key,
        keyless=lambda _: True,
        settings="OPENAI_BASE_URL (it usually ends in /v1)",
    )


_PROVIDERS: Mapping[Provider, _Provider] = {
    Provider.OPENAI: _Provider(
        make=ChatCompletionsModel,
        path="/chat/completions",
        base_url=lambda credentials: credentials.openai_base_url or OPENAI_BASE_URL,
        key=lambda credentials: credentials.openai_api_key,
        keyless=lambda credentials: bool(credentials.openai_base_url),
        settings="OPENAI_API_KEY, or OPENAI_BASE_URL (it usually ends in /v1) for a server of your own",
        headers=lambda credentials: credentials.openai_headers,
        options=_openai_options,
    ),
    Provider.ANTHROPIC: _Provider(
        make=MessagesModel,
        path="/v1/messages",
        base_url=lambda credentials: (
            (credentials.anthropic_base_url or _ANTHROPIC).rstrip("/").removesuffix("/v1")
        ),
        key=lambda credentials: credentials.anthropic_api_key,
        keyless=lambda _: False,
        settings="ANTHROPIC_API_KEY",
        auth={"header": "x-api-key", "prefix": ""},
        models_path="/v1/models?limit=1000",
        headers=lambda _: {"anthropic-version": VERSION},
    ),
    Provider.OPENROUTER: _Provider(
        make=ChatCompletionsModel,
        path="/chat/completions",
        base_url=lambda _: _OPENROUTER,
        key=lambda credentials: credentials.openrouter_api_key,
        keyless=lambda _: False,
        settings="OPENROUTER_API_KEY",
        # Its list of models is public.
        key_path="/key",
    ),
    Provider.GEMINI: _Provider(
        make=ChatCompletionsModel,
        path="/chat/completions",
        base_url=lambda _: _GEMINI,
        key=lambda credentials: credentials.gemini_api_key,
        keyless=lambda _: False,
        settings="GEMINI_API_KEY",
    ),
    Provider.OLLAMA: _Provider(
        make=ChatCompletionsModel,
        path="/chat/completions",
        base_url=lambda credentials: ollama_base_url(credentials.ollama_host),
        key=lambda _: "",
        keyless=lambda _: True,
        settings="OLLAMA_HOST, and that the model is pulled",
    ),
    Provider.VLLM: _self_hosted(),
    Provider.LLAMACPP: _self_hosted(),
}


def connect_model(
    handle: str,
    credentials: Credentials,
    *,
    breakers: Breakers,
    policy: RetryPolicy | None = None,
    client: httpx.Client | None = None,
    advice: str = "",
) -> Model:
    """Return the model of a handle, retried by `policy` behind its provider's breaker; sends no request.

    All models of a process share one HTTP client, unless `client` is given. `advice` replaces the names of the settings in
    errors.
    Raises ConfigurationInvalid for an invalid handle, or one whose provider is not configured.
    """
    parsed = Handle.parse(handle)
    row = _PROVIDERS.get(parsed.provider)
    if row is None:
        return ReflexModel(parsed)
    model = row.make(
        parsed,
        endpoint=_endpoint(row, parsed, credentials, row.path, advice=advice or row.settings),
        client=client or shared_client(),
        **row.options(credentials),
    )
    is_slow = is_on_slow_server(parsed.provider, credentials.openai_base_url)
    breaker = breakers.of(parsed.provider, is_slow=is_slow)
    return GuardedModel(model, breaker=breaker, policy=policy or RetryPolicy())


def list_endpoints(
    provider: Provider, credentials: Credentials, *, advice: str
) -> tuple[ApiEndpoint | None, ApiEndpoint]:
    """Return the endpoint that proves a key, None where the list of models does, and the endpoint of that list.

    Raises ConfigurationInvalid for a provider without a network, and one that is not configured.
    """
    row = _PROVIDERS.get(provider)
    if row is None:
        raise ConfigurationInvalid(f"{provider} needs no key: it calls no model")
    paths = (row.key_path, row.models_path)
    proof, models = (
        _endpoint(row, Handle(provider=provider, model=""), credentials, path, advice=advice)
        for path in paths
    )
    return (proof if row.key_path else None), models


def _endpoint(
    row: _Provider, handle: Handle, credentials: Credentials, path: str, *, advice: str
) -> ApiEndpoint:
    key, base_url = row.key(credentials), row.base_url(credentials)
    if not base_url or not (key or row.keyless(credentials)):
        raise ConfigurationInvalid(f"{str(handle).rstrip('/')} needs {advice}")
    return ApiEndpoint(
        provider=handle.provider,
        url=base_url.rstrip("/") + path,
        auth=KeyAuth(SecretStr(key), **(row.auth or {})) if key else None,
        headers=row.headers(credentials),
        settings=advice,
    )
