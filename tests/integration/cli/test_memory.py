"""`arbor memory`: list, explain, show, compare and add memories, and record their outcomes and sources."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.memories.models import Edge, Memory, MemoryAccess
from apps.memories.services.store import create
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.errors import Invalid
from arbor.ids import uuid7
from config.cli.kit.output import short
from tests.factories.memories import MemoryFactory, PracticeFactory
from tests.factories.selves import IdentityAspectFactory
from tests.integration.cli.conftest import Arbor, add_memory

# --- list and show -----------------------------------------------------------------------------------


def test_memories_are_listed_and_filtered(arbor: Arbor, vega: str) -> None:
    quince = add_memory(
        arbor, "The quince was planted in May.", "semantic", "--importance", "0.9", "--concept", "garden"
    )
    add_memory(arbor, "Prune in winter.", "procedural", "--step", "Wait for frost", "--importance", "0.2")

    def ids(*options: str) -> list[str]:
        return [row["id"] for row in arbor("memory", "list", vega, "--json", *options).json["memories"]]

    assert ids("--concept", "Garden") == [quince]
    assert quince in ids("--type", "semantic", "--min-importance", "0.85")
    assert quince not in ids("--type", "procedural")
    assert ids("--until", "2020-01-01") == []
    assert quince in ids("--since", "2020-01-01", "--min-trust", "0.1")
    assert ids("--session", "nowhere") == ids("--role", "nobody") == ids("--status", "archived") == []
    assert len(ids("--limit", "1")) == 1
    assert arbor("memory", "list", vega, "-k", "1", "--json").json["more"] is True
    assert short(quince) in arbor("memory", "list", vega).out
    unknown = arbor("memory", "list", vega, "--concept", "astronomy")
    assert unknown.code == 1
    assert "astronomy" in unknown.err


def test_a_recall_is_explained(arbor: Arbor, vega: str) -> None:
    quince = add_memory(arbor, "The quince was planted in May.", "semantic")
    explained = arbor(
        "memory", "why", vega, "When was the quince planted?", "--memory", quince[-8:], "--json"
    ).json
    assert (explained["memory_id"], explained["recalled"], explained["reasons"]) == (
        quince,
        True,
        ["it is recalled, as number 1"],
    )
    assert explained["components"]["words"] > 0
    shown = arbor("memory", "why", vega, "quince", "--memory", quince, "--type", "episodic").out
    assert "It is semantic, and the filter asks for episodic." in shown
    filtered = arbor(
        "memory", "why", vega, "quince", "--memory", quince, "-k", "1", "--since", "2031-01-01", "--until", "2032-01-01",
        "--session", "", "--min-importance", "0.99", "--min-trust", "0.99", "--json",
    ).json  # fmt: skip
    assert (filtered["recalled"], filtered["reasons"][-1]) == (False, "it is older than the filter allows")
    for arguments in (
        ("memory", "why", vega, "quince", "--memory", quince, "--concept", "astronomy"),
        ("memory", "why", vega, "quince", "--memory", quince, "--cluster", "astronomy"),
        ("memory", "why", vega, "quince", "--memory", quince, "--episode", "astronomy"),
    ):
        assert arbor(*arguments).code == 1


def test_a_foreign_memory_is_explained_like_an_unknown_one(
    arbor: Arbor, vega: str, other_tenant: Tenant
) -> None:
    with tenant_transaction(other_tenant.id):
        foreign = str(MemoryFactory.create().id)
    errors = {
        arbor("memory", "why", vega, "quince", "--memory", memory_id).err.replace(memory_id, "ID")
        for memory_id in (foreign, str(uuid7()))
    }
    assert len(errors) == 1
    assert "has no memory 'ID'" in errors.pop()


def test_a_memory_is_shown_in_full_without_an_access(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(
        arbor,
        "We decided to read the gauge at slack water.",
        "procedural",
        *("--step", "Wait for slack water", "--step", "Note the tide"),
        *("--needs", "a gauge", "--concept", "tide"),
    )
    other = add_memory(arbor, "Slack water is short.")
    assert (
        arbor("memory", "graph", "relate", vega, chosen, "requires", other, "--note", "by the log").code == 0
    )
    with tenant_transaction(tenant_by_slug("acme").id):
        PracticeFactory(memory=Memory.objects.get(id=chosen))
    shown = arbor("memory", "show", vega, short(chosen), "--json").json
    assert shown["detail"]["steps"] == ["Wait for slack water", "Note the tide"]
    assert shown["importance_receipt"]["reasons"]
    assert shown["practice"] == {"successes": 3, "failures": 1}
    assert [concept["name"] for concept in shown["concepts"]] == ["tide"]
    (relation,) = shown["relations"]
    assert (relation["from"], relation["relation"], relation["note"]) == ("this", "requires", "by the log")
    assert shown["neighborhood"]["stale"] is True
    printed = arbor("memory", "show", vega, chosen).out
    for words in (
        "1. Wait for slack water",
        "2. Note the tide",
        "decision: decided",
        "Slack water is short.",
        "3 of 4",
    ):
        assert words in printed, words
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not MemoryAccess.objects.exists()


def test_a_memory_is_shown_with_its_resonance(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "I waited for the last passenger.")
    assert arbor("memory", "show", vega, chosen, "--json").json["resonance"] == {"score": 0.0, "aspects": []}
    with tenant_transaction(tenant_by_slug("acme").id):
        agent = Agent.objects.get(name=vega)
        aspect = IdentityAspectFactory(agent=agent, content="I am patient.", stability=0.5)
    arbor("memory", "graph", "relate", vega, chosen, "supports", f"aspect:{aspect.id}", "--weight", "0.8")
    resonance = arbor("memory", "show", vega, chosen, "--json").json["resonance"]
    assert (resonance["score"], [aspect["text"] for aspect in resonance["aspects"]]) == (
        0.4,
        ["I am patient."],
    )
    assert "+0.40 I am patient." in arbor("memory", "show", vega, chosen).out


@pytest.mark.parametrize("unknown", ["", "zzzz", "12345678", "01990000-0000-7000-8000-00000000abcd"])
def test_an_unknown_id_names_the_valid_forms(arbor: Arbor, vega: str, unknown: str) -> None:
    ran = arbor("memory", "show", vega, unknown)
    assert ran.code == 1
    assert "its last 8 characters" in ran.err


def test_a_memory_of_another_agent_is_not_found(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "Mine alone.")
    assert arbor("agent", "create", "Rigel", "--template", "Scout").code == 0
    assert arbor("memory", "show", "Rigel", chosen).code == 1
    assert arbor("memory", "archive", "Rigel", chosen, "--reason", "x").code == 1


def test_the_most_similar_memories_are_shown(arbor: Arbor, vega: str) -> None:
    ice = add_memory(arbor, "The river froze.", "episodic")
    add_memory(arbor, "Read the gauge at slack water.", "procedural", "--step", "Wait")
    similar = arbor("memory", "similar", vega, "ice on the river", "-k", "1", "--json").json["results"]
    assert [(memory["id"], memory["type"]) for memory in similar] == [(ice, "episodic")]
    assert similar[0]["similarity"] > 0.2
    of_type = arbor("memory", "similar", vega, "ice", "--type", "procedural", "--json").json["results"]
    assert {memory["type"] for memory in of_type} == {"procedural"}
    assert "The river froze." in arbor("memory", "similar", vega, "ice on the river").out
    assert arbor("memory", "similar", vega, "ice", "-k", "0").code == 2
    refused = arbor("memory", "similar", vega, "")
    assert (refused.code, "not white space alone, got" in refused.err) == (1, True)


# --- add ---------------------------------------------------------------------------------------------


def test_a_fact_is_trusted_by_its_sources_and_its_bearing_on_beliefs(arbor: Arbor, vega: str) -> None:
    belief = arbor("self", "belief", "add", vega, "Ice holds.", "--confidence", "0.5", "--json").json["id"]
    old = add_memory(arbor, "The ice held all winter.", "semantic", "--source", "person:Ana@0.5")
    new = add_memory(
        arbor,
        "The ice broke in March.",
        "semantic",
        *("--source", "document:log@0.9", "--contradicts", old, "--against-belief", belief),
    )
    shown = arbor("memory", "show", vega, new, "--json").json
    assert shown["trust"] == pytest.approx(0.5 * (0.15 + 0.85 * 0.9))
    pairs = arbor("memory", "graph", "contradictions", vega, "--json").json["contradictions"]
    assert {frozenset((pair["first"]["text"], pair["second"]["text"])) for pair in pairs} == {
        frozenset(("The ice broke in March.", "The ice held all winter.")),
        frozenset(("The ice broke in March.", "Ice holds.")),
    }
    about = arbor("memory", "graph", "contradictions", vega, f"belief:{belief}", "--json").json[
        "contradictions"
    ]
    assert len(about) == 1


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--type", "procedural"), 2, "a procedure has steps"),
        (("--type", "semantic", "--step", "x", "--needs", "y"), 2, "that is semantic has no --needs, --step"),
        (
            ("--type", "episodic", "--contradicts", "x", "--source", "a:b"),
            2,
            "has no --contradicts, --source",
        ),
        (("--type", "semantic", "--source", "log"), 2, "write KIND:NAME or KIND:NAME@TRUST"),
        (("--type", "semantic", "--source", "log:x@7"), 2, "a source's trust must be a number from 0 to 1"),
        (("--type", "semantic", "--contradicts", "nothing"), 1, "has no memory"),
        (("--type", "dream"), 2, "episodic"),
        (("--type", "episodic", "--valence", "3"), 2, "-1<=x<=1"),
    ],
)
def test_an_invalid_memory_is_refused_with_the_reason(
    arbor: Arbor, vega: str, options: tuple[str, ...], code: int, message: str
) -> None:
    before = arbor("memory", "list", vega, "--status", "all", "-k", "1000", "--json").json
    ran = arbor("memory", "add", vega, "Something.", *options)
    assert ran.code == code
    assert message in ran.err
    assert arbor("memory", "list", vega, "--status", "all", "-k", "1000", "--json").json == before


@pytest.mark.parametrize("kind", ["add", "remember"])
def test_a_memory_that_cannot_be_audited_is_not_stored(
    arbor: Arbor, vega: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def fail(**_: Any) -> None:
        raise Invalid("the audit is full")

    monkeypatch.setattr(create, "record", fail)
    if kind == "add":
        belief = arbor("self", "belief", "add", vega, "Ice holds.", "--json").json["id"]
        ran = arbor(
            *("memory", "add", vega, "The ice broke.", "--type", "semantic", "--against-belief", belief)
        )
    else:
        ran = arbor("remember", vega, "The ice broke.")
    assert (ran.code, "the audit is full" in ran.err) == (1, True)
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not Memory.objects.filter(content="The ice broke.").exists()
        assert not Edge.objects.exists()


def test_outcomes_of_a_procedure_are_counted_and_audited(arbor: Arbor, vega: str) -> None:
    gauge = add_memory(arbor, "Read the gauge.", "procedural", "--step", "Wait")
    assert arbor("memory", "practise", vega, gauge, "--success", "--json").json["success_rate"] == 1.0
    assert "worked out 1 of 2 times" in arbor("memory", "practise", vega, gauge, "--failure").out
    practice = arbor("memory", "show", vega, gauge, "--json").json["practice"]
    assert practice == {"successes": 1, "failures": 1}
    assert arbor("memory", "practise", vega, gauge).code == 2
    fact = add_memory(arbor, "The tide turns.")
    refused = arbor("memory", "practise", vega, fact, "--success")
    assert (refused.code, "only a procedural memory" in refused.err) == (1, True)
    with tenant_transaction(tenant_by_slug("acme").id):
        acts = AuditEvent.objects.filter(message="recorded an outcome of a procedure of Vega")
        assert [act.detail["success"] for act in acts.order_by("id")] == [True, False]


def test_a_recalled_procedure_is_shown_with_its_steps(arbor: Arbor, vega: str) -> None:
    add_memory(arbor, "How to tie up", "procedural", "--step", "Pass the line", "--step", "Tie it")
    found, *_ = arbor("recall", vega, "How do I tie up?", "--json").json["results"]
    assert found["details"] == ["steps: 1. Pass the line; 2. Tie it", "not tried yet"]
    assert "1. Pass the line" in arbor("recall", vega, "How do I tie up?").out


def test_another_source_raises_the_trust_in_a_fact(arbor: Arbor, vega: str) -> None:
    fact = add_memory(arbor, "The quay was dredged.", "semantic", "--source", "person:Ana@0.5")
    before = arbor("memory", "show", vega, fact, "--json").json["trust"]
    log = ("memory", "source", vega, fact, "--kind", "document", "--reference", "harbour-log")
    raised = arbor(*log, "--trust", "0.9", "--json").json["trust"]
    assert raised > before
    assert f"trusted by {raised:.2f} now" in arbor(*log, "--trust", "0.9").out
    shown = arbor("memory", "show", vega, fact, "--json").json
    assert [source["reference"] for source in shown["detail"]["sources"]] == ["Ana", "harbour-log"]
    assert arbor(*log, "--trust", "7").code == 2
    gauge = add_memory(arbor, "Read the gauge.", "procedural", "--step", "Wait")
    refused = arbor("memory", "source", vega, gauge, "--kind", "person", "--reference", "Ana")
    assert (refused.code, "only a semantic memory has sources" in refused.err) == (1, True)
    with tenant_transaction(tenant_by_slug("acme").id):
        assert AuditEvent.objects.filter(message__startswith="added a source to a fact").count() == 2
