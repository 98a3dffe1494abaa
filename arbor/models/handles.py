"""Handles: the names `provider/model` in settings, templates and the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from arbor.errors import ConfigurationInvalid, Invalid

#: The most characters of a handle, which columns store.
HANDLE_LENGTH = 200


class Provider(StrEnum):
    """The providers of models."""

    #: OpenAI, or any server that speaks its protocol, at OPENAI_BASE_URL.
    OPENAI = "openai"
    #: Anthropic's Messages API.
    ANTHROPIC = "anthropic"
    #: OpenRouter, which sells many providers' models.
    OPENROUTER = "openrouter"
    #: Google's Gemini, by its OpenAI-compatible API.
    GEMINI = "gemini"
    #: A local Ollama.
    OLLAMA = "ollama"
    #: A vLLM server at OPENAI_BASE_URL.
    VLLM = "vllm"
    #: A llama.cpp server at OPENAI_BASE_URL.
    LLAMACPP = "llamacpp"
    #: The built-in reflex policy: rules, no model, no network.
    REFLEX = "reflex"


@dataclass(frozen=True, kw_only=True)
class Handle:
    """A model's provider and name."""

    provider: Provider
    model: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `provider/model`; the model's own name may contain further slashes.

        Raises ConfigurationInvalid.
        """
        provider, slash, model = text.strip().partition("/")
        if not slash or not provider or not model or any(character.isspace() for character in text.strip()):
            raise ConfigurationInvalid(
                f"a model handle is provider/model, for example openai/gpt-6-luna or ollama/llama3.2; got {text!r}"
            )
        if provider not in Provider:
            known = ", ".join(Provider)
            raise ConfigurationInvalid(f"a model handle begins with one of {known}; got {text!r}")
        if len(text.strip()) > HANDLE_LENGTH:
            raise ConfigurationInvalid(
                f"a model handle has at most {HANDLE_LENGTH} characters, got {len(text.strip())}"
            )
        if not model.isprintable():
            raise ConfigurationInvalid(f"a model handle has visible characters only, got {text!r}")
        return cls(provider=Provider(provider), model=model)

    @classmethod
    def parse_input(cls, text: str) -> Self:
        """Parse a handle that a person or a program gives. Raises Invalid, because no setting is wrong."""
        try:
            return cls.parse(text)
        except ConfigurationInvalid as error:
            raise Invalid(str(error)) from error

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


#: The handle of the reflex policy, used when nothing else is configured.
REFLEX_HANDLE = Handle(provider=Provider.REFLEX, model="policy")


def is_reflex(handle: str) -> bool:
    """Return whether a handle names the reflex policy, which needs no model, no key and no network."""
    return handle.startswith(f"{Provider.REFLEX}/")
