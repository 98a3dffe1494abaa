"""Context windows of well-known models in tokens, prompt and reply together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from arbor.models.handles import Provider

#: Windows by the beginning of a model's name, of which the longest match counts. Sources: the providers' model pages, as of
#: November 2026.
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
    known = [
        (len(name), tokens)
        for (whose, name), tokens in WINDOWS.items()
        if whose == provider and model.startswith(name)
    ]
    return max(known)[1] if known else otherwise
