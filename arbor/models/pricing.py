"""Prices of well-known models in USD per million tokens; an unknown price is None, never 0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from arbor.models.handles import Handle, Provider
from arbor.models.usage import Usage

PER_TOKENS = 1_000_000

#: `-2026-04-01`, `-20251001` and `-latest` name a snapshot of the same model at the same price.
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


@dataclass(frozen=True, kw_only=True)
class Price:
    """USD per million tokens, for prompts of up to `prompt_limit` tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal
    cache_write: Decimal
    #: Longer prompts cost more; their price is not known here.
    prompt_limit: int | None = None


def _price(
    input_: str, output: str, cached: str, *, cache_write: str | None = None, prompt_limit: int | None = None
) -> Price:
    return Price(
        input=Decimal(input_),
        output=Decimal(output),
        cached=Decimal(cached),
        cache_write=Decimal(cache_write or input_),
        prompt_limit=prompt_limit,
    )


#: Sources: developers.openai.com/api/docs/pricing and platform.claude.com/docs/en/about-claude/pricing,
#: the standard tier, as of November 2026. Anthropic's cache writes are those of five minutes.
PRICES: Mapping[tuple[Provider, str], Price] = {
    (Provider.OPENAI, "gpt-6-sol"): _price("2", "10", "0.20", cache_write="2.50", prompt_limit=272_000),
    (Provider.OPENAI, "gpt-6-luna"): _price(
        "0.10", "0.50", "0.01", cache_write="0.125", prompt_limit=272_000
    ),
    (Provider.OPENAI, "gpt-5.5"): _price("5", "30", "0.50", prompt_limit=270_000),
    (Provider.OPENAI, "gpt-5.4"): _price("2.50", "15", "0.25", prompt_limit=270_000),
    (Provider.OPENAI, "gpt-5.4-mini"): _price("0.75", "4.50", "0.075", prompt_limit=270_000),
    (Provider.OPENAI, "gpt-5.4-nano"): _price("0.20", "1.25", "0.02", prompt_limit=270_000),
    (Provider.OPENAI, "gpt-4.1"): _price("2", "8", "0.50"),
    (Provider.OPENAI, "gpt-4.1-mini"): _price("0.40", "1.60", "0.10"),
    (Provider.OPENAI, "gpt-4.1-nano"): _price("0.10", "0.40", "0.025"),
    (Provider.OPENAI, "gpt-4o"): _price("2.50", "10", "1.25"),
    (Provider.OPENAI, "gpt-4o-mini"): _price("0.15", "0.60", "0.075"),
    (Provider.ANTHROPIC, "claude-fable-5-1"): _price("10", "50", "0.25", cache_write="12.50"),
    (Provider.ANTHROPIC, "claude-opus-5-5"): _price("4", "20", "0.20", cache_write="5"),
    (Provider.ANTHROPIC, "claude-opus-5"): _price("5", "25", "0.50", cache_write="6.25"),
    (Provider.ANTHROPIC, "claude-opus-4-8"): _price("5", "25", "0.50", cache_write="6.25"),
    (Provider.ANTHROPIC, "claude-sonnet-5-5"): _price("2", "10", "0.10", cache_write="2.50"),
    (Provider.ANTHROPIC, "claude-sonnet-4-6"): _price("3", "15", "0.30", cache_write="3.75"),
    (Provider.ANTHROPIC, "claude-haiku-5-5"): _price(
        "0.10", "0.50", "0.01", cache_write="0.125", prompt_limit=100_000
    ),
    (Provider.ANTHROPIC, "claude-haiku-4-5"): _price("1", "5", "0.10", cache_write="1.25"),
}


def cost_usd(handle: Handle, usage: Usage) -> Decimal | None:
    """Compute the cost of a call, or None when the price is not known."""
    if handle.provider is Provider.REFLEX:
        return Decimal(0)
    price = PRICES.get((handle.provider, _SNAPSHOT.sub("", handle.model)))
    if price is None or (price.prompt_limit is not None and usage.input_tokens > price.prompt_limit):
        return None
    uncached = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens)
    total = (
        uncached * price.input
        + usage.cached_tokens * price.cached
        + usage.cache_write_tokens * price.cache_write
        + usage.output_tokens * price.output
    )
    return total / PER_TOKENS
