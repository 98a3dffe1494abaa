"""Batches of heartbeats: they have the same results as single heartbeats, need few statements, and are of one tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

import apps.heartbeats.services.legs.runner as runner
from apps.agents.models import ScheduleState
from apps.agents.services.percepts import perceive
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.legs.runner import advance_heartbeats
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import ModelUnavailable
from arbor.goals.values import GoalState
from arbor.models.ports import ModelRequest
from arbor.signals import SignalName
from tests.factories.authority import allow
from tests.integration.heartbeats.batch import (
    EIGHT,
    Batch,
    MakeAgent,
    assert_one_heartbeat_each,
    batch,
    batch_of_eight,
    rows_of,
    shorten,
)
from tests.integration.heartbeats.conftest import REST, heartbeats_of, lose_lease, make_due, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of, store_memory
from tests.integration.signals.conftest import signals_of
from tests.support.database import recorded_statements

__all__ = ["batch"]

DONE, FAILED = HeartbeatStatus.DONE, HeartbeatStatus.FAILED

pytestmark = pytest.mark.usefixtures("no_leg_time_limit")


def number_of(request: ModelRequest) -> int:
    """Return the number of the agent that a model request is from."""
    return next(number for number in range(EIGHT) if f"Agent {number}" in request.system)


# --- Results equal those of single heartbeats ----------------------------------------------------------

LIE = "I will lie to the harbour master."


def scripted_replies(goals: list[str]) -> list[list[Any]]:
    """Return the replies for each of eight agents, call after call; the last one repeats."""
    recall = action_of("recall", query="Who keeps the lighthouse?")
    remember = action_of("remember", content="The reef is red.")
    unknown_id = str(UUID(int=1))
    return [
        [REST],
        [reply_of(actions=[recall, remember], thinking="Who was it?"), reply_of(actions=[recall]), REST],
        [
            reply_of(
                memory_notes=[{"text": "The tide turns at noon."}, {"text": LIE}],
                new_goals=[{"title": "Count the lamps"}],
                goal_updates=[{"goal_id": goals[2], "progress": 0.5, "note": "half"}],
            ),
            reply_of(goal_updates=[{"goal_id": goals[2], "progress": 1}], concerns=["the wind"]),
            REST,
        ],
        ["so what"],
        [reply_of(actions=[action_of("connect", from_id=unknown_id, to_id=unknown_id, relation="causes")])],
        [reply_of(actions=[remember, remember, action_of("reflect", insight="Reefs are red.")]), REST],
        [ModelUnavailable("nobody answers"), REST],
        [
            reply_of(
                actions=[{**recall, "goal_id": goals[7]}, action_of("remember", content=LIE)],
                decompositions=[
                    {"goal_id": goals[7], "intentions": [{"action": "recall", "description": "look"}]}
                ],
            ),
            reply_of(actions=[action_of("reprioritize", goal_id=goals[7], state="queued")]),
            REST,
        ],
    ]


def prepare_agents(batch: Batch, scripted: Script) -> None:
    """Give each agent a goal, memories, a percept, and a model with the replies of `scripted_replies`."""
    goals = []
    for agent in batch.agents:
        store_memory(agent, "The lighthouse keeper is called Ines.")
        store_memory(agent, "On Fridays there is fresh bread.")
        with tenant_transaction(agent.tenant_id):
            allow(agent, "recall", "remember", "reflect", "connect", "reprioritize", "rest")
            Goal.objects.filter(agent_id=agent.id).delete()
            goal = create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.ACTIVE)
            perceive(agent_id=agent.id, kind="environment", content="The fog lifts.", actor="test")
        goals.append(str(goal.id))
    replies, calls = scripted_replies(goals), Counter[int]()

    def answer(request: ModelRequest) -> str:
        number = number_of(request)
        reply = replies[number][min(calls[number], len(replies[number]) - 1)]
        calls[number] += 1
        if isinstance(reply, Exception):
            raise reply
        return str(reply)

    scripted(answer, repeat=True)


def test_a_batch_ends_as_its_heartbeats_would_one_by_one(
    fleet: Fleet, tenant: Tenant, other_tenant: Tenant, new_agent: MakeAgent, scripted: Script
) -> None:
    batch, singly = batch_of_eight(fleet, tenant, new_agent), batch_of_eight(fleet, other_tenant, new_agent)
    for group, run in ((batch, batch.run), (singly, singly.run_singly)):
        prepare_agents(group, scripted)
        for _ in range(3):
            run()

    # The batch has failed heartbeats, heartbeats of several round trips, and heartbeats with dropped items.
    heartbeats = batch.heartbeats()
    assert {heartbeat.status for heartbeat in heartbeats} >= {DONE, FAILED}
    assert max(heartbeat.round_trips for heartbeat in heartbeats) > 1
    assert any(heartbeat.dropped for heartbeat in heartbeats)
    for batched, single in zip(batch.agents, singly.agents, strict=True):
        assert batched.name == single.name
        rows, rows_of_single = rows_of(batched), rows_of(single)
        for name in rows:
            assert rows[name] == rows_of_single[name], f"{batched.name}: {name}"
    # A heartbeat of a batch takes longer than its own share, because it waits for the others.
    shared = [heartbeat for heartbeat in heartbeats if heartbeat.elapsed_ms > 1.5 * heartbeat.own_ms]
    assert len(shared) >= EIGHT, "the heartbeats did not run in a batch"
    assert all(heartbeat.elapsed_ms == pytest.approx(heartbeat.own_ms) for heartbeat in singly.heartbeats())


def test_signals_of_a_batch_have_the_ids_of_their_heartbeats(
    fleet: Fleet, tenant: Tenant, new_agent: MakeAgent, scripted: Script
) -> None:
    batch = Batch(fleet, [new_agent(tenant, name=f"Agent {number}") for number in range(2)])
    looks, ends = batch.agents
    with tenant_transaction(tenant.id):
        allow(looks, "recall")
        # In the first leg, only this agent has a percept.
        perceive(agent_id=ends.id, kind="environment", content="The fog lifts.", actor="test")
    goal = reply_of(new_goals=[{"title": "Count the lamps"}])
    looking = iter([reply_of(actions=[action_of("recall", query="lamps")]), REST])
    scripted(lambda request: next(looking) if number_of(request) == 0 else goal, repeat=True)
    cursors = [signals_of(agent)[-1].cursor for agent in batch.agents]
    batch.run()

    heartbeats = {heartbeat.agent_id: heartbeat.id for heartbeat in batch.heartbeats()}
    for agent, cursor in zip(batch.agents, cursors, strict=True):
        signals = signals_of(agent, after=cursor)
        names = [record.name for record in signals]
        assert {record.heartbeat_id for record in signals} == {heartbeats[agent.id]}, names
        assert (names[0], names[-1]) == (SignalName.HEARTBEAT_STARTED, SignalName.HEARTBEAT)
    assert SignalName.GOAL_CREATED in names


# --- Statements ----------------------------------------------------------------------------------------

#: The most statements of a batch of eight in each of its legs, without the set-up of transactions.
FIRST_LEG, LAST_LEG = 13, 20
#: The most statements of one heartbeat over all of its legs, in a batch of eight.
STATEMENTS_PER_HEARTBEAT = 8


def test_a_batch_takes_few_statements(
    batch: Batch, scripted: Script, record_property: Callable[[str, object], None]
) -> None:
    acts = reply_of(
        thinking="Hm.",
        actions=[action_of("remember", content="The reef is red.")],
        memory_notes=[{"text": "The tide turns at noon."}],
        new_goals=[{"title": "Count the lamps"}],
    )
    scripted(acts, repeat=True)
    for agent in batch.agents:
        store_memory(agent, "The lighthouse keeper is called Ines.")
        with tenant_transaction(agent.tenant_id):
            perceive(agent_id=agent.id, kind="environment", content="The fog lifts.", actor="test")
    batch.dispatch()
    with recorded_statements() as first:
        batch.run_leg()
    batch.execute_calls()
    with recorded_statements() as last:
        batch.run_leg()

    assert_one_heartbeat_each(batch)
    record_property("statements_of_eight", f"{len(first)} + {len(last)}")
    assert len(first) <= FIRST_LEG, shorten(first)
    assert len(last) <= LAST_LEG, shorten(last)
    assert (len(first) + len(last)) / EIGHT <= STATEMENTS_PER_HEARTBEAT


# --- Stale leases --------------------------------------------------------------------------------------


def test_a_stale_lease_among_eight_is_left_out(batch: Batch, scripted: Script, fleet: Fleet) -> None:
    scripted(REST, repeat=True)
    batch.dispatch()
    leases = batch.pop_leases()
    reclaimed, doubled = batch.agents[1], batch.agents[6]
    lose_lease(reclaimed)
    assert fleet.dispatch().lost == 1
    (new_lease,) = batch.pop_leases([reclaimed])
    unknown_lease = (uuid4(), 1)
    advanced = advance_heartbeats(
        tenant_id=batch.tenant_id,
        leases=[*leases, unknown_lease, *(lease for lease in leases if lease[0] == doubled.id)],
    )
    assert advanced == {agent.id for agent in batch.agents} - {reclaimed.id}
    assert advance_heartbeats(tenant_id=batch.tenant_id, leases=[new_lease]) == {reclaimed.id}
    # All heartbeats wait for their models now: a doubled message changes nothing.
    assert advance_heartbeats(tenant_id=batch.tenant_id, leases=[*leases, new_lease]) == set()
    fleet.run()
    assert_one_heartbeat_each(batch)


def test_a_batch_of_stale_messages_runs_no_heartbeat(batch: Batch, scripted: Script) -> None:
    scripted(REST, repeat=True)
    batch.dispatch()
    leases = [(agent_id, epoch - 1) for agent_id, epoch in batch.pop_leases()]
    with recorded_statements() as sent:
        assert advance_heartbeats(tenant_id=batch.tenant_id, leases=leases) == set()
    assert (batch.heartbeats(), len(sent)) == ([], 1)


# --- Tenants -------------------------------------------------------------------------------------------


def test_an_agent_of_another_tenant_is_not_found(
    fleet: Fleet, tenant: Tenant, other_tenant: Tenant, new_agent: MakeAgent, scripted: Script
) -> None:
    scripted(REST, repeat=True)
    mine, other = new_agent(tenant, "Ada"), new_agent(other_tenant, "Bo")
    for agent in (mine, other):
        make_due(agent)
    fleet.dispatch()
    leases = [(UUID(message.arguments["agent_id"]), message.arguments["epoch"]) for message in fleet.messages]

    assert advance_heartbeats(tenant_id=tenant.id, leases=leases) == {mine.id}
    assert heartbeats_of(other) == []
    assert schedule_of(other).state == ScheduleState.QUEUED
    fleet.run()
    assert [heartbeat.status for agent in (mine, other) for heartbeat in heartbeats_of(agent)] == [DONE, DONE]
    with tenant_transaction(other_tenant.id):
        assert set(Heartbeat.objects.values_list("agent_id", flat=True)) == {other.id}


# --- The size of batches -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heartbeat_ms", "size"), [([], 8), ([5.0], 8), ([19.0] * 50, 7), ([100.0] * 50, 1), ([10_000.0] * 50, 1)]
)
def test_batch_size_follows_the_pace_of_the_process(
    heartbeat_ms: list[float], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LEG_MS", 150.0)
    batch_sizer = runner.BatchSizer()
    for elapsed in heartbeat_ms:
        batch_sizer.count(heartbeats=4, elapsed_ms=elapsed * 4)
    assert batch_sizer.batch_size == size


def test_agents_beyond_the_batch_size_run_in_further_batches(
    batch: Batch, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)
    sizes: list[int] = []
    monkeypatch.setattr(runner.BatchSizer, "batch_size", 3)
    monkeypatch.setattr(
        runner.BatchSizer, "count", lambda _sizer, *, heartbeats, **_time: sizes.append(heartbeats)
    )
    legs = batch.run()
    assert sizes == [3, 3, 2] * legs
    assert_one_heartbeat_each(batch)
