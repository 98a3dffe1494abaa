"""Settings that are lists of NAME=VALUE: each name once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from arbor.authority.modes import parse_model_limits
from arbor.errors import ConfigurationInvalid
from arbor.heartbeat.tiers import parse_tier_models
from arbor.memory.forgetting import parse_quotas
from arbor.memory.maintenance.health import parse_limits
from arbor.memory.recall.weights import parse_weights
from arbor.models.slots import parse_provider_calls
from arbor.models.token_counts import parse_tokenizers


@pytest.mark.parametrize(
    ("parse", "entry"),
    [
        (parse_provider_calls, "ollama=2"),
        (parse_tokenizers, f"ollama={__file__}"),
        (parse_tier_models, "reflex=ollama/llama3.2"),
        (parse_model_limits, "ollama=cautious"),
        (parse_quotas, "semantic=2000"),
        (parse_limits, "expired=60:120"),
        (parse_weights, "words=1"),
    ],
)
def test_a_repeated_name_is_refused(parse: Callable[[str], object], entry: str) -> None:
    assert parse(entry)
    with pytest.raises(ConfigurationInvalid, match=r"ARBOR_\w+ names \w+ twice"):
        parse(f"{entry}, {entry}")
