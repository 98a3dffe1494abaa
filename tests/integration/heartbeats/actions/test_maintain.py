"""Reviews of memories, beliefs and clusters by a real heartbeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import Cluster, Edge, Memory, MemoryAccess, Pin
from apps.memories.services.retention.pins import pin
from apps.selves.models import Belief, BeliefEvidence, SelfChange
from apps.selves.services.beliefs import add_belief
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.memory.content import content_hash
from arbor.selves.values import BeliefCategory, NewBelief
from tests.factories.goals import GoalFactory, GoalMemoryLinkFactory
from tests.integration.heartbeats.actions.conftest import RunReplies, store_cluster, store_medium_fact
from tests.integration.heartbeats.conftest import first_action, last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import action_of, reply_of


class TestMaintain:
    """Reviews of memories, beliefs and clusters."""

    def test_without_a_verdict_the_memory_is_shown_and_nothing_changes(
        self, run_replies: RunReplies, agent: Agent
    ) -> None:
        memory_id = store_medium_fact(agent, "The reef is ten fathoms deep.")
        model = run_replies(reply_of(action_of("maintain", target="memory", id=memory_id)))

        assert (first_action(agent)["outcome"], first_action(agent)["cost"]) == ("success", 2)
        assert "The reef is ten fathoms deep." in model.requests[1].messages[-1].content
        with tenant_transaction(agent.tenant_id):
            assert Memory.objects.get(id=memory_id).status == "active"

    def test_a_long_memory_is_shown_with_an_ellipsis(self, run_replies: RunReplies, agent: Agent) -> None:
        memory_id = store_medium_fact(agent, "The reef is deep. " * 200)
        run_replies(reply_of(action_of("maintain", target="memory", id=memory_id)))

        assert "The reef is deep. The…" in first_action(agent)["brought"]

    def test_a_revision_takes_over_the_links_of_goals(self, run_replies: RunReplies, agent: Agent) -> None:
        memory_id = store_medium_fact(agent, "The reef is ten fathoms deep.")
        with tenant_transaction(agent.tenant_id):
            link = GoalMemoryLinkFactory(goal=GoalFactory(agent=agent), memory_id=memory_id)
        judged = {"verdict": "revise", "content": "It is eleven fathoms deep there.", "reason": "sounded"}
        run_replies(reply_of(action_of("maintain", target="memory", id=memory_id, **judged)))

        with tenant_transaction(agent.tenant_id):
            link.refresh_from_db()
            assert str(link.memory_id) == first_action(agent)["memory_ids"][0]

    def test_a_revision_keeps_the_former_text_and_says_what_became_of_it(
        self, run_replies: RunReplies, agent: Agent
    ) -> None:
        memory_id = store_medium_fact(agent, "The reef is ten fathoms deep.")
        judged = {
            "verdict": "revise",
            "content": "The reef is eleven fathoms deep.",
            "reason": "sounded again",
        }
        run_replies(reply_of(action_of("maintain", target="memory", id=memory_id, **judged)))

        with tenant_transaction(agent.tenant_id):
            former = Memory.objects.get(id=memory_id)
            now = Memory.objects.get(id=first_action(agent)["memory_ids"][0])
            edge = Edge.objects.get(source_id=memory_id, relation="evolved_into")
            event = AuditEvent.objects.get(action=AuditAction.MEMORIES_REVISED)
        assert (former.status, former.content) == ("archived", "The reef is ten fathoms deep.")
        assert (now.status, now.content) == ("active", "The reef is eleven fathoms deep.")
        assert edge.target_id == now.id
        # A purge of either removes its text everywhere, so the audit log has none.
        assert event.detail["changes"]["content_hash"] == {
            "from": content_hash(former.content).hex(),
            "to": content_hash(now.content).hex(),
        }
        assert event.detail["changes"]["kept_as"] == {"from": str(former.id), "to": str(now.id)}

    @pytest.mark.parametrize(
        ("judged", "expected"),
        [
            ({"verdict": "revise", "importance": 0.9}, {"importance": 0.9, "status": "active"}),
            ({"verdict": "retire"}, {"importance": 0.5, "status": "archived"}),
            ({"verdict": "doubt"}, {"trust": 0.5, "status": "active"}),
            ({"verdict": "keep"}, {"trust": 1.0, "status": "active"}),
        ],
    )
    def test_a_memory_is_appraised_retired_doubted_or_confirmed(
        self, run_replies: RunReplies, agent: Agent, judged: dict[str, Any], expected: dict[str, Any]
    ) -> None:
        memory_id = store_medium_fact(agent, "The reef is ten fathoms deep.")
        run_replies(
            reply_of(action_of("maintain", target="memory", id=memory_id, reason="so it is", **judged))
        )

        assert first_action(agent)["outcome"] == "success", first_action(agent)["summary"]
        with tenant_transaction(agent.tenant_id):
            memory = Memory.objects.get(id=memory_id)
            reinforced = MemoryAccess.objects.filter(memory_id=memory_id, reinforced__gt=0).exists()
        assert {name: getattr(memory, name) for name in expected} == expected
        assert reinforced is (judged["verdict"] == "keep")

    def test_a_pinned_memory_is_not_archived_and_its_revision_is_pinned(
        self, run_replies: RunReplies, agent: Agent
    ) -> None:
        memory_id = store_medium_fact(agent, "The reef is ten fathoms deep.")
        with tenant_transaction(agent.tenant_id):
            pin(memory_ids=[UUID(memory_id)], actor="user:ann")
        run_replies(
            reply_of(action_of("maintain", target="memory", id=memory_id, reason="old", verdict="retire"))
        )
        assert "a person decides when it goes" in first_action(agent)["summary"]
        run_replies(
            reply_of(
                action_of(
                    "maintain",
                    target="memory",
                    id=memory_id,
                    reason="sounded",
                    verdict="revise",
                    content="The reef is nine fathoms deep.",
                )
            ),
        )
        with tenant_transaction(agent.tenant_id):
            (pinned,) = Pin.objects.select_related("memory").filter(agent_id=agent.id)
            assert pinned.memory.content == "The reef is nine fathoms deep."
            assert pinned.memory.status == "active"

    def test_a_belief_is_revised_within_limits_and_the_change_recorded(
        self, run_replies: RunReplies, agent: Agent
    ) -> None:
        with tenant_transaction(agent.tenant_id):
            belief = add_belief(
                agent_id=agent.id,
                belief=NewBelief(
                    category=BeliefCategory.WORLD, statement="Tides are regular.", confidence=0.7
                ),
                actor="test",
            )
        params = {"target": "belief", "id": str(belief.id), "verdict": "revise", "reason": "seen otherwise"}
        run_replies(
            reply_of(
                action_of("maintain", **params, confidence=0.65),
                action_of("maintain", **params, confidence=0.01),
            )
        )

        revised, refused = last_heartbeat(agent).actions
        assert (revised["outcome"], refused["outcome"]) == ("success", "failure")
        with tenant_transaction(agent.tenant_id):
            assert Belief.objects.get(id=belief.id).confidence == 0.65
            assert (
                SelfChange.objects.filter(agent_id=agent.id).latest("at").decided_by
                == f"heartbeat:{last_heartbeat(agent).id}"
            )

    def test_a_confirmed_belief_counts_as_tested_against_evidence(
        self, run_replies: RunReplies, agent: Agent
    ) -> None:
        against = store_medium_fact(agent, "The tide came an hour late.")
        with tenant_transaction(agent.tenant_id):
            belief = add_belief(
                agent_id=agent.id,
                belief=NewBelief(category=BeliefCategory.WORLD, statement="Tides are regular."),
                actor="test",
            )
            BeliefEvidence.objects.create(
                tenant_id=agent.tenant_id, belief=belief, memory_id=against, supports=False
            )
        keep = action_of("maintain", target="belief", id=str(belief.id), verdict="keep", reason="one storm")
        model = run_replies(reply_of(keep))
        assert "## What speaks against your beliefs" in model.requests[0].messages[0].content

        with tenant_transaction(agent.tenant_id):
            again = Belief.objects.get(id=belief.id)
            event = AuditEvent.objects.get(agent_id=agent.id, message__startswith="kept the belief")
        assert (again.confidence, again.status) == (belief.confidence, belief.status)
        assert again.tested_at is not None
        assert event.actor == f"agent:{agent.public_id}"
        assert event.detail["heartbeat_id"] == str(last_heartbeat(agent).id)
        assert (event.detail["belief_id"], event.detail["reason"]) == (str(belief.id), "one storm")
        model = run_replies(reply_of())
        assert "## What speaks against your beliefs" not in model.requests[0].messages[0].content

    def test_a_confirmed_memory_is_audited(self, run_replies: RunReplies, agent: Agent) -> None:
        memory_id = store_medium_fact(agent, "The reef is ten fathoms deep.")
        run_replies(
            reply_of(
                action_of("maintain", target="memory", id=memory_id, verdict="keep", reason="sounded again")
            )
        )

        with tenant_transaction(agent.tenant_id):
            event = AuditEvent.objects.get(agent_id=agent.id, action=AuditAction.MEMORIES_REVISED)
        assert event.message == "kept a memory as it is: sounded again"
        assert event.detail == {"memory_id": memory_id, "changes": {}}
        assert event.actor == f"agent:{agent.public_id}"

    def test_a_cluster_is_shown_renamed_and_marked_stale(self, run_replies: RunReplies, agent: Agent) -> None:
        cluster_id = store_cluster(agent, store_medium_fact(agent, "The reef is ten fathoms deep."))
        named = {"verdict": "revise", "content": "The reef", "reason": "clearer"}
        run_replies(
            reply_of(
                action_of("maintain", target="cluster", id="Reef, depth"),
                action_of("maintain", target="cluster", id=cluster_id, **named),
                action_of(
                    "maintain", target="cluster", id="the reef", verdict="doubt", reason="it is a muddle"
                ),
            )
        )

        assert [action["outcome"] for action in last_heartbeat(agent).actions[:3]] == ["success"] * 3
        assert "The reef is ten fathoms deep." in last_heartbeat(agent).actions[0]["brought"]
        with tenant_transaction(agent.tenant_id):
            cluster = Cluster.objects.get(id=cluster_id)
        assert (cluster.name, cluster.stale) == ("The reef", True)

    @pytest.mark.parametrize("target", ["memory", "belief", "cluster"])
    @pytest.mark.parametrize("verdict", [None, "keep", "doubt"])
    def test_another_agents_row_is_not_found(
        self,
        run_replies: RunReplies,
        agent: Agent,
        tenant: Tenant,
        new_agent: Callable[..., Agent],
        target: str,
        verdict: str | None,
    ) -> None:
        other = new_agent(tenant, name="Grace")
        theirs = store_medium_fact(other, "Grace keeps this to herself.")
        named = store_cluster(other, theirs) if target == "cluster" else theirs
        if target == "belief":
            with tenant_transaction(agent.tenant_id):
                belief = NewBelief(category=BeliefCategory.WORLD, statement="Mine alone.")
                named = str(add_belief(agent_id=other.id, belief=belief, actor="test").id)
        run_replies(reply_of(action_of("maintain", target=target, id=named, verdict=verdict, reason="why")))

        assert first_action(agent)["outcome"] == "failure"
        assert "there is no" in first_action(agent)["summary"]
