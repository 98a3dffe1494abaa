"""The order in which all writers lock the rows of an agent (docs/architecture.md, "Locks"), so that none deadlocks.

A heartbeat has its agent's schedule locked, and locks the mind and the agent's row in the order of its actions. Whoever
needs both waits for the schedule before it locks either.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import pytest
from django.db import IntegrityError, connection

from apps.agents.models import Agent, AgentPolicy, HeartbeatSchedule
from apps.agents.services.locks import lock_schedule
from apps.audit.models import AuditEvent
from apps.authority.services.approvals import deny
from apps.calls.models import DailyUsage, ExternalCall
from apps.contacts.models import ChatSession
from apps.contacts.services.chat import exchange_turns, open_session, receive_turn
from apps.fleet.lifecycle import destroy_agent
from apps.fleet.policy import set_policy
from apps.heartbeats.services.calls.calls import execute_call
from apps.memories.models import BufferItem, Memory
from apps.memories.services.embedding import backlog
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.reembed import switch_model
from apps.memories.services.retention.archive import archive, purge
from apps.memories.services.retention.buffer import BufferSearch, add_buffer_items, search_buffers
from apps.memories.services.store.remember import remember, store
from apps.memories.services.store.term_counts import lock_minds
from apps.selves.models import Belief, Proposal
from apps.selves.services.beliefs import confirm_belief
from apps.selves.services.decisions import ProposalVerdict, decide_proposal, decide_proposals
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import REFUSED, EmbeddingModel
from arbor.errors import EmbeddingFailed, NotFound, TransitionIllegal
from arbor.memory.buffer import NewBufferItem
from arbor.memory.values import NewMemory
from arbor.selves.proposals import ProposalKind
from tests.factories.approvals import ActionApprovalFactory
from tests.factories.heartbeats import DailyUsageFactory, MaintenanceCallFactory
from tests.factories.selves import BeliefFactory, ProposalFactory
from tests.integration.heartbeats.conftest import begin_heartbeat, heartbeats_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of, store_memory
from tests.integration.heartbeats.test_races import run_race, with_messages
from tests.integration.heartbeats.writers import ANN, Operation, Writers
from tests.support.races import in_tenant, none_if_refused, race
from tests.support.threads import await_blocked_session, in_own_connection, start_blocked

ROUNDS = 4
#: The text of a buffer item.
ITEM = "A parcel came."


@pytest.mark.parametrize(
    "name",
    [
        "open_conversation",
        "pause",
        "message",
        "destroy",
        "accept_identity",
        "accept_fact",
        "propose",
        "reject",
        "defer",
        "believe",
        "doubt_belief",
        "relate_belief",
        "teach_against_belief",
    ],
)
def test_a_writer_waits_for_the_schedule_with_nothing_locked(agent: Agent, name: str) -> None:
    writers = Writers(agent)
    with tenant_transaction(agent.tenant_id):
        lock_schedule(agent.id)
        start_blocked(writers.operation(name))
        # What a heartbeat locks after its schedule is free.
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
        assert Agent.objects.select_for_update(no_key=True).filter(id=agent.id).exists()
        lock_minds([agent.id])
        for rows in (Belief.objects.all(), Proposal.objects.all(), BufferItem.objects.all()):
            locked = rows.filter(agent_id=agent.id).order_by("id").select_for_update()
            assert list(locked)


def test_decisions_about_several_agents_lock_schedules_in_their_order(
    tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    first, later = sorted((new_agent(tenant, name=name) for name in ("Bo", "Cy")), key=lambda agent: agent.id)
    with tenant_transaction(tenant.id):
        ids = [ProposalFactory(agent=agent, status="pending", change={}).id for agent in (later, first)]
    with tenant_transaction(tenant.id):
        lock_schedule(first.id)
        start_blocked(
            in_tenant(
                first.tenant_id,
                decide_proposals,
                proposal_ids=ids,
                decision=ProposalVerdict.REJECT,
                decided_by=ANN,
            )
        )
        assert list(HeartbeatSchedule.objects.filter(agent_id=later.id).select_for_update(nowait=True))
    with tenant_transaction(tenant.id):
        assert set(Proposal.objects.values_list("status", flat=True)) == {"rejected"}


def test_two_acceptances_at_once_are_recorded_once(agent: Agent) -> None:
    writers = Writers(agent)
    accept_fact = partial(
        decide_proposal,
        proposal_id=writers.proposals[ProposalKind.FACT],
        decision=ProposalVerdict.ACCEPT,
        decided_by=ANN,
    )
    with tenant_transaction(agent.tenant_id):
        lock_schedule(agent.id)
        start_blocked(in_tenant(agent.tenant_id, accept_fact))
        accept_fact()
    with tenant_transaction(agent.tenant_id):
        accepted = AuditEvent.objects.filter(agent_id=agent.id, message__startswith="accepted the proposal")
        assert accepted.count() == 1


def test_a_promotion_waits_for_the_schedule_with_no_item_locked(agent: Agent) -> None:
    writers = Writers(agent)
    with tenant_transaction(agent.tenant_id):
        lock_schedule(agent.id)
        start_blocked(writers.operation("promote_item"))
        assert list(BufferItem.objects.filter(id=writers.item_id).select_for_update(nowait=True))
    with tenant_transaction(agent.tenant_id):
        assert BufferItem.objects.get(id=writers.item_id).promoted_to_id is not None


def _purge_memory(agent: Agent) -> Operation:
    memory_id = UUID(store_memory(agent, ITEM))
    with tenant_transaction(agent.tenant_id):
        archive(memory_ids=[memory_id], reason="test", actor=ANN)
    return in_tenant(agent.tenant_id, purge, memory_ids=[memory_id], reason="test", actor=ANN)


def _switch_embedder(agent: Agent) -> Operation:
    with tenant_transaction(agent.tenant_id):
        BufferItem.objects.filter(agent_id=agent.id).update(embedding_model=f"{REFUSED}wordllama")
    shorter = EmbeddingModel(name="wordllama", dimension=64)
    return in_tenant(
        agent.tenant_id, switch_model, agent_id=agent.id, model=shorter, actor=ANN, leave_missing=True
    )


def _refuse_item(_: Agent) -> Operation:
    return embed_backlog


#: Functions that prepare an operation on an agent's buffer item.
ITEM_WRITERS = pytest.mark.parametrize("writer", [_purge_memory, _switch_embedder, _refuse_item])


@pytest.fixture
def refusing_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the embedder refuse each text of the backlog."""

    def refuse(**_: object) -> None:
        raise EmbeddingFailed("the text cannot be embedded")

    monkeypatch.setattr(backlog, "embed_texts", refuse)


