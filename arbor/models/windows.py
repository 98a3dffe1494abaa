"""Context windows of models in tokens, prompt and reply together, and their size in estimated tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from arbor.models.handles import Provider
from arbor.models.token_counts import NO_TOKENIZERS, CountTokens, shared_tokenizer

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


#: The bounds of a token ratio: the tokens that a model counts for an estimated one. Beyond them, the report is not believed.
MIN_RATIO = 0.8
MAX_RATIO = 3.0
#: Tokens that a server's template puts around the messages, left free where the other tokens are counted exactly.
TEMPLATE_TOKENS = 64


def bounded_ratio(ratio: float) -> float:
    """Return a token ratio within its bounds; 1 for a ratio that is not finite."""
    return min(max(ratio, MIN_RATIO), MAX_RATIO) if math.isfinite(ratio) else 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptLimits:
    """The window and the longest reply that a prompt must leave room for, in estimated tokens or in those of a tokenizer."""

    window: int
    reply_tokens: int
    #: The name of the models' tokenizer; empty: tokens are estimated.
    tokenizer: str = ""


def prompt_limits(
    handles: Iterable[str],
    *,
    otherwise: int,
    reply_tokens: int,
    ratios: Mapping[str, float],
    tokenizers: Mapping[str, CountTokens] = NO_TOKENIZERS,
) -> PromptLimits:
    """Return the limits of a prompt that fits every one of these models; `ratios` are their token ratios, by handle.

    A tokenizer that all models share counts exactly, so that no ratio applies.
    """
    handles = tuple(handles)
    if tokenizer := shared_tokenizer(handles, tokenizers):
        window = min(window_of(handle, otherwise=otherwise) for handle in handles)
        return PromptLimits(window=window - TEMPLATE_TOKENS, reply_tokens=reply_tokens, tokenizer=tokenizer)
    windows = []
    replies = []
    for handle in handles:
        ratio = bounded_ratio(ratios.get(handle, 1.0))
        windows.append(int(window_of(handle, otherwise=otherwise) / ratio))
        replies.append(math.ceil(reply_tokens / ratio))
    return PromptLimits(window=min(windows), reply_tokens=max(replies))


def window_of(handle: str, *, otherwise: int) -> int:
    """Return a model's window in tokens; `otherwise` for an unknown model, such as a self-hosted one."""
    provider, _, model = handle.partition("/")
    matches = [
        (len(prefix), tokens)
        for (known_provider, prefix), tokens in WINDOWS.items()
        if known_provider == provider and model.startswith(prefix)
    ]
    return max(matches)[1] if matches else otherwise
