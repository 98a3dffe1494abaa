"""`arbor memory`: episodes, clusters, concepts, the graph and active memories."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.memories.models import Edge, Episode, Memory
from apps.memories.services.recall.activation import record_recall
from apps.selves.models import BeliefEvidence
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from config.cli.kit.output import short
from tests.factories.memories import (
    ClusterFactory,
    ClusterMemberFactory,
    ClusterRelationFactory,
    ConceptFactory,
    MemoryConceptFactory,
)
from tests.integration.cli.conftest import Arbor, add_memory

TALK = "Nora: I planted the quince in May.\nIlja: By the south wall?\nNora: Yes, in a boot.\n"


# --- episodes, clusters, concepts --------------------------------------------------------------------


def test_an_episode_is_listed_and_shown_with_its_members_in_order(
    arbor: Arbor, vega: str, tmp_path: Path
) -> None:
    path = tmp_path / "talk.txt"
    path.write_text(TALK, encoding="utf-8")
    arbor("memory", "ingest", str(path), "--agent", vega)
    (row,) = arbor("memory", "episodes", vega, "--json").json["episodes"]
    assert row["size"] == 3
    with tenant_transaction(tenant_by_slug("acme").id):
        Episode.objects.update(summary="Nora planted [bold]quinces[/bold].", ended_at=datetime.now(UTC))
    shown = arbor("memory", "episodes", vega, short(row["id"]), "--json").json
    assert [memory["role"] for memory in shown["memories"]] == ["Nora", "Ilja", "Nora"]
    printed = arbor("memory", "episodes", vega, row["id"]).out
    assert "Nora planted [bold]quinces[/bold]." in printed
    assert "By the south wall?" in printed
    assert "Nora planted" in arbor("memory", "episodes", vega).out


def test_a_cluster_is_listed_and_shown_with_its_members(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "The quince was planted in May.")
    with tenant_transaction(tenant_by_slug("acme").id):
        memory_row = Memory.objects.get(id=chosen)
        cluster = ClusterFactory(agent=memory_row.agent, name="garden")
        ClusterMemberFactory(cluster=cluster, memory=memory_row)
        ClusterRelationFactory(source=cluster, target=ClusterFactory(agent=memory_row.agent, name="kitchen"))
    names = [row["name"] for row in arbor("memory", "cluster", "list", vega, "--json").json["clusters"]]
    assert set(names) == {"garden", "kitchen"}
    shown = arbor("memory", "cluster", "show", vega, short(cluster.id), "-k", "5", "--json").json
    assert [memory["id"] for memory in shown["memories"]] == [chosen]
    assert [row["name"] for row in shown["related"]] == ["kitchen"]
    assert "The quince was planted" in arbor("memory", "cluster", "show", vega, str(cluster.id)).out


def test_concepts_are_a_tree(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "The tide turned.")
    with tenant_transaction(tenant_by_slug("acme").id):
        row = Memory.objects.get(id=chosen)
        water = ConceptFactory(agent=row.agent, name="water")
        tide = ConceptFactory(agent=row.agent, name="tide", parent=water, ancestors=[str(water.id)])
        MemoryConceptFactory(concept=tide, memory=row)
    (root,) = arbor("memory", "concept", "list", vega, "--json").json["concepts"]
    assert (root["name"], root["narrower"][0]["name"]) == ("water", "tide")
    assert "└── tide" in arbor("memory", "concept", "list", vega).out
    cases = arbor("memory", "concept", "list", vega, "--memories", "Water", "--json").json["memories"]
    assert [memory["id"] for memory in cases] == [chosen]
    listed = arbor("memory", "list", vega, "--concept", "water", "--json").json["memories"]
    assert [memory["id"] for memory in listed] == [chosen]
    assert arbor("memory", "concept", "list", vega, "--memories", "fire").code == 1


# --- the graph ---------------------------------------------------------------------------------------


def test_the_graph_is_queried(arbor: Arbor, vega: str) -> None:
    frost, ice, ferry = (
        add_memory(arbor, text) for text in ("Frost came.", "The river froze.", "The ferry stopped.")
    )
    for cause, effect in ((frost, ice), (ice, ferry)):
        assert arbor("memory", "graph", "relate", vega, cause, "causes", effect, "--weight", "0.8").code == 0
    causes = arbor("memory", "graph", "causes", vega, ferry, "--json").json["found"]
    assert [(node["text"], node["hops"]) for node in causes] == [("The river froze.", 1), ("Frost came.", 2)]
    path = arbor("memory", "graph", "path", vega, frost, ferry, "--json").json["path"]
    assert [edge["relation"] for edge in path["path"]] == ["causes", "causes"]
    assert (
        f"memory {short(frost)} causes memory {short(ice)}"
        in arbor("memory", "graph", "path", vega, frost, ferry).out
    )
    back = arbor("memory", "graph", "path", vega, ferry, frost, "--directed", "--json")
    assert (back.code, back.json["path"]) == (1, None)
    near = arbor("memory", "graph", "connected", vega, ice, "--hops", "1", "--json").json["found"]
    assert {node["text"] for node in near} == {"Frost came.", "The ferry stopped."}
    assert arbor("memory", "graph", "connected", vega, ice, "--relation", "supports").out.startswith(
        "Nothing is connected"
    )
    belief = arbor("self", "belief", "add", vega, "Cold stops ferries.", "--json").json["id"]
    arbor("memory", "graph", "relate", vega, ferry, "supports", f"belief:{short(belief)}")
    evidence = arbor("memory", "graph", "evidence", vega, belief, "--json").json["found"]
    assert [node["text"] for node in evidence] == ["The ferry stopped."]
    assert "Nothing contradicts anything." in arbor("memory", "graph", "contradictions", vega).out
    with tenant_transaction(tenant_by_slug("acme").id):
        origins = Edge.objects.values_list("origin", flat=True).distinct()
        assert all(origin.startswith("cli:") for origin in origins)
        assert AuditEvent.objects.filter(message__startswith="related two things of Vega").count() == 3


def test_the_removal_of_a_relation_is_audited(arbor: Arbor, vega: str) -> None:
    frost, ice = add_memory(arbor, "Frost came."), add_memory(arbor, "The river froze.")
    for relation in ("causes", "supports"):
        arbor("memory", "graph", "relate", vega, frost, relation, ice)
    only = arbor("memory", "graph", "unrelate", vega, frost, ice, "--relation", "causes", "--json")
    assert only.json["removed"] == 1
    assert "Removed: 1." in arbor("memory", "graph", "unrelate", vega, frost, ice).out
    assert arbor("memory", "graph", "unrelate", vega, frost, ice, "--json").json["removed"] == 0
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not Edge.objects.exists()
        assert AuditEvent.objects.filter(message__startswith="removed 1 relation ").count() == 2


def test_active_memories_are_listed_without_activating_them(arbor: Arbor, vega: str) -> None:
    ice = add_memory(arbor, "The river froze.")
    assert "Nothing" in arbor("memory", "mind", "active", vega).out
    arbor("recall", vega, "the river")
    assert arbor("memory", "mind", "active", vega, "--json").json["memories"] == []
    tenant = tenant_by_slug("acme")
    with tenant_transaction(tenant.id):
        agent = Agent.objects.get(name=vega)
        record_recall(agent_id=agent.id, recalled={UUID(ice): 1.0})
    (only,) = arbor("memory", "mind", "active", vega, "--json").json["memories"]
    assert (only["id"], only["text"]) == (ice, "The river froze.")
    assert only["level"] > 0.9
    assert "The river froze." in arbor("memory", "mind", "active", vega).out


def test_an_invalid_relation_or_traversal_is_refused(arbor: Arbor, vega: str) -> None:
    chosen = add_memory(arbor, "Alone.")
    # A memory is not related to itself, and no relation is called "adores".
    for relation, code in (("causes", 1), ("adores", 2)):
        assert arbor("memory", "graph", "relate", vega, chosen, relation, chosen).code == code, relation
    assert arbor("memory", "graph", "causes", vega, str(uuid4())).code == 1
    assert arbor("memory", "graph", "causes", vega, chosen, "--hops", "99").code == 2


def test_evidence_by_a_person_is_proposed_and_removed(arbor: Arbor, vega: str) -> None:
    frost = add_memory(arbor, "Frost in May is rare.")
    believed = arbor(
        "self", "belief", "add", vega, "Frost comes in May.", "--confidence", "0.6", "--json"
    ).json
    belief = f"belief:{believed['id']}"
    drawn = arbor("memory", "graph", "relate", vega, frost, "contradicts", belief, "--json").json
    assert drawn["proposed"] == "proposed to be less sure of the belief"
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not BeliefEvidence.objects.get(memory_id=frost).supports
    undone = arbor("memory", "graph", "unrelate", vega, frost, belief)
    assert "Removed: 1.\n" in undone.out
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not BeliefEvidence.objects.exists()

    fact = add_memory(arbor, "It froze in May.", "semantic", "--supports-belief", believed["id"])
    with tenant_transaction(tenant_by_slug("acme").id):
        assert BeliefEvidence.objects.get(memory_id=fact).supports
