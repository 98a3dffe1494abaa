"""Handles of models: a provider and a model."""

from __future__ import annotations

import pytest

from arbor.errors import ConfigurationInvalid, Invalid
from arbor.models.handles import HANDLE_LENGTH, REFLEX_HANDLE, Handle, Provider


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("openai/gpt-6-luna", Provider.OPENAI, "gpt-6-luna"),
        (" ollama/llama3.2:1b ", Provider.OLLAMA, "llama3.2:1b"),
        ("openrouter/meta-llama/llama-3.3-70b", Provider.OPENROUTER, "meta-llama/llama-3.3-70b"),
        ("reflex/policy", Provider.REFLEX, "policy"),
    ],
)
def test_a_handle_is_read_and_written_back(text: str, provider: Provider, model: str) -> None:
    handle = Handle.parse(text)

    assert handle == Handle(provider=provider, model=model)
    assert str(handle) == text.strip()


@pytest.mark.parametrize("text", ["", "gpt-6-luna", "/gpt", "openai/", "openai/gpt 6", "openai /gpt-6"])
def test_an_invalid_handle_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="a model handle is provider/model, for example openai/"):
        Handle.parse(text)


def test_an_invalid_input_is_no_configuration_error() -> None:
    with pytest.raises(Invalid, match="a model handle is provider/model") as refused:
        Handle.parse_input("gpt-6-luna")
    assert not isinstance(refused.value, ConfigurationInvalid)
    assert Handle.parse_input("openai/gpt-6-luna") == Handle.parse("openai/gpt-6-luna")


def test_a_handle_is_no_longer_than_its_columns() -> None:
    longest = f"openai/{'m' * (HANDLE_LENGTH - 7)}"
    assert str(Handle.parse(longest)) == longest
    with pytest.raises(Invalid, match="at most 200 characters, got 201"):
        Handle.parse_input(f"{longest}m")


@pytest.mark.parametrize("model", ["a\0b", "a\u202eb", "a\ud800b"])
def test_a_handle_has_visible_characters_only(model: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="visible characters only"):
        Handle.parse(f"openai/{model}")


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"begins with one of openai, .*reflex; got 'closedai/x'"):
        Handle.parse("closedai/x")


def test_the_reflex_handle_is_read_and_written_back() -> None:
    assert Handle.parse(str(REFLEX_HANDLE)) == REFLEX_HANDLE
