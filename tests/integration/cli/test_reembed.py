"""`arbor memory reembed`."""

from __future__ import annotations

import pytest

from apps.memories.services.embedding import reembed
from tests.integration.cli.conftest import Arbor


@pytest.fixture
def arbor_with_memories(arbor: Arbor, two_tenants: tuple[str, str]) -> Arbor:
    """Return the command line of an installation with three agents in two tenants that have memories."""
    for name, tenant in (("Vega", "acme"), ("Deneb", "acme"), ("Altair", "globex")):
        assert arbor("agent", "create", name, "--template", "Scout", "--tenant", tenant).code == 0
        for text in ("The harbour is full.", "The cook sleeps."):
            assert arbor("remember", name, text, "--tenant", tenant).code == 0
    return arbor


def test_agents_are_moved_by_name_by_tenant_and_all(arbor_with_memories: Arbor) -> None:
    to = ("--to", "wordllama", "--dimension", "64", "--json")
    (vega,) = arbor_with_memories("memory", "reembed", *to, "--agent", "Vega", "--tenant", "acme").json[
        "agents"
    ]
    assert (vega["agent"], vega["from"]) == ("Vega", {"model": "wordllama", "dimension": 256})
    # The memories that the test stored, and those of the template.
    assert vega["memories"] > 2
    assert {
        agent["agent"]
        for agent in arbor_with_memories("memory", "reembed", *to, "--tenant", "acme").json["agents"]
    } == {"Deneb"}
    moved = arbor_with_memories("memory", "reembed", *to).json
    assert (moved["dimension"], moved["memories"]) == (64, vega["memories"])
    assert [agent["tenant"] for agent in moved["agents"]] == ["globex"]
    assert arbor_with_memories("memory", "reembed", *to).json["agents"] == []
    recalled = arbor_with_memories("recall", "Vega", "who is asleep?", "--tenant", "acme")
    assert recalled.code == 0
    assert "cook" in recalled.out
    saved = arbor_with_memories("seed", "list", "--tenant", "acme", "--json").json["seeds"]
    assert {(seed["name"], seed["reason"]) for seed in saved} == {("Vega", "reembed"), ("Deneb", "reembed")}
    assert arbor_with_memories("memory", "reembed", "--tenant", "acme", "--no-seed").code == 0
    assert len(arbor_with_memories("seed", "list", "--tenant", "acme", "--json").json["seeds"]) == 2


def test_without_options_all_move_to_the_model_of_the_settings(arbor_with_memories: Arbor) -> None:
    ran = arbor_with_memories("memory", "reembed")
    assert (ran.code, ran.out.strip()) == (0, "Every agent's vectors are of wordllama of 256 dimensions.")
    assert arbor_with_memories("memory", "reembed", "--dimension", "128").code == 0
    ran = arbor_with_memories("memory", "reembed")
    assert ran.code == 0
    assert "Moved to wordllama of 256 dimensions" in ran.out
    assert "wordllama of 128 dimensions" in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--dimension", "1025"], 1, "must be at most 1024, got 1025"),
        (["--dimension", "100"], 1, "the dimension must be 64, 128, 256 for wordllama, got 100"),
        (["--dimension", "0"], 2, "0 is not in the range x>=1"),
        (["--to", "tei/bge-small"], 1, "needs its server's address"),
        (["--to", "nonsense"], 1, "wordllama, openai/<model> or tei/<model>, got 'nonsense'"),
        (["--agent", "Nobody"], 1, "no tenant has an agent 'Nobody'"),
        (["--tenant", "nowhere"], 1, "nowhere"),
        (["--batch", "0"], 2, "0 is not in the range"),
    ],
)
def test_an_invalid_move_is_refused_with_the_valid_choices(
    arbor_with_memories: Arbor, arguments: list[str], code: int, message: str
) -> None:
    ran = arbor_with_memories("memory", "reembed", *arguments)
    assert ran.code == code
    assert message in ran.err


def test_an_interrupted_move_can_be_repeated(
    arbor_with_memories: Arbor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(reembed, "switch_model", interrupt)
        assert arbor_with_memories("memory", "reembed", "--dimension", "64").code == 130
    recalled = arbor_with_memories("recall", "Vega", "who is asleep?", "--tenant", "acme")
    assert "cook" in recalled.out
    assert arbor_with_memories("memory", "reembed", "--dimension", "64", "--json").json["memories"] > 6
