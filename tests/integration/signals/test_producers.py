"""Signals of the catalogue: each is emitted by the change that it describes."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from apps.agents.models import Agent
from apps.agents.services.identity import rotate_agent_key
from apps.agents.services.percepts import perceive
from apps.agents.services.publication import publish_agent, unpublish_agent
from apps.authority.models import ActionApproval
from apps.authority.services.approvals import approve
from apps.authority.services.grants import grant_capability
from apps.authority.services.modes import clear_mode, set_mode
from apps.authority.services.trust_tiers import set_tier
from apps.contacts.services.chat import end_session, exchange_turns, open_session
from apps.contacts.services.outbox import OutgoingMessage, add_to_outbox
from apps.fleet.lifecycle import destroy_agent, pause_agent, resume_agent, sleep_agent, stop_agent, wake_agent
from apps.fleet.pauses import pause_all_agents, resume_all_agents
from apps.fleet.policy import set_policy
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal, move_goal, record_progress
from apps.heartbeats.services.calls.calls import execute_call
from apps.knowledge.services.active_skills import choose_skills
from apps.knowledge.services.documents import NewDocument, add_document, withdraw_document
from apps.knowledge.services.indexing import index_document
from apps.knowledge.services.skills import add_skill, replace_skill
from apps.knowledge.services.subscriptions import NewSubscription, subscribe
from apps.memories.models import Episode
from apps.memories.services.embedding.embedding import EmbeddedTexts
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.graph.relations import connect
from apps.memories.services.jobs.summaries import Summary, store_summaries
from apps.memories.services.retention.archive import archive, purge, restore
from apps.memories.services.retention.buffer import add_buffer_items, promote
from apps.memories.services.store.remember import remember
from apps.memories.services.store.revision import confirm
from apps.queues import captured
from apps.selves.services.peers import Dealings, record_meetings
from apps.selves.services.proposals import accept, defer, propose, reject
from apps.selves.services.rollback import roll_back
from apps.signals.services.reading import read_signals
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.services.answers import decide_step
from arbor.agents.template import TrustTier
from arbor.authority.grants import action_resource
from arbor.authority.modes import TrustMode
from arbor.contacts.values import Audience
from arbor.goals.values import GoalState
from arbor.heartbeat.needs import Meeting
from arbor.ids import uuid7
from arbor.knowledge.subscriptions import SignalSource
from arbor.memory.buffer import NewBufferItem
from arbor.memory.relations import Relation
from arbor.memory.values import MemoryType, NewMemory
from arbor.selves.proposals import MAX_DEFERRALS, NewProposal, ProposalKind
from arbor.signals import CATALOGUE, Cursor
from tests.factories.authority import allow
from tests.integration.heartbeats.conftest import run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of
from tests.integration.signals.conftest import names_of
from tests.integration.skills.conftest import skill_text
from tests.integration.workflows.workflow_setup import latest_step, start_new_workflow
from tests.support.document_files import pdf

ACTOR = "cli:nora"
LIE = "I will lie to the harbour master."


def run_lifecycle(agent: Agent, other: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        pause_agent(agent_id=agent.id, actor=ACTOR)
        resume_agent(agent_id=agent.id, actor=ACTOR)
        sleep_agent(agent_id=agent.id, actor=ACTOR)
        publish_agent(agent_id=agent.id, actor=ACTOR)
        unpublish_agent(agent_id=agent.id, actor=ACTOR)
        wake_agent(agent_id=agent.id, actor=ACTOR)
        stop_agent(agent_id=other.id, actor=ACTOR)
        destroy_agent(agent_id=other.id, confirm=other.name, actor=ACTOR)


def change_memories(agent: Agent) -> None:
    memories = [
        NewMemory(content=text, type=MemoryType.SEMANTIC, occurred_at=agent.created_at)
        for text in ("Reefs are red.", "Tides turn.")
    ]
    ids = remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories).ids
    with tenant_transaction(agent.tenant_id):
        connect(
            agent_id=agent.id,
            source_id=str(ids[0]),
            target_id=str(ids[1]),
            relation=Relation.ASSOCIATED,
        )
        confirm(agent_id=agent.id, memory_id=ids[0], reason="still true", actor=ACTOR)
        archive(memory_ids=ids, reason="no longer needed", actor=ACTOR)
        restore(memory_ids=ids[:1], reason="needed after all", actor=ACTOR)
        purge(memory_ids=ids[1:], reason="wrong", actor=ACTOR)
        (item,) = add_buffer_items(
            agent_id=agent.id, items=[NewBufferItem(content="The fog lifts.", role="", source="test")]
        )
    promote(tenant_id=agent.tenant_id, agent_id=agent.id, item_id=item, actor=ACTOR)


def decide_about_proposals(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        proposals = [
            propose(
                agent_id=agent.id,
                proposals=[
                    NewProposal(
                        kind=ProposalKind.PREFERENCE,
                        content=f"Prefer {word}",
                        change={"key": word, "value": "always"},
                        confidence=0.9,
                        evidence=(),
                        source="test",
                    )
                ],
            ).made[0]
            for word in ("lighthouses", "anchors", "sextants")
        ]
        accept(proposal_id=proposals[0].id, decided_by=ACTOR)
        reject(proposal_id=proposals[1].id, decided_by=ACTOR)
        for _ in range(MAX_DEFERRALS):
            defer(proposal_id=proposals[2].id, decided_by=ACTOR)


def change_goals(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        # The goals of the template fill the backlog.
        Goal.objects.filter(agent_id=agent.id).delete()
        done = create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.ACTIVE)
        record_progress(goal_id=done.id, note="half of it", fraction=0.5)
        move_goal(goal_id=done.id, to=GoalState.COMPLETED)
        left = create_goal(agent_id=agent.id, title="Count the lamps")
        move_goal(goal_id=left.id, to=GoalState.ABANDONED, reason="there are none")


def change_self_and_identity(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        roll_back(agent_id=agent.id, to=1, actor=ACTOR)
        rotate_agent_key(agent_id=agent.id, actor=ACTOR)
        set_tier(agent_id=agent.id, tier=TrustTier.VETERAN, actor=ACTOR)


def ask_for_approval(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    with tenant_transaction(agent.tenant_id):
        allow(agent, "remember")
        set_mode(agent_id=agent.id, prefix=action_resource("remember"), mode=TrustMode.ASK, actor=ACTOR)
    scripted(reply_of(actions=[action_of("remember", content="The buoy is green.")]), repeat=True)
    run_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        approve(approval_id=ActionApproval.objects.get(agent_id=agent.id).id, actor=ACTOR)
        clear_mode(agent_id=agent.id, prefix=action_resource("remember"), actor=ACTOR)


def talk(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        session = open_session(agent_id=agent.id, person=ACTOR)
    exchange_turns(
        tenant_id=agent.tenant_id, session_id=session.id, text="How is the reef?", execute=execute_call
    )
    with tenant_transaction(agent.tenant_id):
        end_session(session_id=session.id)


def write_message(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        add_to_outbox(
            OutgoingMessage(
                agent_id=agent.id,
                heartbeat_id=uuid7(),
                index=0,
                audience=Audience.USER,
                subject="News",
                content="The reef is red.",
                at=agent.created_at,
            )
        )


def run_heartbeats(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    with tenant_transaction(agent.tenant_id):
        allow(agent, "recall", "remember", "rest")
        goal = create_goal(agent_id=agent.id, title="Map the coast", state=GoalState.ACTIVE)
        perceive(agent_id=agent.id, kind="environment", content="The fog lifts.", actor="test", urgent=True)
    first = reply_of(
        thinking="What is out there?",
        actions=[
            action_of("recall", query="reef"),
            action_of("remember", content="The reef is red."),
            action_of("remember", content=LIE),
        ],
        memory_notes=[{"text": "The tide turns at noon."}],
        decompositions=[
            {"goal_id": str(goal.id), "intentions": [{"action": "recall", "description": "look"}]}
        ],
    )
    scripted(
        first,
        # The reply of the round trip after the recall.
        reply_of(concerns=["the anchor drags"], curiosity=["what lives below"]),
        reply_of(resolved=["the anchor drags", "what lives below"]),
        repeat=True,
    )
    run_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        perceive(agent_id=agent.id, kind="environment", content="The fog is back.", actor="test")
        set_policy(agent_id=agent.id, changes={"daily_heartbeats": 2}, actor="test")
    run_heartbeat(fleet, agent)


def run_unusable_reply(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    with tenant_transaction(agent.tenant_id):
        set_policy(agent_id=agent.id, changes={"daily_heartbeats": None}, actor="test")
        perceive(agent_id=agent.id, kind="environment", content="A storm comes.", actor="test")
    scripted("so what", repeat=True)
    run_heartbeat(fleet, agent)


def meet(agent: Agent, number: int) -> None:
    with tenant_transaction(agent.tenant_id):
        record_meetings(
            agent_id=agent.id,
            heartbeat_number=number,
            now=agent.created_at,
            dealings=Dealings(met=[Meeting(name="nora", peer_id="", note=None)]),
        )


def summarize(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        Episode.objects.filter(agent_id=agent.id).update(ended_at=agent.created_at)
        episode = Episode.objects.filter(agent_id=agent.id).order_by("-id").first()
        assert episode is not None
        store_summaries(
            agent.id,
            summaries=[Summary(episode_id=episode.id, size=episode.size, text="It was foggy.", by="test")],
            embedded=EmbeddedTexts(model=model_of(agent.id), vectors=None),
        )


def run_workflow(fleet: Fleet, tenant: Tenant) -> None:
    run = start_new_workflow(tenant, 'ask [type=approval, question="?"]; start -> ask -> done')
    fleet.run()
    with tenant_transaction(tenant.id):
        decide_step(step_id=latest_step(run, "ask").id, approved=True, actor=ACTOR)
    fleet.run()


def choose_skill_and_subscribe(tenant: Tenant, agent: Agent) -> None:
    """Choose a skill, change it, and subscribe to signals."""
    with captured(), tenant_transaction(tenant.id):
        add_skill(text=skill_text("lamps"), actor=ACTOR)
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        replace_skill(text=skill_text("lamps", "Count them twice."), actor=ACTOR)
        wanted = NewSubscription(names=["document.*"], source=SignalSource.SHARED)
        subscribe(agent_id=agent.id, wanted=wanted, actor=ACTOR)


def names_in(tenant: Tenant) -> set[str]:
    with tenant_transaction(tenant.id):
        return {record.name for record in read_signals(after=Cursor(), limit=1000).signals}


def share_documents(tenant: Tenant) -> None:
    """Publish a document, change it twice, the second time with a file that cannot be read, and withdraw it."""
    for content in (pdf(["One."]), pdf(["Two."]), b"%PDF-1.4 broken"):
        with captured(), tenant_transaction(tenant.id):
            new = NewDocument(name="a.pdf", content=content, publish=True)
            document = add_document(new=new, actor=ACTOR).document
        index_document(document_id=document.id, tenant_id=tenant.id)
    with tenant_transaction(tenant.id):
        withdraw_document(document_id=document.id, actor=ACTOR)


def test_every_signal_is_emitted_by_its_change(
    fleet: Fleet, tenant: Tenant, agent: Agent, new_agent: Callable[..., Agent], scripted: Script
) -> None:
    scripted(reply_of(), repeat=True)
    run_lifecycle(agent, new_agent(tenant, "Bo"))
    with tenant_transaction(tenant.id):
        grant_capability(agent_id=agent.id, resource="arbor://fs/read/docs", actor=ACTOR)
    change_memories(agent)
    decide_about_proposals(agent)
    change_self_and_identity(agent)
    change_goals(agent)
    talk(agent)
    write_message(agent)
    meet(agent, 1)
    meet(agent, 2)
    summarize(agent)
    run_heartbeats(fleet, agent, scripted)
    run_unusable_reply(fleet, agent, scripted)
    ask_for_approval(fleet, agent, scripted)
    run_workflow(fleet, tenant)
    share_documents(tenant)
    choose_skill_and_subscribe(tenant, agent)
    assert set(CATALOGUE) - names_in(tenant) == set()


def test_data_is_small_and_plain(tenant: Tenant, agent: Agent) -> None:
    change_memories(agent)
    change_goals(agent)
    with tenant_transaction(tenant.id):
        records = read_signals(after=Cursor(), limit=1000).signals
        assert records
        for record in records:
            assert len(str(record.data)) < 1000
            assert "Reefs are red" not in str(record.data)
            assert UUID(str(record.agent_id)) == agent.id


def test_a_pause_of_all_agents_is_emitted_for_each(
    tenant: Tenant, agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    other, paused = (new_agent(tenant, name) for name in ("Grace", "Edith"))
    with tenant_transaction(tenant.id):
        pause_agent(agent_id=paused.id, actor=ACTOR)
        pause_all_agents(actor=ACTOR)
    with tenant_transaction(tenant.id):
        resume_all_agents(actor=ACTOR)
    assert names_of(agent)[-2:] == names_of(other)[-2:] == ["agent.paused", "agent.resumed"]
    assert names_of(paused)[-2:] == ["agent.started", "agent.paused"]
