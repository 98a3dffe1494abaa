"""Context windows of well-known models in tokens, prompt and reply together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from arbor.models.handles import Provider

#: Windows in tokens, by provider and prefix of the model's name; the longest matching prefix applies. Sources: the providers'
#: model pages, as of November 2026.
WINDOWS: Mapping[tuple[Provider, str], int] = MappingProxyType(
    {
        (Provider.OPENAI, "gpt-6"): 1_000_000,
        (Provider.OPENAI, "gpt-5"): 400_000,
        (Provider.OPENAI, "gpt-4.1"): 1_000_000,
        (Provider.OPENAI, "gpt-4o"): 128_000,
        (Provider.ANTHROPIC, "claude-"): 200_000,
    }
)


def window_of(handle: str, *, otherwise: int) -> int:
    """Return a model's window in tokens; `otherwise` for an unknown model, such as a self-hosted one."""
    provider, _, model = handle.partition("/")
    matches = [
        (len(prefix), tokens)
        for (known_provider, prefix), tokens in WINDOWS.items()
        if known_provider == provider and model.startswith(prefix)
    ]
    return max(matches)[1] if matches else otherwise
