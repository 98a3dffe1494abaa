"""Costs of model calls: exact or unknown."""

from __future__ import annotations

from decimal import Decimal

import pytest

from arbor.models.handles import REFLEX_HANDLE, Handle
from arbor.models.pricing import PRICES, cost_usd
from arbor.models.usage import Usage

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("handle", "usage", "cost"),
    [
        ("openai/gpt-4o-mini", Usage(input_tokens=MILLION), "0.15"),
        ("openai/gpt-4o-mini", Usage(input_tokens=MILLION, cached_tokens=MILLION), "0.075"),
        ("openai/gpt-4o-mini-2024-07-18", Usage(output_tokens=MILLION), "0.60"),
        ("openai/gpt-4o-mini", Usage(input_tokens=1000, output_tokens=500, cached_tokens=600), "0.000405"),
        ("anthropic/claude-haiku-4-5-20251001", Usage(input_tokens=MILLION, cache_write_tokens=MILLION), "1.25"),
        ("anthropic/claude-sonnet-5-5", Usage(input_tokens=3000, cached_tokens=1000, cache_write_tokens=1000,
                                              output_tokens=100), "0.0056"),
    ],
)  # fmt: skip
def test_a_call_costs_what_its_tokens_cost(handle: str, usage: Usage, cost: str) -> None:
    assert cost_usd(Handle.parse(handle), usage) == Decimal(cost)


@pytest.mark.parametrize(
    "handle", ["openai/gpt-99", "ollama/llama3.2", "vllm/gpt-4o-mini", "openrouter/openai/gpt-4o"]
)
def test_an_unknown_price_is_none_and_not_zero(handle: str) -> None:
    assert cost_usd(Handle.parse(handle), Usage(input_tokens=1)) is None


def test_a_prompt_beyond_the_listed_tariff_has_no_known_price() -> None:
    handle = Handle.parse("anthropic/claude-haiku-5-5")

    assert cost_usd(handle, Usage(input_tokens=100_000)) == Decimal("0.01")
    assert cost_usd(handle, Usage(input_tokens=100_001)) is None


def test_reflex_is_free() -> None:
    assert cost_usd(REFLEX_HANDLE, Usage()) == 0


def test_cached_tokens_cost_less_than_input_and_input_than_output() -> None:
    assert all(0 < price.cached < price.input < price.output for price in PRICES.values())
