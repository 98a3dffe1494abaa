"""Connections from settings to models."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx
import pytest

from arbor.adapters.connect import Credentials, connect_model
from arbor.adapters.credentials import default_handle, ollama_base_url
from arbor.errors import ConfigurationInvalid, ModelUnavailable
from arbor.models.breaker import Breakers, BreakerState
from arbor.models.handles import Provider
from arbor.models.ports import Model
from arbor.models.retry import RetryPolicy
from tests.unit.adapters.openai_server import Recorder, error, request_with, success

ALL = Credentials(
    openai_api_key="sk-openai-secret",
    openai_org_id="org-1",
    openai_project_id="proj-1",
    openrouter_api_key="sk-or-secret",
    anthropic_api_key="sk-ant-secret",
    gemini_api_key="sk-gem-secret",
    ollama_host="gpu.test:9999",
)


def connect_to(
    handle: str, credentials: Credentials, server: Recorder, breakers: Breakers | None = None
) -> Model:
    return connect_model(
        handle,
        credentials,
        breakers=breakers or Breakers(),
        policy=RetryPolicy(attempts=1),
        client=httpx.Client(transport=httpx.MockTransport(server)),
    )


def request_to(handle: str, credentials: Credentials = ALL) -> httpx.Request:
    """Return the request that the provider of this handle gets."""
    answer = success() | {"content": [{"type": "text", "text": "{}"}]}
    server = Recorder(httpx.Response(200, json=answer))
    connect_to(handle, credentials, server).complete(request_with(), deadline_s=10)
    return server.requests[0]


OWN = replace(ALL, openai_base_url="http://127.0.0.1:8080/v1/", openai_api_key="")


@pytest.mark.parametrize(
    ("handle", "credentials", "url", "key"),
    [
        ("openai/gpt-6-luna", ALL, "https://api.openai.com/v1/chat/completions", "Bearer sk-openai-secret"),
        ("openai/any", OWN, "http://127.0.0.1:8080/v1/chat/completions", None),
        ("vllm/meta/llama", OWN, "http://127.0.0.1:8080/v1/chat/completions", None),
        (
            "llamacpp/gemma",
            replace(OWN, openai_api_key="k"),
            "http://127.0.0.1:8080/v1/chat/completions",
            "Bearer k",
        ),
        ("openrouter/a/b", ALL, "https://openrouter.ai/api/v1/chat/completions", "Bearer sk-or-secret"),
        (
            "gemini/gemini-flash-latest",
            ALL,
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
            "Bearer sk-gem-secret",
        ),
        ("ollama/llama3.2", ALL, "http://gpu.test:9999/v1/chat/completions", None),
        ("ollama/llama3.2", Credentials(), "http://127.0.0.1:11434/v1/chat/completions", None),
    ],
)
def test_each_provider_is_called_at_its_url_with_its_own_key(
    handle: str, credentials: Credentials, url: str, key: str | None
) -> None:
    request = request_to(handle, credentials)

    assert (str(request.url), request.headers.get("authorization")) == (url, key)
    assert json.loads(request.content)["model"] == handle.partition("/")[2]


@pytest.mark.parametrize("base_url", ["", "https://gateway.test", "https://gateway.test/v1/"])
def test_anthropic_is_called_with_its_own_header(base_url: str) -> None:
    request = request_to("anthropic/claude-haiku-4-5", replace(ALL, anthropic_base_url=base_url))

    host = "gateway.test" if base_url else "api.anthropic.com"
    assert str(request.url) == f"https://{host}/v1/messages"
    assert request.headers["x-api-key"] == "sk-ant-secret"
    assert "authorization" not in request.headers


def test_openai_and_compatible_servers_get_different_parameters() -> None:
    hosted, compatible = request_to("openai/gpt-6-luna"), request_to("openai/any", OWN)

    assert hosted.headers["openai-organization"] == "org-1"
    assert hosted.headers["openai-project"] == "proj-1"
    assert {"max_completion_tokens", "reasoning_effort"} <= set(json.loads(hosted.content))
    assert "max_tokens" in json.loads(compatible.content)
    assert "reasoning_effort" not in json.loads(compatible.content)


@pytest.mark.parametrize(
    ("handle", "words"),
    [
        ("openai/gpt-6-luna", "openai/gpt-6-luna needs OPENAI_API_KEY, or OPENAI_BASE_URL"),
        ("anthropic/claude-haiku-5-5", "needs ANTHROPIC_API_KEY"),
        ("openrouter/a/b", "needs OPENROUTER_API_KEY"),
        ("gemini/gemini-flash-latest", "needs GEMINI_API_KEY"),
        ("vllm/llama", "needs OPENAI_BASE_URL"),
        ("llamacpp/gemma", "needs OPENAI_BASE_URL"),
        ("nonsense", "a model handle is provider/model"),
    ],
)
def test_a_handle_that_cannot_be_connected_is_refused(handle: str, words: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=words):
        connect_model(handle, Credentials(), breakers=Breakers())


@pytest.mark.parametrize(
    ("credentials", "handle"),
    [
        (Credentials(), "reflex/policy"),
        (ALL, "openai/gpt-6-luna"),
        (Credentials(anthropic_api_key="k", ollama_host="localhost"), "anthropic/claude-haiku-5-5"),
        (Credentials(openrouter_api_key="k"), "openrouter/openai/gpt-6-luna"),
        (Credentials(gemini_api_key="k"), "gemini/gemini-flash-latest"),
        (Credentials(openai_base_url="http://localhost:8080/v1", ollama_host="localhost"), "openai/default"),
        (Credentials(ollama_host="localhost"), "ollama/llama3.2"),
        (replace(ALL, openai_base_url="http://localhost:8080/v1"), "openai/default"),
        (replace(ALL, openai_base_url="https://models.example/v1"), "openai/default"),
        (replace(ALL, openai_base_url="https://eu.api.openai.com/v1"), "openai/gpt-6-luna"),
    ],
)
def test_the_default_is_the_first_configured_provider_or_reflex(
    credentials: Credentials, handle: str
) -> None:
    assert default_handle(credentials) == handle
    assert connect_model(handle, credentials, breakers=Breakers()).handle == handle


def test_every_provider_can_be_connected() -> None:
    everything = replace(ALL, openai_base_url="http://127.0.0.1:8080/v1")

    for provider in Provider:
        assert connect_model(f"{provider}/x", everything, breakers=Breakers()).handle == f"{provider}/x"


def test_models_of_one_provider_share_its_breaker() -> None:
    breakers = Breakers()
    server = Recorder(error(500))
    for name in ("a", "b", "c"):
        with pytest.raises(ModelUnavailable):
            connect_to(f"openai/{name}", ALL, server, breakers).complete(request_with(None), deadline_s=10)

    with pytest.raises(ModelUnavailable, match="is not called"):
        connect_to("openai/d", ALL, server, breakers).complete(request_with(None), deadline_s=10)
    assert breakers.of("openai").state is BreakerState.OPEN
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("localhost", "http://localhost:11434/v1"),
        ("0.0.0.0:9000", "http://127.0.0.1:9000/v1"),
        ("http://gpu.test:9000/", "http://gpu.test:9000/v1"),
        ("https://ollama.test", "https://ollama.test:443/v1"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
        ("[::1]:9000", "http://[::1]:9000/v1"),
    ],
)
def test_the_host_of_ollama_is_parsed_as_ollama_parses_it(host: str, url: str) -> None:
    assert ollama_base_url(host) == url


def test_credentials_show_their_names_and_never_their_values() -> None:
    shown = repr(ALL)

    assert shown == (
        "Credentials(given: openai_api_key, openai_org_id, openai_project_id, openrouter_api_key, "
        "anthropic_api_key, gemini_api_key, ollama_host)"
    )
    assert repr(Credentials()) == "Credentials(given: none)"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"openai_api_key": "sk-secret\n"}, "OPENAI_API_KEY must be printable ASCII"),
        ({"anthropic_api_key": "sk secret"}, "ANTHROPIC_API_KEY must be printable ASCII"),
        ({"openrouter_api_key": "sk-secrét"}, "OPENROUTER_API_KEY must be printable ASCII"),
        ({"openai_base_url": "localhost:8080/v1"}, "OPENAI_BASE_URL must be an http:// or https:// address"),
        ({"anthropic_base_url": "http://"}, "ANTHROPIC_BASE_URL must be"),
        (
            {"openai_base_url": "http://secret.test:99999/v1"},
            "OPENAI_BASE_URL must be .* a port from 1 to 65535",
        ),
        (
            {"openai_base_url": "http://secret.test:port/v1"},
            "OPENAI_BASE_URL must be .* a port from 1 to 65535",
        ),
        ({"ollama_host": "localhost:port"}, "OLLAMA_HOST must be host:port .* a port from 1 to 65535"),
        ({"ollama_host": "ftp://secret.test"}, "OLLAMA_HOST must be host:port"),
    ],
)
def test_unusable_credentials_are_refused_without_being_quoted(values: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=words) as failure:
        Credentials(**values)

    assert "secr" not in str(failure.value)
