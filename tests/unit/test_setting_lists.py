"""Settings that are lists of NAME=VALUE."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.heartbeat.tiers import parse_tier_models
from arbor.memory.forgetting import parse_quotas
from arbor.memory.maintenance.health import parse_limits
from arbor.models.slots import parse_provider_calls


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_provider_calls, "ollama=2, ollama=3"),
        (parse_tier_models, "standard=ollama/a,standard=ollama/b"),
        (parse_quotas, "semantic=20,semantic=30"),
        (parse_limits, "expired=1:2,expired=2:3"),
    ],
)
def test_a_name_that_is_given_twice_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=f"a setting names .* twice: '{text}'"):
        parse(text)
