"""`arbor recall --episodes`: whole episodes, each with what its score is made of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Arbor


@pytest.fixture
def vega(arbor: Arbor, one_tenant: str, tmp_path: Path) -> str:
    """Return the name of an agent that remembers two talks."""
    assert arbor("agent", "create", "Vega", "--template", "Scout").code == 0
    for name, texts in {
        "garden": ("Nora planted a quince.", "It blooms."),
        "boat": ("The boat leaks.",),
    }.items():
        talk = tmp_path / f"{name}.jsonl"
        talk.write_text("".join(json.dumps({"role": "user", "content": text}) + "\n" for text in texts))
        assert arbor("memory", "ingest", str(talk), "--agent", "Vega").code == 0
    return "Vega"


def test_the_episode_that_a_query_is_about_comes_first(arbor: Arbor, vega: str) -> None:
    recalled = arbor("recall", vega, "the quince that Nora planted", "--episodes", "--json").json
    best = recalled["episodes"][0]
    assert "garden" in best["session"]
    assert best["memories"] == 2
    assert best["score"] == pytest.approx(sum(best["terms"].values()), abs=0.001)
    shown = arbor("recall", vega, "quince", "--episodes", "-k", "1").out
    assert "not summarized yet" in shown
    assert "words" in shown


def test_an_agent_without_episodes_says_so(arbor: Arbor, one_tenant: str) -> None:
    assert arbor("agent", "create", "Altair", "--template", "Scout").code == 0
    ran = arbor("recall", "Altair", "quince", "--episodes")
    assert (ran.code, "has no episode yet" in ran.out) == (0, True)
    assert arbor("recall", "Altair", " ", "--episodes").code == 1
