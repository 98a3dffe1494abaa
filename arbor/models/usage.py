"""The token counts of a model call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The tokens of one call, as the provider counted them; estimated where a server counts none."""

    #: All tokens of the prompt, those read from or written to the provider's cache included.
    input_tokens: int = 0
    output_tokens: int = 0
    #: The part of the input that was read from the provider's prompt cache.
    cached_tokens: int = 0
    #: The part of the input that was written to the provider's prompt cache.
    cache_write_tokens: int = 0