def _add_item(agent: Agent) -> UUID:
    with tenant_transaction(agent.tenant_id):
        return add_buffer_items(agent_id=agent.id, items=[NewBufferItem(content=ITEM)])[0]


def _use_items(agent: Agent) -> None:
    """Lock what a heartbeat locks before it stores memories: the schedule, and the items that it finds, to count their use."""
    lock_schedule(agent.id)
    (found,) = search_buffers([BufferSearch(agent_id=agent.id, text=ITEM, counts=True)])
    assert [item.content for item in found] in ([ITEM], [])


@ITEM_WRITERS
def test_a_writer_of_items_waits_for_a_heartbeat_with_no_mind_locked(
    agent: Agent, refusing_embedder: None, writer: Callable[[Agent], Operation]
) -> None:
    item_id, operation = _add_item(agent), writer(agent)
    with tenant_transaction(agent.tenant_id):
        _use_items(agent)
        start_blocked(operation)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
        lock_minds([agent.id])
    with tenant_transaction(agent.tenant_id):
        item = BufferItem.objects.filter(id=item_id).first()
    if writer is _purge_memory:
        assert item is None
    else:
        assert item is not None
        assert (item.accesses, item.embedding) == (1, None)
        assert item.embedding_model.startswith(REFUSED) is (writer is _refuse_item)


