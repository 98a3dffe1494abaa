"""`arbor memory`: an agent's memory, looked at and kept, from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.memories.models import BufferItem, Cluster, Edge, Episode, Memory, MemoryAccess
from apps.memories.services import teach
from apps.memories.services.activation import note_recall
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.errors import Invalid
from config.cli.memory.finding import short
from config.cli.memory.group import memory
from tests.factories.memories import (
    BufferItemFactory,
    ClusterFactory,
    ClusterMemberFactory,
    ClusterRelationFactory,
    ConceptFactory,
    MemoryConceptFactory,
    PracticeFactory,
)
from tests.factories.selves import IdentityAspectFactory
from tests.integration.cli.conftest import Arbor

TALK = "Nora: I planted the quince in May.\nIlja: By the south wall?\nNora: Yes, in a boot.\n"


@pytest.fixture
def vega(arbor: Arbor, one_tenant: str, tmp_path: object) -> str:
    assert arbor("agent", "create", "Vega", "--template", "Scout").code == 0
    return "Vega"


@pytest.fixture
def inside(vega: str) -> Iterator[None]:
    """Work within the tenant."""
    with tenant_transaction(tenant_by_slug("acme").id):
        yield


def added(arbor: Arbor, text: str, kind: str = "semantic", *more: str) -> str:
    ran = arbor("memory", "add", "Vega", text, "--type", kind, *more, "--json")
    assert ran.code == 0, ran.err
    return str(ran.json["id"])


@pytest.mark.parametrize("name", sorted(memory.commands))
def test_help_shows_examples(arbor: Arbor, name: str) -> None:
    ran = arbor("memory", name, "--help")
    assert ran.code == 0
    assert f"arbor memory {name}" in ran.out.split("Example")[1]


# --- list and show -----------------------------------------------------------------------------------


def test_memories_are_listed_and_filtered(arbor: Arbor, vega: str) -> None:
    quince = added(
        arbor, "The quince was planted in May.", "semantic", "--importance", "0.9", "--concept", "garden"
    )
    added(arbor, "Prune in winter.", "procedural", "--step", "Wait for frost", "--importance", "0.2")

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
    assert f"{short(quince)}" in arbor("memory", "list", vega).out
    unknown = arbor("memory", "list", vega, "--concept", "astronomy")
    assert unknown.code == 1
    assert "astronomy" in unknown.err


def test_one_memory_is_shown_with_everything_and_a_look_does_not_count(arbor: Arbor, vega: str) -> None:
    chosen = added(
        arbor,
        "We decided to read the gauge at slack water.",
        "procedural",
        "--step",
        "Wait for slack water",
        "--step",
        "Note the tide",
        "--needs",
        "a gauge",
        "--concept",
        "tide",
    )
    other = added(arbor, "Slack water is short.")
    assert arbor("memory", "relate", vega, chosen, "requires", other, "--note", "by the log").code == 0
    with tenant_transaction(tenant_by_slug("acme").id):
        PracticeFactory(memory=Memory.objects.get(id=chosen))
    told = arbor("memory", "show", vega, short(chosen), "--json").json
    assert told["detail"]["steps"] == ["Wait for slack water", "Note the tide"]
    assert told["importance_receipt"]["reasons"]
    assert told["practice"] == {"successes": 3, "failures": 1}
    assert [each["name"] for each in told["concepts"]] == ["tide"]
    (relation,) = told["relations"]
    assert (relation["from"], relation["relation"], relation["note"]) == ("this", "requires", "by the log")
    assert told["neighborhood"]["stale"] is True
    people = arbor("memory", "show", vega, chosen).out
    for words in (
        "1. Wait for slack water",
        "2. Note the tide",
        "decision: decided",
        "Slack water is short.",
        "3 of 4",
    ):
        assert words in people, words
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not MemoryAccess.objects.exists()


def test_a_memory_is_shown_with_how_it_rings_with_the_self(arbor: Arbor, vega: str) -> None:
    chosen = added(arbor, "I waited for the last passenger.")
    assert arbor("memory", "show", vega, chosen, "--json").json["resonance"] == {"score": 0.0, "aspects": []}
    with tenant_transaction(tenant_by_slug("acme").id):
        agent = Agent.objects.get(name=vega)
        aspect = IdentityAspectFactory(agent=agent, content="I am patient.", stability=0.5)
    arbor("memory", "relate", vega, chosen, "supports", f"aspect:{aspect.id}", "--weight", "0.8")
    told = arbor("memory", "show", vega, chosen, "--json").json["resonance"]
    assert (told["score"], [each["text"] for each in told["aspects"]]) == (0.4, ["I am patient."])
    assert "+0.40 I am patient." in arbor("memory", "show", vega, chosen).out


@pytest.mark.parametrize("wrong", ["", "zzzz", "12345678", "01990000-0000-7000-8000-00000000abcd"])
def test_an_unknown_id_says_what_would_be_right(arbor: Arbor, vega: str, wrong: str) -> None:
    ran = arbor("memory", "show", vega, wrong)
    assert ran.code == 1
    assert "its last 8 characters" in ran.err


def test_another_agents_memory_is_not_found(arbor: Arbor, vega: str) -> None:
    chosen = added(arbor, "Mine alone.")
    assert arbor("agent", "create", "Rigel", "--template", "Scout").code == 0
    assert arbor("memory", "show", "Rigel", chosen).code == 1
    assert arbor("memory", "archive", "Rigel", chosen, "--reason", "x").code == 1


def test_the_nearest_in_meaning_are_shown(arbor: Arbor, vega: str) -> None:
    ice = added(arbor, "The river froze.", "episodic")
    added(arbor, "Read the gauge at slack water.", "procedural", "--step", "Wait")
    found = arbor("memory", "similar", vega, "ice on the river", "-k", "1", "--json").json["results"]
    assert [(each["id"], each["type"]) for each in found] == [(ice, "episodic")]
    assert found[0]["similarity"] > 0.2
    of_type = arbor("memory", "similar", vega, "ice", "--type", "procedural", "--json").json["results"]
    assert {each["type"] for each in of_type} == {"procedural"}
    assert "The river froze." in arbor("memory", "similar", vega, "ice on the river").out
    assert arbor("memory", "similar", vega, "ice", "-k", "0").code == 2
    refused = arbor("memory", "similar", vega, "")
    assert (refused.code, "a query is 1 to" in refused.err) == (1, True)


# --- add ---------------------------------------------------------------------------------------------


def test_a_fact_is_trusted_by_its_sources_and_its_bearing_on_beliefs(arbor: Arbor, vega: str) -> None:
    belief = arbor("belief", "hold", vega, "Ice holds.", "--confidence", "0.5", "--json").json["id"]
    old = added(arbor, "The ice held all winter.", "semantic", "--source", "person:Ana@0.5")
    new = added(
        arbor,
        "The ice broke in March.",
        "semantic",
        "--source",
        "document:log@0.9",
        "--contradicts",
        old,
        "--against-belief",
        belief,
    )
    told = arbor("memory", "show", vega, new, "--json").json
    assert told["trust"] == pytest.approx(0.5 * (0.15 + 0.85 * 0.9))
    pairs = arbor("memory", "contradictions", vega, "--json").json["contradictions"]
    assert {frozenset((each["first"]["text"], each["second"]["text"])) for each in pairs} == {
        frozenset(("The ice broke in March.", "The ice held all winter.")),
        frozenset(("The ice broke in March.", "Ice holds.")),
    }
    about = arbor("memory", "contradictions", vega, f"belief:{belief}", "--json").json["contradictions"]
    assert len(about) == 1


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--type", "procedural"), 2, "a procedure has steps"),
        (("--type", "semantic", "--step", "x"), 2, "a memory that is semantic has no --step"),
        (("--type", "semantic", "--source", "log"), 2, "write KIND:NAME or KIND:NAME@TRUST"),
        (("--type", "semantic", "--source", "log:x@7"), 2, "a source's trust must be a number from 0 to 1"),
        (("--type", "semantic", "--contradicts", "nothing"), 1, "has no memory"),
        (("--type", "dream"), 2, "episodic"),
        (("--type", "episodic", "--valence", "3"), 2, "-1<=x<=1"),
    ],
)
def test_what_cannot_be_a_memory_is_refused_with_the_reason(
    arbor: Arbor, vega: str, options: tuple[str, ...], code: int, said: str
) -> None:
    before = arbor("memory", "list", vega, "--status", "all", "-k", "1000", "--json").json
    ran = arbor("memory", "add", vega, "Something.", *options)
    assert ran.code == code
    assert said in ran.err
    assert arbor("memory", "list", vega, "--status", "all", "-k", "1000", "--json").json == before


@pytest.mark.parametrize("kind", ["add", "remember"])
def test_a_memory_that_cannot_be_put_on_record_is_not_stored(
    arbor: Arbor, vega: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def fail(**_: Any) -> None:
        raise Invalid("the audit is full")

    monkeypatch.setattr(teach, "record", fail)
    if kind == "add":
        belief = arbor("belief", "hold", vega, "Ice holds.", "--json").json["id"]
        ran = arbor(
            *("memory", "add", vega, "The ice broke.", "--type", "semantic", "--against-belief", belief)
        )
    else:
        ran = arbor("remember", vega, "The ice broke.")
    assert (ran.code, "the audit is full" in ran.err) == (1, True)
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not Memory.objects.filter(content="The ice broke.").exists()
        assert not Edge.objects.exists()


def test_how_a_procedure_worked_out_is_counted_on_record(arbor: Arbor, vega: str) -> None:
    gauge = added(arbor, "Read the gauge.", "procedural", "--step", "Wait")
    assert arbor("memory", "practise", vega, gauge, "--success", "--json").json["success_rate"] == 1.0
    assert "worked out 1 of 2 times" in arbor("memory", "practise", vega, gauge, "--failure").out
    told = arbor("memory", "show", vega, gauge, "--json").json["practice"]
    assert told == {"successes": 1, "failures": 1}
    assert arbor("memory", "practise", vega, gauge).code == 2
    fact = added(arbor, "The tide turns.")
    refused = arbor("memory", "practise", vega, fact, "--success")
    assert (refused.code, "only a procedural memory" in refused.err) == (1, True)
    with tenant_transaction(tenant_by_slug("acme").id):
        acts = AuditEvent.objects.filter(message="told Vega how a procedure worked out")
        assert [each.detail["success"] for each in acts.order_by("id")] == [True, False]


def test_another_source_raises_the_trust_in_a_fact(arbor: Arbor, vega: str) -> None:
    fact = added(arbor, "The quay was dredged.", "semantic", "--source", "person:Ana@0.5")
    before = arbor("memory", "show", vega, fact, "--json").json["trust"]
    log = ("memory", "source", vega, fact, "--kind", "document", "--reference", "harbour-log")
    raised = arbor(*log, "--trust", "0.9", "--json").json["trust"]
    assert raised > before
    assert f"trusted by {raised:.2f} now" in arbor(*log, "--trust", "0.9").out
    told = arbor("memory", "show", vega, fact, "--json").json
    assert [each["reference"] for each in told["detail"]["sources"]] == ["Ana", "harbour-log"]
    assert arbor(*log, "--trust", "7").code == 2
    gauge = added(arbor, "Read the gauge.", "procedural", "--step", "Wait")
    refused = arbor("memory", "source", vega, gauge, "--kind", "person", "--reference", "Ana")
    assert (refused.code, "only a semantic memory has sources" in refused.err) == (1, True)
    with tenant_transaction(tenant_by_slug("acme").id):
        assert AuditEvent.objects.filter(message__startswith="noted another source").count() == 2


# --- archive, restore, purge, forget -----------------------------------------------------------------


def test_a_memory_is_archived_restored_and_at_last_removed_for_good(arbor: Arbor, vega: str) -> None:
    chosen = added(arbor, "The gate code is 4711.")
    assert arbor("memory", "archive", vega, chosen, "--reason", "old").out == "1 memory archived.\n"
    again = arbor("memory", "archive", vega, chosen, "--reason", "old")
    assert "0 memories archived; 1 was archived already" in again.out
    assert arbor("memory", "list", vega, "--status", "archived", "--json").json["memories"][0]["id"] == chosen
    assert "1 memory restored." in arbor("memory", "restore", vega, chosen, "--reason", "needed").out
    refused = arbor("memory", "purge", vega, chosen, "--reason", "asked", "--yes")
    assert refused.code == 1
    assert "archived before it is removed" in refused.err
    arbor("memory", "archive", vega, chosen, "--reason", "asked")
    declined = arbor("memory", "purge", vega, chosen, "--reason", "asked", stdin="n\n")
    assert declined.code == 130
    assert arbor("memory", "show", vega, chosen).code == 0
    assert arbor("memory", "purge", vega, chosen, "--reason", "asked", stdin="y\n").code == 0
    assert arbor("memory", "show", vega, chosen).code == 1
    with tenant_transaction(tenant_by_slug("acme").id):
        acts = list(AuditEvent.objects.filter(action__startswith="memories.").values_list("actor", flat=True))
    assert len(acts) == 4
    assert all(actor.startswith("cli:") for actor in acts)


def test_a_reason_is_needed(arbor: Arbor, vega: str) -> None:
    chosen = added(arbor, "Something.")
    for verb in ("archive", "restore", "purge"):
        assert arbor("memory", verb, vega, chosen).code == 2
    assert arbor("memory", "archive", vega, chosen, "--reason", " ").code == 1


def test_what_would_be_forgotten_is_told_and_nothing_is_done(arbor: Arbor, vega: str) -> None:
    chosen = added(arbor, "A passing thing.", "episodic", "--importance", "0.01")
    with tenant_transaction(tenant_by_slug("acme").id):
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        Memory.objects.filter(id=chosen).update(created_at=long_ago, occurred_at=long_ago)
    told = arbor("memory", "forget", vega, "--dry-run", "--json").json
    assert [each["id"] for each in told["memories"]] == [chosen]
    assert sum(told["going"].values()) == 1
    assert "would be archived" in arbor("memory", "forget", vega, "--dry-run").out
    assert arbor("memory", "forget", vega).code == 2
    with tenant_transaction(tenant_by_slug("acme").id):
        assert Memory.objects.get(id=chosen).status == "active"


# --- episodes, themes, concepts ----------------------------------------------------------------------


def test_an_episode_is_listed_and_shown_with_its_members_in_order(
    arbor: Arbor, vega: str, tmp_path: pytest.TempPathFactory
) -> None:
    path = tmp_path / "talk.txt"  # type: ignore[operator]
    path.write_text(TALK, encoding="utf-8")
    arbor("ingest", str(path), "--agent", vega)
    (row,) = arbor("memory", "episodes", vega, "--json").json["episodes"]
    assert row["size"] == 3
    with tenant_transaction(tenant_by_slug("acme").id):
        Episode.objects.update(summary="Nora planted [bold]quinces[/bold].", ended_at=datetime.now(UTC))
    one = arbor("memory", "episodes", vega, short(row["id"]), "--json").json
    assert [each["role"] for each in one["memories"]] == ["Nora", "Ilja", "Nora"]
    people = arbor("memory", "episodes", vega, row["id"]).out
    assert "Nora planted [bold]quinces[/bold]." in people
    assert "By the south wall?" in people
    assert "Nora planted" in arbor("memory", "episodes", vega).out


def test_a_theme_is_listed_and_shown_with_its_members(arbor: Arbor, vega: str) -> None:
    chosen = added(arbor, "The quince was planted in May.")
    with tenant_transaction(tenant_by_slug("acme").id):
        memory_row = Memory.objects.get(id=chosen)
        theme = ClusterFactory(agent=memory_row.agent, name="garden")
        ClusterMemberFactory(cluster=theme, memory=memory_row)
        ClusterRelationFactory(source=theme, target=ClusterFactory(agent=memory_row.agent, name="kitchen"))
        assert Cluster.objects.count() == 2
    names = [each["name"] for each in arbor("memory", "themes", vega, "--json").json["themes"]]
    assert set(names) == {"garden", "kitchen"}
    one = arbor("memory", "themes", vega, short(theme.id), "--json").json
    assert [each["id"] for each in one["memories"]] == [chosen]
    assert [each["name"] for each in one["related"]] == ["kitchen"]
    assert "The quince was planted" in arbor("memory", "themes", vega, str(theme.id)).out


def test_concepts_are_a_tree(arbor: Arbor, vega: str) -> None:
    chosen = added(arbor, "The tide turned.")
    with tenant_transaction(tenant_by_slug("acme").id):
        row = Memory.objects.get(id=chosen)
        water = ConceptFactory(agent=row.agent, name="water")
        tide = ConceptFactory(agent=row.agent, name="tide", parent=water, ancestors=[str(water.id)])
        MemoryConceptFactory(concept=tide, memory=row)
    (root,) = arbor("memory", "concepts", vega, "--json").json["concepts"]
    assert (root["name"], root["narrower"][0]["name"]) == ("water", "tide")
    assert "└── tide" in arbor("memory", "concepts", vega).out
    cases = arbor("memory", "concepts", vega, "--memories", "Water", "--json").json["memories"]
    assert [each["id"] for each in cases] == [chosen]
    listed = arbor("memory", "list", vega, "--concept", "water", "--json").json["memories"]
    assert [each["id"] for each in listed] == [chosen]
    assert arbor("memory", "concepts", vega, "--memories", "fire").code == 1


# --- the graph ---------------------------------------------------------------------------------------


def test_the_graph_answers(arbor: Arbor, vega: str) -> None:
    frost, ice, ferry = (
        added(arbor, text) for text in ("Frost came.", "The river froze.", "The ferry stopped.")
    )
    for cause, effect in ((frost, ice), (ice, ferry)):
        assert arbor("memory", "relate", vega, cause, "causes", effect, "--weight", "0.8").code == 0
    causes = arbor("memory", "causes", vega, ferry, "--json").json["found"]
    assert [(each["text"], each["hops"]) for each in causes] == [("The river froze.", 1), ("Frost came.", 2)]
    path = arbor("memory", "path", vega, frost, ferry, "--json").json["path"]
    assert [tie["relation"] for tie in path["path"]] == ["causes", "causes"]
    assert (
        f"memory {short(frost)} causes memory {short(ice)}" in arbor("memory", "path", vega, frost, ferry).out
    )
    back = arbor("memory", "path", vega, ferry, frost, "--directed", "--json")
    assert (back.code, back.json["path"]) == (1, None)
    near = arbor("memory", "connected", vega, ice, "--hops", "1", "--json").json["found"]
    assert {each["text"] for each in near} == {"Frost came.", "The ferry stopped."}
    assert arbor("memory", "connected", vega, ice, "--relation", "supports").out.startswith("Nothing is tied")
    belief = arbor("belief", "hold", vega, "Cold stops ferries.", "--json").json["id"]
    arbor("memory", "relate", vega, ferry, "supports", f"belief:{short(belief)}")
    evidence = arbor("memory", "evidence", vega, belief, "--json").json["found"]
    assert [each["text"] for each in evidence] == ["The ferry stopped."]
    assert "Nothing contradicts anything." in arbor("memory", "contradictions", vega).out
    with tenant_transaction(tenant_by_slug("acme").id):
        origins = Edge.objects.values_list("origin", flat=True).distinct()
        assert all(origin.startswith("cli:") for origin in origins)
        assert AuditEvent.objects.filter(message__startswith="related two things of Vega").count() == 3


def test_a_relation_is_taken_back_on_record(arbor: Arbor, vega: str) -> None:
    frost, ice = added(arbor, "Frost came."), added(arbor, "The river froze.")
    for relation in ("causes", "supports"):
        arbor("memory", "relate", vega, frost, relation, ice)
    only = arbor("memory", "unrelate", vega, frost, ice, "--relation", "causes", "--json")
    assert only.json["taken_back"] == 1
    assert "Taken back: 1." in arbor("memory", "unrelate", vega, frost, ice).out
    assert arbor("memory", "unrelate", vega, frost, ice, "--json").json["taken_back"] == 0
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not Edge.objects.exists()
        assert AuditEvent.objects.filter(message__startswith="took back 1 relations").count() == 2


def test_what_is_in_mind_is_shown_and_looking_brings_nothing_there(arbor: Arbor, vega: str) -> None:
    ice = added(arbor, "The river froze.")
    assert "Nothing" in arbor("memory", "mind", vega).out
    arbor("recall", vega, "the river")
    assert arbor("memory", "mind", vega, "--json").json["memories"] == []
    tenant = tenant_by_slug("acme")
    with tenant_transaction(tenant.id):
        agent = Agent.objects.get(name=vega)
        note_recall(agent_id=agent.id, recalled={UUID(ice): 1.0})
    (only,) = arbor("memory", "mind", vega, "--json").json["memories"]
    assert (only["id"], only["text"]) == (ice, "The river froze.")
    assert only["level"] > 0.9
    assert "The river froze." in arbor("memory", "mind", vega).out


@pytest.mark.parametrize("relation", ["causes", "adores"])
def test_a_memory_is_not_related_to_itself(arbor: Arbor, vega: str, relation: str) -> None:
    chosen = added(arbor, "Alone.")
    assert arbor("memory", "relate", vega, chosen, relation, chosen).code == (
        1 if relation == "causes" else 2
    )
    assert arbor("memory", "causes", vega, str(uuid4())).code == 1
    assert arbor("memory", "causes", vega, chosen, "--hops", "99").code == 2


# --- buffer and health -------------------------------------------------------------------------------


def test_what_is_held_is_shown(arbor: Arbor, vega: str) -> None:
    with tenant_transaction(tenant_by_slug("acme").id):
        agent = Memory.objects.first().agent  # type: ignore[union-attr]
        BufferItemFactory(agent=agent, content="The ferryman coughed.")
        assert BufferItem.objects.count() == 1
    assert [each["content"] for each in arbor("memory", "buffer", vega, "--json").json["held"]] == [
        "The ferryman coughed."
    ]
    assert "The ferryman coughed." in arbor("memory", "buffer", vega).out


def test_a_thing_is_held_found_again_and_made_a_memory(arbor: Arbor, vega: str) -> None:
    cough = arbor(
        "memory", "hold", vega, "The ferryman coughed.", "--for", "2d", "--importance", "0.2", "--json"
    ).json["id"]
    assert "Vega holds it for 1d." in arbor("memory", "hold", vega, "The lock is being mended.").out
    found = arbor("memory", "buffer", vega, "--search", "why did the ferryman cough?", "--json").json["held"]
    assert [each["id"] for each in found] == [cough]
    assert "The ferryman coughed." in arbor("memory", "buffer", vega, "--search", "the ferryman").out
    nothing = arbor("memory", "buffer", vega, "--search", "quantum chromodynamics")
    assert "holds nothing that bears on it" in nothing.out
    assert arbor("memory", "buffer", vega, "--search", " ").code == 1
    assert {each["accesses"] for each in arbor("memory", "buffer", vega, "--json").json["held"]} == {0}
    memory_id = arbor("memory", "promote", vega, short(cough), "--json").json["id"]
    assert arbor("memory", "show", vega, memory_id, "--json").json["content"] == "The ferryman coughed."
    assert [each["content"] for each in arbor("memory", "buffer", vega, "--json").json["held"]] == [
        "The lock is being mended."
    ]
    unknown = arbor("memory", "promote", vega, str(uuid4()))
    assert (unknown.code, "has no" in unknown.err) == (1, True)
    assert arbor("memory", "hold", vega, "Too long.", "--for", "99d").code == 1
    with tenant_transaction(tenant_by_slug("acme").id):
        said = AuditEvent.objects.filter(message__contains="hold").values_list("message", flat=True)
        assert list(said) == ["gave Vega something to hold"] * 2
        assert AuditEvent.objects.filter(message="made a memory of what was only held").count() == 1


def test_health_is_told(arbor: Arbor, vega: str) -> None:
    ran = arbor("memory", "health")
    assert "stale neighborhoods" in ran.out
    assert ran.code == 0
    assert arbor("memory", "health", "--json").json["figures"]
