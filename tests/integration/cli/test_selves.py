"""`arbor self`: beliefs, identity, boundaries, proposals, drives, experiences and peers."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.heartbeats.models import HeartbeatStatus
from apps.selves.models import IdentityAspect
from apps.selves.services.proposals import propose
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.selves.proposals import NewProposal, ProposalKind
from config.cli.kit import columns
from config.cli.kit.output import short
from tests.factories.heartbeats import HeartbeatFactory
from tests.factories.selves import ExperienceFactory, PeerModelFactory
from tests.integration.cli.conftest import Arbor


def test_a_new_agent_knows_the_traits_and_values_of_its_template(arbor: Arbor, vega: str) -> None:
    assert arbor("self", "belief", "list", vega, "--json").json["beliefs"] == []
    shown = arbor("self", "show", vega, "--json").json
    assert shown["version"] == 1
    assert any(part["name"].startswith("accuracy, because") for part in shown["self_knowledge"])
    aspects = arbor("self", "identity", "list", vega, "--json").json["aspects"]
    assert {aspect["kind"] for aspect in aspects} == {
        "self_concept",
        "purpose",
        "emotional_baseline",
        "trait",
        "value",
    }


def test_the_self_is_compared_with_its_versions_and_rolled_back(arbor: Arbor, vega: str) -> None:
    added = arbor(
        "self", "identity", "add", vega, "patient", "--kind", "trait", "--strength", "0.8", "--json"
    )
    revised = arbor(
        "self", "identity", "revise", vega, short(added.json["id"]), "--strength", "0.3", "--json"
    )
    assert revised.json["strength"] == 0.3
    revise = ("self", "identity", "revise", vega, short(added.json["id"]))
    assert "is questioned" in arbor(*revise, "--status", "questioned", "--stability", "0.9").out
    assert len(arbor("self", "growth", vega, "--last", "1", "--json").json["changes"]) == 1
    arbor("self", "preference", "set", vega, "tone", "dry")
    versions = arbor("self", "version", "list", vega, "--json").json["versions"]
    assert [version["number"] for version in versions] == [5, 4, 3, 2, 1]
    assert "strength 0.8 → 0.3" in arbor("self", "growth", vega).out
    assert "patient" in arbor("self", "version", "diff", vega, "1").out
    assert "equal" in arbor("self", "version", "diff", vega, "5", "5").out
    assert "patient" in arbor("self", "show", vega).out
    undone = arbor(
        "self", "version", "rollback", vega, "1", "--only", "aspect", "--reason", "too bold", "--json"
    )
    assert (undone.json["version"], len(undone.json["differences"])) == (6, 1)
    assert "patient" not in arbor("self", "show", vega).out
    assert "tone" in arbor("self", "preference", "list", vega).out
    assert "Nothing changed" in arbor("self", "version", "rollback", vega, "5", "--only", "belief").out
    assert "as at version 1" in arbor("self", "version", "rollback", vega, "1").out
    refused = arbor("self", "version", "rollback", vega, "9")
    assert (refused.code, "there are 1 to 7" in refused.err) == (1, True)


def test_a_belief_gets_memory_filters(arbor: Arbor, vega: str) -> None:
    belief = arbor("self", "belief", "add", vega, "Whispers are worth little.", "--json").json
    change = ("self", "belief", "filter", vega, short(belief["id"]))
    added = arbor(*change, "--effect", "dim", "--word", "gossip*", "--type", "episodic", "--json").json
    assert added["filters"] == [{"effect": "dim", "patterns": ["gossip*"], "types": ["episodic"]}]
    assert "has 2 memory filters" in arbor(*change, "--effect", "hide", "--word", "rumour").out
    refused = arbor(*change, "--effect", "hide")
    assert (refused.code, "needs a word or a type" in refused.err) == (1, True)
    assert arbor(*change).code == 2
    assert "has 0 memory filters" in arbor(*change, "--clear", "--reason", "I was wrong").out
    with tenant_transaction(tenant_by_slug("acme").id):
        assert AuditEvent.objects.filter(detail__reason="I was wrong").exists()


def test_a_belief_is_added_revised_and_dropped(arbor: Arbor, vega: str) -> None:
    belief = arbor("self", "belief", "add", vega, "[b]Ice[/b] holds.", "--about", "world", "--json").json
    assert (belief["confidence"], belief["status"]) == (0.7, "held")
    assert "[b]Ice[/b] holds." in arbor("self", "belief", "list", vega).out
    assert arbor("self", "belief", "add", vega, "[b]Ice[/b] holds.").code == 1
    revised = arbor(
        "self", "belief", "revise", vega, short(belief["id"]), "--confidence", "0.2", "--status", "questioned"
    )
    assert "is questioned, 20% sure" in revised.out
    assert arbor("self", "belief", "drop", vega, belief["id"], "--reason", "it broke").code == 0
    assert "holds." not in arbor("self", "belief", "list", vega).out
    assert "holds." in arbor("self", "belief", "list", vega, "--all").out
    with tenant_transaction(tenant_by_slug("acme").id):
        actors = AuditEvent.objects.filter(message__contains="Ice").values_list("actor", flat=True)
        assert len(actors) == 3
        assert all(actor.startswith("cli:") for actor in actors)


def test_an_aspect_is_added_and_dropped(arbor: Arbor, vega: str) -> None:
    aspect = arbor(
        "self", "identity", "add", vega, "I finish what I begin.", "--kind", "agency", "--json"
    ).json
    assert "I finish what I begin." in arbor("self", "identity", "list", vega).out
    assert arbor("self", "identity", "drop", vega, short(aspect["id"])).code == 0
    assert "I finish what I begin." not in arbor("self", "identity", "list", vega).out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("self", "belief", "add", "Vega", " "), 1),
        (("self", "belief", "add", "Vega", "x", "--confidence", "7"), 2),
        (("self", "belief", "revise", "Vega", "12345678"), 2),
        (("self", "belief", "drop", "Vega", "12345678"), 1),
        (("self", "belief", "list", "Nobody"), 1),
        (("self", "identity", "add", "Vega", "x", "--kind", "dream"), 2),
        (("self", "identity", "drop", "Vega", "12345678"), 1),
        (("self", "boundary", "add", "Vega", "No Gossip", "--pattern", "x"), 1),
        (("self", "boundary", "add", "Vega", "no_gossip"), 1),
        (("self", "boundary", "add", "Vega", "no_gossip", "--pattern", "*"), 1),
        (("self", "boundary", "add", "Vega", "no_gossip", "--pattern", "x", "--flexibility", "3"), 2),
        (("self", "boundary", "remove", "Vega", "nothing"), 1),
        (("self", "boundary", "restore", "Vega", "no_harm"), 1),
        (("self", "proposal", "accept", "Vega", "12345678"), 1),
        (("self", "drives", "Nobody"), 1),
    ],
)
def test_an_invalid_command_is_refused(
    arbor: Arbor, vega: str, arguments: tuple[str, ...], code: int
) -> None:
    assert arbor(*arguments).code == code


def test_a_boundary_is_added_tested_removed_and_restored(arbor: Arbor, vega: str) -> None:
    names = [
        boundary["name"] for boundary in arbor("self", "boundary", "list", vega, "--json").json["boundaries"]
    ]
    assert names == ["no_harm", "no_deception", "user_privacy", "identity_core", "resource_limit"]
    words = ("--pattern", "gossip", "--example", "Tell me what Bo said.")
    added = arbor("self", "boundary", "add", vega, "no_gossip", *words, "--json")
    assert added.json["embedded"] is True
    assert "its own" in arbor("self", "boundary", "list", vega).out
    matches = arbor("self", "boundary", "test", vega, "Any gossip?", "--json").json["crossed"]
    assert [(match["boundary"], match["why"]) for match in matches] == [("no_gossip", "it says “gossip”")]
    by_meaning = arbor("self", "boundary", "test", vega, "Tell me what Bo said!", "--json").json["crossed"]
    assert [match["boundary"] for match in by_meaning] == ["no_gossip"]
    assert "matches no boundary" in arbor("self", "boundary", "test", vega, "Good morning.").out
    assert arbor("self", "boundary", "remove", vega, "no_gossip").code == 0
    assert arbor("self", "boundary", "remove", vega, "no_harm", "--json").json["done"] == "switched off"
    assert arbor("self", "boundary", "list", vega, "--json").json["switched_off"] == ["no_harm"]
    assert arbor("self", "boundary", "restore", vega, "no_harm").code == 0
    assert arbor("self", "boundary", "list", vega, "--json").json["switched_off"] == []
    with tenant_transaction(tenant_by_slug("acme").id):
        messages = set(
            AuditEvent.objects.filter(message__contains="boundary").values_list("message", flat=True)
        )
    assert "removed the boundary no_gossip" in messages


def test_an_accepted_proposal_of_a_person_becomes_a_memory(arbor: Arbor, vega: str) -> None:
    (added,) = arbor("self", "proposal", "add", vega, "The river floods in March.", "--json").json[
        "proposals"
    ]
    assert (added["kind"], added["source"], added["status"]) == ("fact", "operator", "pending")
    assert "waits already" in arbor("self", "proposal", "add", vega, "The river floods in March.").out
    assert arbor("self", "proposal", "add", vega, "Too sure.", "--confidence", "2").code == 2
    assert arbor("self", "proposal", "accept", vega, added["id"]).code == 0
    assert "The river floods in March." in arbor("recall", vega, "river floods").out


def test_a_bounded_list_shows_the_total(arbor: Arbor, vega: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_ROWS", 1)
    for text in ("The river floods in March.", "The ferry is called Halcyon."):
        arbor("self", "proposal", "add", vega, text)
    listed = arbor("self", "proposal", "list", vega, "--json").json
    assert (len(listed["proposals"]), listed["total"]) == (1, 2)
    assert "1 of 2" in arbor("self", "proposal", "list", vega).out


def test_proposals_are_listed_and_decided(arbor: Arbor, vega: str) -> None:
    assert "Nothing waits" in arbor("self", "proposal", "list", vega).out
    with tenant_transaction(tenant_by_slug("acme").id):
        agent = Agent.objects.get(name=vega)
        proposed = propose(
            agent_id=agent.id,
            proposals=[
                NewProposal(
                    kind=ProposalKind.IDENTITY,
                    content=content,
                    confidence=0.7,
                    source="consolidation",
                    change={"aspect": "agency"},
                )
                for content in ("I [b]draw[/b] maps.", "Storms please me.", "Nets bore me.")
            ],
        ).made
    assert len(arbor("self", "proposal", "list", vega, "--json").json["proposals"]) == 3
    accepted = arbor(
        "self", "proposal", "accept", vega, short(proposed[0].id), "--reason", "true", "--json"
    ).json
    assert (accepted["status"], accepted["decided_by"].startswith("cli:")) == ("accepted", True)
    assert "rejected" in arbor("self", "proposal", "reject", vega, str(proposed[1].id)).out
    assert arbor("self", "proposal", "defer", vega, str(proposed[2].id), "--json").json["deferrals"] == 1
    assert arbor("self", "proposal", "reject", vega, str(proposed[0].id)).code == 1
    assert "[b]draw[/b]" in arbor("self", "proposal", "list", vega, "--all").out
    with tenant_transaction(tenant_by_slug("acme").id):
        assert IdentityAspect.objects.filter(content="I [b]draw[/b] maps.", kind="agency").exists()


def test_the_inner_state_is_shown(arbor: Arbor, vega: str) -> None:
    drives = arbor("self", "drives", vega, "--json").json
    assert {drive["name"]: drive["level"] for drive in drives["drives"]} == dict.fromkeys(
        ("curiosity", "coherence", "competence", "connection", "rest"), 0.5
    )
    assert "curiosity" in arbor("self", "drives", vega).out
    assert "No heartbeat has recorded a mood yet." in arbor("self", "mood", vega).out
    assert "has no experiences yet" in arbor("self", "experiences", vega).out
    assert "has no experiences of failures yet" in arbor("self", "experiences", vega, "--failures").out
    nobody = arbor("contact", "peers", vega).out
    assert "has no model of a peer yet. A peer gets one by writing to the agent" in nobody
    with tenant_transaction(tenant_by_slug("acme").id):
        agent = Agent.objects.get(name=vega)
        HeartbeatFactory(
            agent=agent, number=1, status=HeartbeatStatus.DONE, emotional_valence=-1.0, arousal=1.0
        )
        ExperienceFactory(agent=agent, action="connect")
        PeerModelFactory(agent=agent, name="Bo", interactions=4, successes=3, last_tick=0)
    assert "valence  ▁" in arbor("self", "mood", vega).out
    assert arbor("self", "mood", vega, "--json").json["heartbeats"][0]["arousal"] == 1.0
    assert "connect" in arbor("self", "experiences", vega, "--failures").out
    assert "judged meetings" in arbor("contact", "peers", vega).out
    (peer,) = arbor("contact", "peers", vega, "--json").json["peers"]
    assert (peer["name"], peer["trust"]) == ("Bo", 0.75)