@ITEM_WRITERS
def test_a_writer_of_items_and_a_heartbeat_end_in_either_order(
    tenant: Tenant,
    new_agent: Callable[..., Agent],
    refusing_embedder: None,
    writer: Callable[[Agent], Operation],
) -> None:
    for number in range(ROUNDS):
        agent = new_agent(tenant, f"Vega {number}")
        _add_item(agent)

        def store_after_use(agent: Agent = agent) -> None:
            with tenant_transaction(agent.tenant_id):
                _use_items(agent)
                lock_minds([agent.id])

        operations = [store_after_use, writer(agent)]
        race(*(operations if number % 2 else reversed(operations)))


def test_a_change_of_limits_waits_for_the_schedule_first(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        set_policy(agent_id=agent.id, changes={"daily_heartbeats": 5}, actor=ANN)
    change = {"agent_id": agent.id, "changes": {"daily_heartbeats": 6}, "actor": ANN}
    with tenant_transaction(agent.tenant_id):
        lock_schedule(agent.id)
        start_blocked(in_tenant(agent.tenant_id, set_policy, **change))
        assert list(AgentPolicy.objects.filter(agent_id=agent.id).select_for_update(nowait=True))
    with tenant_transaction(agent.tenant_id):
        assert AgentPolicy.objects.get(agent_id=agent.id).daily_heartbeats == 6


def test_an_answer_waits_for_the_schedule_with_no_usage_locked(agent: Agent, scripted: Script) -> None:
    scripted(json.dumps({"thinking": "", "reply": "Yes."}), repeat=True)
    asked, locked = threading.Event(), threading.Event()
    with tenant_transaction(agent.tenant_id):
        session_id = open_session(agent_id=agent.id, person=ANN).id
        DailyUsageFactory(agent=agent)

    def execute(*, call_id: UUID, tenant_id: UUID) -> bool:
        asked.set()
        assert locked.wait(20)
        return execute_call(call_id=call_id, tenant_id=tenant_id)

    thread = in_own_connection(
        lambda: exchange_turns(
            tenant_id=agent.tenant_id, session_id=session_id, text="Are you there?", execute=execute
        )
    )
    assert asked.wait(20)
    with tenant_transaction(agent.tenant_id):
        lock_schedule(agent.id)
        locked.set()
        await_blocked_session()
        assert list(DailyUsage.objects.filter(agent_id=agent.id).select_for_update(nowait=True))
    thread.join(20)
    with tenant_transaction(agent.tenant_id):
        assert DailyUsage.objects.get(agent_id=agent.id).calls > 4


def test_a_purge_waits_for_a_reply_with_no_mind_locked(agent: Agent) -> None:
    memory_id = UUID(store_memory(agent, "The ferry left."))
    with tenant_transaction(agent.tenant_id):
        subject = {"memories": [str(memory_id)]}
        call = MaintenanceCallFactory(
            agent=agent, purpose="extract", subject=subject, subject_key="memories:1"
        )
        archive(memory_ids=[memory_id], reason="test", actor=ANN)
    with tenant_transaction(agent.tenant_id):
        list(ExternalCall.objects.filter(id=call.id).select_for_update())
        start_blocked(in_tenant(agent.tenant_id, purge, memory_ids=[memory_id], reason="test", actor=ANN))
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
        lock_minds([agent.id])
    with tenant_transaction(agent.tenant_id):
        assert not Memory.objects.filter(id=memory_id).exists()
        assert ExternalCall.objects.get(id=call.id).reply == ""


def test_a_destroyer_waits_for_a_conversation_with_no_schedule_locked(agent: Agent) -> None:
    writers = Writers(agent)
    with tenant_transaction(agent.tenant_id):
        session = open_session(agent_id=agent.id, person=ANN)
    with tenant_transaction(agent.tenant_id):
        list(ChatSession.objects.filter(id=session.id).select_for_update())
        start_blocked(writers.operation("destroy"))
        # A turn locks the conversation, then the schedule.
        receive_turn(session_id=session.id, text="Are you there?")
    assert not _exists(agent)


def test_a_destroyer_waits_for_an_edit_that_still_needs_its_agent(agent: Agent) -> None:
    writers = Writers(agent)
    with tenant_transaction(agent.tenant_id):
        belief = BeliefFactory(agent=agent)
    with tenant_transaction(agent.tenant_id):
        list(Belief.objects.filter(id=belief.id).select_for_update())
        start_blocked(writers.operation("destroy"))
        # The record of the edit refers to the agent.
        confirm_belief(belief_id=belief.id, actor=ANN, reason="still so", now=datetime.now(UTC))
    assert not _exists(agent)


def test_a_destroyer_waits_for_a_mind_that_still_needs_its_agent(agent: Agent) -> None:
    writers = Writers(agent)
    with tenant_transaction(agent.tenant_id):
        lock_minds([agent.id])
        start_blocked(writers.operation("destroy"))
        memory = NewMemory(content="The ferry left.", occurred_at=datetime.now(UTC))
        assert store(agent_id=agent.id, memories=[memory], vectors=None).stored == 1
    assert not _exists(agent)


def test_a_decision_about_a_destroyed_agent_finds_no_request(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        approval_id = ActionApprovalFactory(agent=agent).id
    with tenant_transaction(agent.tenant_id):
        lock_schedule(agent.id)
        thread = in_own_connection(in_tenant(agent.tenant_id, deny, approval_id=approval_id, actor=ANN))
        await_blocked_session()
        destroy_agent(agent_id=agent.id, confirm=agent.name, actor=ANN, saves_seed=False)
    with pytest.raises(NotFound, match="deleted with its agent"):
        thread.join(20)


def _exists(agent: Agent) -> bool:
    with tenant_transaction(agent.tenant_id):
        return bool(Agent.objects.filter(id=agent.id).exists())


@pytest.mark.parametrize(
    "name", ["accept_identity", "doubt_belief", "teach_against_belief", "promote_item", "open_conversation"]
)
def test_a_writer_and_a_heartbeat_end_in_either_order(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], scripted: Script, name: str
) -> None:
    actions = [
        action_of("remember", content="The ferry waits at the quay.", type="semantic", importance=0.6),
        action_of(
            "brainstorm_goals", goals=[{"title": "Find the ferry", "description": "", "rationale": ""}]
        ),
    ]
    insight = {"kind": "value", "content": "I am patient.", "confidence": 0.8, "evidence": []}
    scripted(
        reply_of(actions=actions, identity_insights=[insight], memory_notes=[{"text": "It is late."}]),
        repeat=True,
    )
    for number in range(ROUNDS):
        agent = new_agent(tenant, f"Vega {number}")
        writers = Writers(agent)
        begin_heartbeat(fleet, agent)
        # The first leg asks the model, the second acts by its reply.
        fleet.step()
        fleet.step()
        message = fleet.pop_message()
        run_race(
            fleet,
            with_messages(partial(fleet.deliver, message)),
            with_messages(writers.operation(name)),
            reverse=bool(number % 2),
        )
        assert [heartbeat.status for heartbeat in heartbeats_of(agent)] == ["done"]
        fleet.messages.clear()


def test_an_agent_is_destroyed_while_people_talk_to_it(
    tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    for number in range(ROUNDS):
        agent = new_agent(tenant, f"Vega {number}")
        with tenant_transaction(agent.tenant_id):
            session_id = open_session(agent_id=agent.id, person=ANN).id
        memory = NewMemory(content="The ferry left.", occurred_at=datetime.now(UTC))
        talk = in_tenant(agent.tenant_id, receive_turn, session_id=session_id, text="Are you there?")
        other = in_tenant(agent.tenant_id, open_session, agent_id=agent.id, person="cli:bo")
        teach = partial(remember, tenant_id=agent.tenant_id, agent_id=agent.id, memories=[memory])
        destroy = in_tenant(agent.tenant_id, destroy_agent, agent_id=agent.id, confirm=agent.name, actor=ANN)
        late = (NotFound, TransitionIllegal, IntegrityError)
        operations: list[Operation] = [
            none_if_refused(operation, *late) for operation in (talk, other, teach)
        ]
        operations.append(destroy)
        race(*(operations if number % 2 else reversed(operations)))
        assert not _exists(agent)
