"""The size of a model's window in estimated tokens."""

from __future__ import annotations

import math

import pytest

from arbor.models.windows import PromptLimits, bounded_ratio, prompt_limits, window_of


@pytest.mark.parametrize(
    ("ratio", "bounded"), [(1.3, 1.3), (0.1, 0.8), (9.0, 3.0), (math.nan, 1.0), (math.inf, 1.0)]
)
def test_a_token_ratio_is_used_within_bounds(ratio: float, bounded: float) -> None:
    assert bounded_ratio(ratio) == bounded


@pytest.mark.parametrize(
    ("handles", "window", "reply"),
    [
        (["ollama/plain"], 8_192, 2_000),
        (["ollama/dense"], 4_096, 1_000),
        (["ollama/loose"], 10_240, 2_500),
        # Each of the models may be asked.
        (["ollama/plain", "ollama/dense"], 4_096, 2_000),
        (["openai/gpt-4o", "ollama/plain"], 8_192, 2_000),
    ],
)
def test_a_prompt_fits_every_model_by_its_own_count(handles: list[str], window: int, reply: int) -> None:
    ratios = {"ollama/dense": 2.0, "ollama/loose": 0.5}

    limits = prompt_limits(handles, otherwise=8_192, reply_tokens=2_000, ratios=ratios)

    assert limits == PromptLimits(window=window, reply_tokens=reply)


@pytest.mark.parametrize(
    ("handle", "tokens"),
    [
        ("anthropic/claude-opus-5-5", 200_000),
        ("openai/gpt-4o-mini", 128_000),
        ("openai/gpt-4.1", 1_000_000),
        ("openai/my-own", 7),
        ("ollama/gpt-4o", 7),
        ("", 7),
    ],
)
def test_a_window_is_that_of_the_model_or_the_setting(handle: str, tokens: int) -> None:
    assert window_of(handle, otherwise=7) == tokens
