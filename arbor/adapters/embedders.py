"""Connect an embedder by its name in the settings."""

from __future__ import annotations

import httpx
from pydantic import SecretStr

from arbor.adapters.credentials import OPENAI_BASE_URL, Credentials
from arbor.adapters.embedding_http import openai_embedder, tei_embedder
from arbor.adapters.exchange import ApiEndpoint, KeyAuth
from arbor.adapters.transport import shared_client
from arbor.adapters.wordllama import DIMENSIONS, WordLlamaEmbedder
from arbor.embedding.ports import Embedder
from arbor.errors import ConfigurationInvalid


def connect_embedder(
    name: str,
    credentials: Credentials,
    *,
    dimension: int,
    url: str = "",
    client: httpx.Client | None = None,
) -> Embedder:
    """Return the embedder of a name: `wordllama`, `openai/<model>` or `tei/<model>`; sends no request.

    `url` is the server's address, for OpenAI's protocol with its `/v1`. Raises ConfigurationInvalid.
    """
    kind, _, model = name.partition("/")
    if kind == "wordllama" and not model:
        if dimension not in DIMENSIONS:
            raise ConfigurationInvalid(
                f"the dimension must be {', '.join(map(str, DIMENSIONS))} for wordllama, got {dimension}"
            )
        return WordLlamaEmbedder(dimension)
    if kind == "openai" and model:
        endpoint = _openai_endpoint(name, credentials, url)
        return openai_embedder(
            name=model, dimension=dimension, endpoint=endpoint, client=client or shared_client()
        )
    if kind == "tei" and model:
        if not url:
            raise ConfigurationInvalid(
                f"{name} needs its server's address: ARBOR_EMBEDDING_URL, or, beside another model, ARBOR_EMBEDDING_URLS"
            )
        endpoint = ApiEndpoint(
            provider="tei",
            url=f"{url.rstrip('/')}/embed",
            settings="ARBOR_EMBEDDING_URL, or, beside another model, ARBOR_EMBEDDING_URLS",
        )
        return tei_embedder(
            name=model, dimension=dimension, endpoint=endpoint, client=client or shared_client()
        )
    raise ConfigurationInvalid(
        f"an embedding model is wordllama, openai/<model> or tei/<model>, got {name!r}"
    )


def _openai_endpoint(name: str, credentials: Credentials, url: str) -> ApiEndpoint:
    base_url = url or credentials.openai_base_url
    if not base_url and not credentials.openai_api_key:
        raise ConfigurationInvalid(
            f"{name} needs OPENAI_API_KEY, or ARBOR_EMBEDDING_URL (beside another model: ARBOR_EMBEDDING_URLS) for another"
            " server"
        )
    key = credentials.openai_api_key
    return ApiEndpoint(
        provider="openai",
        url=f"{(base_url or OPENAI_BASE_URL).rstrip('/')}/embeddings",
        auth=KeyAuth(SecretStr(key)) if key else None,
        headers=credentials.openai_headers,
        settings="OPENAI_API_KEY, ARBOR_EMBEDDING_URL (beside another model: ARBOR_EMBEDDING_URLS) and the model's name",
    )
