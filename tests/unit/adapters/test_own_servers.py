"""Self-hosted model servers: recognized by their address, with fewer calls at once and longer deadlines."""

from __future__ import annotations

import pytest

from arbor.adapters.credentials import (
    HOSTED_DEADLINE_S,
    SELF_HOSTED_DEADLINE_S,
    Credentials,
    call_deadline_s,
    calls_at_once,
    is_self_hosted,
)
from arbor.models.handles import Provider
from arbor.models.slots import HOSTED_CALLS, SELF_HOSTED_CALLS, VLLM_CALLS


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8080/v1",
        "http://[::1]/v1",
        "http://192.168.1.9/v1",
        "http://localhost:11434",
        "http://llama:8080/v1",
        "http://gpu.lan/v1",
    ],
)
def test_addresses_of_a_local_network_are_self_hosted(address: str) -> None:
    assert is_self_hosted(address)


@pytest.mark.parametrize("address", ["https://api.example.com/v1", "https://8.8.8.8/v1"])
def test_public_addresses_are_hosted(address: str) -> None:
    assert not is_self_hosted(address)


@pytest.mark.parametrize(
    ("provider", "address", "calls"),
    [
        (Provider.OLLAMA, "", SELF_HOSTED_CALLS),
        (Provider.LLAMACPP, "", SELF_HOSTED_CALLS),
        (Provider.VLLM, "", VLLM_CALLS),
        (Provider.OPENAI, "http://127.0.0.1:8080/v1", SELF_HOSTED_CALLS),
        (Provider.OPENAI, "https://api.example.com/v1", HOSTED_CALLS),
        (Provider.OPENAI, "", HOSTED_CALLS),
        (Provider.ANTHROPIC, "", HOSTED_CALLS),
    ],
)
def test_a_self_hosted_server_gets_fewer_calls_at_once(provider: Provider, address: str, calls: int) -> None:
    assert calls_at_once(provider, Credentials(openai_base_url=address)) == calls


@pytest.mark.parametrize(
    ("handles", "address", "ollama_host", "seconds"),
    [
        ([""], "", "", HOSTED_DEADLINE_S),
        (["anthropic/claude"], "http://127.0.0.1:8080/v1", "", HOSTED_DEADLINE_S),
        (["anthropic/claude", "llamacpp/gemma"], "", "", SELF_HOSTED_DEADLINE_S),
        (["openai/own"], "http://127.0.0.1:8080/v1", "", SELF_HOSTED_DEADLINE_S),
        (["openai/gpt-5"], "", "", HOSTED_DEADLINE_S),
        # The use of the provider reports an invalid address.
        (["openai/own"], "http://[", "", HOSTED_DEADLINE_S),
        (["vllm/own"], "http://127.0.0.1:8080/v1", "", HOSTED_DEADLINE_S),
        ([""], "", "127.0.0.1:11434", SELF_HOSTED_DEADLINE_S),
    ],
)
def test_calls_to_some_self_hosted_servers_have_more_time(
    handles: list[str], address: str, ollama_host: str, seconds: float
) -> None:
    assert call_deadline_s(handles, openai_base_url=address, ollama_host=ollama_host) == seconds
