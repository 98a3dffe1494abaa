"""Vectors of a heartbeat: the agent's own model, and no transaction that waits for a remote embedder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import structlog
from django.db import connections

from apps.agents.models import Agent, ScheduleState
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.legs.fetching import Fetcher
from apps.memories.models import Memory, Mind
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.decision import Decision, DecisionVerdict
from arbor.heartbeat.replies.reply import MemoryNote, Reply
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import decisions, orientation
from arbor.pipeline.engine import Steps, run_alone
from tests.integration.heartbeats.batch import Batch
from tests.integration.heartbeats.conftest import REST, heartbeats_of, lose_lease, lose_worker, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of, store_memory
from tests.support.database import recorded_statements
from tests.support.embedders import RemoteEmbedder, registered_embedder
from tests.unit.heartbeat.builders import goal
from tests.unit.heartbeat.state_builders import heartbeat_of

REMOTE = EmbeddingModel(name="tei/remote", dimension=64)
REPLY = Reply(memory_notes=[MemoryNote(text="Ferries are late on Sundays.")])
DECISIONS = [
    Decision(index=0, action="recall", params={"query": "ferries"}, verdict=DecisionVerdict.RUN),
    Decision(index=1, action="remember", params={"content": "The cook sleeps."}, verdict=DecisionVerdict.RUN),
]


class ObservedEmbedder(RemoteEmbedder):
    """A remote embedder that records open transactions, and lets a test act during a request."""

    def __init__(self) -> None:
        super().__init__(REMOTE.dimension)
        self.model = REMOTE.name
        #: Whether a transaction was open, as seen at each request.
        self.open: set[bool] = set()
        #: Is called at the start of each request.
        self.on_request: Callable[[], None] | None = None

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.open.add(connections[APP].in_atomic_block)
        if self.on_request is not None:
            self.on_request()
        return super().embed(texts)


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObservedEmbedder]:
    """Register a remote embedder beside the one in this process, and return it."""
    embedder = ObservedEmbedder()
    with registered_embedder(monkeypatch, embedder, name=REMOTE.name):
        yield embedder


@pytest.fixture
def remote_agent(agent: Agent, remote: ObservedEmbedder) -> Agent:
    """Return an agent whose vectors come from the remote embedder."""
    create_mind(agent)
    return agent


def create_mind(agent: Agent) -> None:
    """Give an agent a mind of the remote embedder; its memories have no vectors yet."""
    with tenant_transaction(agent.tenant_id):
        Mind.objects.update_or_create(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            defaults={"embedding_model": REMOTE.name, "embedding_dimension": REMOTE.dimension},
        )
        Memory.objects.filter(agent_id=agent.id).update(embedding=None, embedding_model="")


def run_embedding_step(tenant: Tenant, step: Steps[HeartbeatState]) -> HeartbeatState:
    """Run a step that needs vectors, which embedders make outside of any transaction; return its state."""
    fetcher = Fetcher(tenant.id, datetime.now(UTC))

    def answer(need: Any) -> Mapping[str, Any]:
        member: Any = SimpleNamespace(agent=SimpleNamespace(id=tenant.id), need=need)
        (vectors,) = fetcher.embed([member])
        return dict(vectors)

    return run_alone(step, answer).state


def state_with_decisions(model: EmbeddingModel | None) -> HeartbeatState:
    return heartbeat_of(embedding_model=model, decisions=DECISIONS, reply=REPLY)


def test_queries_are_embedded_remotely_and_stored_texts_are_not(
    tenant: Tenant, remote: ObservedEmbedder
) -> None:
    vectors = run_embedding_step(tenant, decisions.embed(state_with_decisions(REMOTE))).vectors
    assert {text: len(vector) for text, vector in vectors.items()} == {"ferries": 64}
    # The examples of boundaries were embedded too.
    assert "ferries" in remote.asked
    assert not {"The cook sleeps.", "Ferries are late on Sundays."} & set(remote.asked)


def test_in_this_process_the_agents_own_model_embeds_all_texts(tenant: Tenant) -> None:
    for model, length in ((EmbeddingModel(name="wordllama", dimension=128), 128), (None, 256)):
        vectors = run_embedding_step(tenant, decisions.embed(state_with_decisions(model))).vectors
        assert {text: len(vector) for text, vector in vectors.items()} == dict.fromkeys(
            ["ferries", "The cook sleeps.", "Ferries are late on Sundays."], length
        )


def test_the_focus_is_embedded_by_the_agents_own_model(tenant: Tenant, remote: ObservedEmbedder) -> None:
    def focus_on(title: str) -> HeartbeatState:
        heartbeat = heartbeat_of(embedding_model=REMOTE).with_situation(goals=[goal(title=title)])
        return run_embedding_step(tenant, orientation.focus(heartbeat))

    focus = focus_on("Where is the ferry?").focus
    assert focus is not None
    assert focus.vector is not None
    assert len(focus.vector) == 64
    remote.away = True
    focus = focus_on("Who sleeps?").focus
    assert focus is not None
    assert (focus.text != "", focus.vector) == (True, None)
    query = DECISIONS[0].model_copy(update={"params": {"query": "cooks"}})
    heartbeat = heartbeat_of(embedding_model=REMOTE, decisions=[query], reply=REPLY)
    assert run_embedding_step(tenant, decisions.embed(heartbeat)).vectors == {}


# --- Whole heartbeats with a remote embedder -----------------------------------------------------------

RECALLS = reply_of(
    actions=[action_of("recall", query="ferries"), action_of("remember", content="The cook sleeps.")],
    memory_notes=[{"text": "Ferries are late on Sundays."}],
)


def test_no_transaction_is_open_while_a_remote_embedder_is_asked(
    fleet: Fleet, remote_agent: Agent, remote: ObservedEmbedder, scripted: Script
) -> None:
    scripted(RECALLS)
    store_memory(remote_agent, "Ferries leave at noon.")
    remote.asked.clear()
    fleet.claim(remote_agent)
    fleet.run()

    (heartbeat,) = heartbeats_of(remote_agent)
    assert heartbeat.status == HeartbeatStatus.DONE, heartbeat.reason
    assert [action["outcome"] for action in heartbeat.actions] == ["success", "success"]
    assert remote.open == {False}
    assert "ferries" in remote.asked
    # The focus of the first leg, and the query of the second: each requested once, and no stored text.
    assert len(remote.asked) == len(set(remote.asked))
    with tenant_transaction(remote_agent.tenant_id):
        stored = Memory.objects.filter(agent_id=remote_agent.id, source=f"heartbeat:{heartbeat.id}")
        waiting = dict(stored.values_list("content", "embedding"))
    assert set(waiting.values()) == {None}
    assert not set(waiting) & set(remote.asked)


def test_a_leg_that_only_stores_never_leaves_its_transaction(
    fleet: Fleet, remote_agent: Agent, remote: ObservedEmbedder, scripted: Script
) -> None:
    scripted(REST)
    fleet.claim(remote_agent)
    fleet.step()
    fleet.step()
    remote.asked.clear()
    begun: list[str] = []

    def record_locks(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        begun.extend([sql] if "s.state IN ('queued', 'running')" in sql else [])
        return execute(sql, params, many, context)

    with connections[APP].execute_wrapper(record_locks), structlog.testing.capture_logs() as logs:
        fleet.run()

    (heartbeat,) = heartbeats_of(remote_agent)
    assert heartbeat.status == HeartbeatStatus.DONE, heartbeat.reason
    assert remote.asked == []
    # The leases are locked once in each transaction.
    assert len(begun) == 1
    assert [entry for entry in logs if entry["event"] == "embedding_skipped"] == []


def test_a_recall_uses_words_alone_while_the_embedder_is_away(
    fleet: Fleet, remote_agent: Agent, remote: ObservedEmbedder, scripted: Script
) -> None:
    scripted(RECALLS)
    remote.away = True
    store_memory(remote_agent, "Ferries leave at noon.")
    fleet.claim(remote_agent)
    fleet.run()

    (heartbeat,) = heartbeats_of(remote_agent)
    assert heartbeat.status == HeartbeatStatus.DONE, heartbeat.reason
    assert heartbeat.actions[0]["outcome"] == "success"


def test_a_heartbeat_lost_while_embedding_is_left_to_its_new_worker(
    fleet: Fleet, remote_agent: Agent, remote: ObservedEmbedder, scripted: Script
) -> None:
    scripted(REST)

    def lose_to_another_worker() -> None:
        remote.on_request = None
        lose_worker(fleet, remote_agent)

    fleet.claim(remote_agent)
    remote.on_request = lose_to_another_worker
    assert not fleet.deliver(fleet.pop_message())
    assert heartbeats_of(remote_agent) == []

    fleet.run()
    (heartbeat,) = heartbeats_of(remote_agent)
    assert heartbeat.status == HeartbeatStatus.DONE, heartbeat.reason


# --- Batches -------------------------------------------------------------------------------------------


@pytest.fixture
def batch(
    fleet: Fleet,
    tenant: Tenant,
    new_agent: Callable[..., Agent],
    remote: ObservedEmbedder,
    no_leg_time_limit: None,
) -> Batch:
    """Return agents of one tenant, the first two of which have vectors from the remote embedder."""
    agents = [new_agent(tenant, name=f"Agent {number}") for number in range(3)]
    for agent in agents[:2]:
        create_mind(agent)
    for agent in agents:
        store_memory(agent, "Ferries leave at noon.")
    remote.asked.clear()
    remote.open.clear()
    return Batch(fleet, agents)


def test_a_batch_leaves_its_transaction_once_for_all_vectors(
    batch: Batch, remote: ObservedEmbedder, scripted: Script
) -> None:
    scripted(RECALLS, REST, repeat=True)
    batch.dispatch()
    with recorded_statements() as sent:
        assert len(batch.run_leg()) == 3

    assert remote.open == {False}
    # The leases are locked, marked as running, and locked again.
    assert sum("s.state IN ('queued', 'running')" in statement for statement in sent) == 2
    assert (
        sum(
            "SET state = 'running', lease_until" in statement and "json" not in statement
            for statement in sent
        )
        == 1
    )
    batch.execute_calls()
    while batch.run_leg():
        batch.execute_calls()
    assert [heartbeat.status for heartbeat in batch.heartbeats()] == [HeartbeatStatus.DONE] * 3
    assert remote.open == {False}


def test_leases_count_as_running_while_a_batch_embeds(
    batch: Batch, remote: ObservedEmbedder, scripted: Script
) -> None:
    scripted(REST, repeat=True)
    states: list[set[str]] = []

    def record_states() -> None:
        states.append({schedule_of(agent).state for agent in batch.agents})

    remote.on_request = record_states
    batch.dispatch()
    batch.run_leg()
    assert states != []
    assert all(state == {ScheduleState.RUNNING} for state in states)


def test_a_lease_lost_while_a_batch_embeds_is_left_to_its_new_worker(
    batch: Batch, remote: ObservedEmbedder, scripted: Script, fleet: Fleet
) -> None:
    scripted(REST, repeat=True)
    lost_agent = batch.agents[1]

    def lose_to_another_worker() -> None:
        remote.on_request = None
        lose_lease(lost_agent)
        assert fleet.dispatch().lost == 1

    batch.dispatch()
    remote.on_request = lose_to_another_worker
    assert batch.run_leg() == {agent.id for agent in batch.agents} - {lost_agent.id}
    assert heartbeats_of(lost_agent) == []
    fleet.run()
    assert [heartbeat.status for heartbeat in batch.heartbeats()] == [HeartbeatStatus.DONE] * 3
