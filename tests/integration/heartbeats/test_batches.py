"""Batches of heartbeats: each ends as it would alone, and errors affect only their own heartbeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import structlog
from django.db import InterfaceError, OperationalError, connections

import apps.heartbeats.services.runner as runner
from apps.agents.models import Agent, AgentState, ScheduleState
from apps.agents.services.percepts import perceive
from apps.goals.models import Goal
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.loading import load_batch
from apps.heartbeats.services.runner import advance_heartbeats
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import ModelUnavailable
from arbor.goals.plans import LinkKind
from arbor.goals.values import GoalState
from arbor.heartbeat.state import Beat
from arbor.heartbeat.steps import HANDLERS
from arbor.heartbeat.steps.records import record
from arbor.models.ports import ModelRequest
from tests.integration.heartbeats.beater import Script, action_of, memory_of, reply_of
from tests.integration.heartbeats.conftest import REST, beats_of, lose_lease, make_due, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.together import EIGHT, Together, counted, rows_of, shortly

DONE, FAILED = HeartbeatStatus.DONE, HeartbeatStatus.FAILED

type Make = Callable[..., Agent]


pytestmark = pytest.mark.usefixtures("uncut")


def eight(fleet: Fleet, tenant: Tenant, make: Make) -> Together:
    return Together(fleet, [make(tenant, name=f"Agent {number}") for number in range(EIGHT)])


@pytest.fixture
def together(fleet: Fleet, tenant: Tenant, new_agent: Make) -> Together:
    """Return eight agents of one tenant."""
    return eight(fleet, tenant, new_agent)


def number_of(request: ModelRequest) -> int:
    """Return the number of the agent that asks."""
    return next(number for number in range(EIGHT) if f"Agent {number}" in request.system)


def statuses(together: Together) -> list[str]:
    return [str(beat.status) for beat in together.beats()]


def assert_one_done_beat_each(together: Together, *, but: dict[int, str] | None = None) -> None:
    """Check that each agent has one completed heartbeat, except for the statuses given by number."""
    wanted = [(but or {}).get(number, str(DONE)) for number in range(EIGHT)]
    assert statuses(together) == wanted
    for agent, status in zip(together.agents, wanted, strict=True):
        with tenant_transaction(agent.tenant_id):
            beats = AgentState.objects.get(agent_id=agent.id).beats
            narratives = Memory.objects.filter(agent_id=agent.id, session="heartbeats").count()
        assert (beats, narratives) == ((1, 1) if status == DONE else (0, 0))
        assert schedule_of(agent).state == ScheduleState.IDLE


# --- Results equal those of single heartbeats ----------------------------------------------------------

LIE = "I will lie to the harbour master."


def lives(goals: list[str]) -> list[list[Any]]:
    """Return the replies for each of eight agents, call after call; the last one repeats."""
    recall = action_of("recall", query="Who keeps the lighthouse?")
    remember = action_of("remember", content="The reef is red.")
    nowhere = str(UUID(int=1))
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
        [reply_of(actions=[action_of("connect", from_id=nowhere, to_id=nowhere, relation="causes")])],
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


def prepare(together: Together, scripted: Script) -> None:
    """Give each agent a goal, memories, a percept, and a model with the replies of `lives`."""
    goals = []
    for agent in together.agents:
        memory_of(agent, "The lighthouse keeper is called Ines.")
        memory_of(agent, "On Fridays there is fresh bread.")
        with tenant_transaction(agent.tenant_id):
            Agent.objects.filter(id=agent.id).update(
                allowed_actions=["recall", "remember", "reflect", "connect", "reprioritize", "rest"]
            )
            Goal.objects.filter(agent_id=agent.id).delete()
            goal = create_goal(agent_id=agent.id, title="Chart the reef", state=GoalState.ACTIVE)
            perceive(agent_id=agent.id, kind="environment", content="The fog lifts.", actor="test")
        goals.append(str(goal.id))
    replies, calls = lives(goals), Counter[int]()

    def answer(request: ModelRequest) -> str:
        number = number_of(request)
        line = replies[number][min(calls[number], len(replies[number]) - 1)]
        calls[number] += 1
        if isinstance(line, Exception):
            raise line
        return str(line)

    scripted(answer, repeat=True)


def test_eight_agents_walked_together_end_as_they_would_one_by_one(
    fleet: Fleet, tenant: Tenant, other_tenant: Tenant, new_agent: Make, scripted: Script
) -> None:
    together, singly = eight(fleet, tenant, new_agent), eight(fleet, other_tenant, new_agent)
    for group, run in ((together, together.run), (singly, singly.run_singly)):
        prepare(group, scripted)
        for _ in range(3):
            run()

    # Among them are failed heartbeats, heartbeats of several turns, and heartbeats with refused actions.
    beats = together.beats()
    assert {beat.status for beat in beats} >= {DONE, FAILED}
    assert max(beat.turns for beat in beats) > 1
    assert any(beat.dropped for beat in beats)
    for mine, other in zip(together.agents, singly.agents, strict=True):
        assert mine.name == other.name
        rows, others = rows_of(mine), rows_of(other)
        for name in rows:
            assert rows[name] == others[name], f"{mine.name}: {name}"
    batched = [beat for beat in beats if beat.elapsed_ms > 1.5 * beat.own_ms]
    assert len(batched) >= EIGHT, "they were walked together"
    assert all(beat.elapsed_ms == pytest.approx(beat.own_ms) for beat in singly.beats())


# --- Statements ----------------------------------------------------------------------------------------

#: The most statements of a batch of eight in each of its legs, without the set-up of transactions.
FIRST_LEG, LAST_LEG = 13, 20
#: The most statements of one heartbeat over all of its legs, in a batch of eight.
EACH = 8


def test_a_batch_takes_little_more_statements_than_one_beat(
    together: Together, scripted: Script, record_property: Callable[[str, object], None]
) -> None:
    acts = reply_of(
        thinking="Hm.",
        actions=[action_of("remember", content="The reef is red.")],
        memory_notes=[{"text": "The tide turns at noon."}],
        new_goals=[{"title": "Count the lamps"}],
    )
    scripted(acts, repeat=True)
    for agent in together.agents:
        memory_of(agent, "The lighthouse keeper is called Ines.")
        with tenant_transaction(agent.tenant_id):
            perceive(agent_id=agent.id, kind="environment", content="The fog lifts.", actor="test")
    together.begin()
    with counted() as first:
        together.walk()
    together.answer()
    with counted() as last:
        together.walk()

    assert_one_done_beat_each(together)
    record_property("statements_of_eight", f"{len(first)} + {len(last)}")
    assert len(first) <= FIRST_LEG, shortly(first)
    assert len(last) <= LAST_LEG, shortly(last)
    assert (len(first) + len(last)) / EIGHT <= EACH


# --- Errors of one heartbeat ---------------------------------------------------------------------------


def faulty(monkeypatch: pytest.MonkeyPatch, name: str, agent: Agent, act: Callable[[Beat], Any]) -> None:
    """Replace a step of one agent."""
    step = HANDLERS[name]

    def run(beat: Beat) -> Any:
        return act(beat) if beat.agent_id == agent.id else step(beat)

    monkeypatch.setattr(runner, "HANDLERS", {**HANDLERS, name: run})


def raise_zero_division(_: Beat) -> Any:
    raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize("node", ["observe", "focus", "parse", "act", "record"])
def test_a_fault_in_one_of_eight_fails_only_that_one(
    node: str, together: Together, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)
    faulty(monkeypatch, node, together.agents[3], raise_zero_division)
    with structlog.testing.capture_logs() as logs:
        together.run()

    assert_one_done_beat_each(together, but={3: "failed"})
    (failed,) = beats_of(together.agents[3])
    assert "ZeroDivisionError: on purpose" in failed.reason
    assert [entry["heartbeats"] for entry in logs if entry["event"] == "batch_failed"] == [EIGHT]


def test_a_constraint_violation_rolls_back_one_heartbeat_only(
    together: Together, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)

    def tied_to_nothing(beat: Beat) -> Any:
        result = yield from record(beat)
        # No goal has this id.
        return result.__class__(state=result.state.bringing(goal_links=[(str(uuid4()), LinkKind.ORIGIN)]))

    faulty(monkeypatch, "record", together.agents[5], tied_to_nothing)
    together.run()

    assert_one_done_beat_each(together, but={5: "failed"})
    (failed,) = beats_of(together.agents[5])
    assert failed.reason.startswith("IntegrityError")
    with tenant_transaction(together.tenant_id):
        assert not Memory.objects.filter(agent_id=together.agents[5].id, session="heartbeats").exists()


def test_a_heartbeat_taken_over_by_another_worker_is_left_alone(
    together: Together,
    scripted: Script,
    monkeypatch: pytest.MonkeyPatch,
    cleaner: psycopg.Connection[Any],
) -> None:
    scripted(REST, repeat=True)
    lost_agent = together.agents[2]
    together.begin()
    together.walk()
    together.answer()

    def stolen(beat: Beat) -> Any:
        # As a worker does that has taken over the heartbeat after its lease was lost.
        cleaner.execute("UPDATE heartbeats_heartbeat SET step = step + 1 WHERE id = %s", [beat.heartbeat_id])
        return HANDLERS["feel"](beat)

    faulty(monkeypatch, "feel", lost_agent, stolen)
    others = {agent.id for agent in together.agents} - {lost_agent.id}
    assert together.walk() == others
    statuses_by_agent = {beat.agent_id: beat.status for beat in together.beats()}
    assert statuses_by_agent.pop(lost_agent.id) == HeartbeatStatus.WAITING
    assert set(statuses_by_agent.values()) == {DONE}


def test_a_stale_lease_among_eight_is_left_out(together: Together, scripted: Script, fleet: Fleet) -> None:
    scripted(REST, repeat=True)
    together.begin()
    leases = together.leases()
    lost, doubled = together.agents[1], together.agents[6]
    lose_lease(lost)
    assert fleet.dispatch().lost == 1
    (again,) = together.leases([lost])
    stranger = (uuid4(), 1)
    walked = advance_heartbeats(
        tenant_id=together.tenant_id,
        leases=[*leases, stranger, *(lease for lease in leases if lease[0] == doubled.id)],
    )
    assert walked == {agent.id for agent in together.agents} - {lost.id}
    assert advance_heartbeats(tenant_id=together.tenant_id, leases=[again]) == {lost.id}
    # All heartbeats wait for their models now: a doubled message changes nothing.
    assert advance_heartbeats(tenant_id=together.tenant_id, leases=[*leases, again]) == set()
    fleet.run()
    assert_one_done_beat_each(together)


def test_a_batch_of_nothing_but_stale_messages_does_nothing(together: Together, scripted: Script) -> None:
    scripted(REST, repeat=True)
    together.begin()
    leases = [(agent_id, epoch - 1) for agent_id, epoch in together.leases()]
    with counted() as sent:
        assert advance_heartbeats(tenant_id=together.tenant_id, leases=leases) == set()
    assert (together.beats(), len(sent)) == ([], 1)


# --- The database --------------------------------------------------------------------------------------


class Trouble:
    """Lets the database refuse statements with these words, a number of times."""

    def __init__(self, words: str, error: Callable[[], Exception], *, most: int = 1) -> None:
        self._words, self._error, self._most = words, error, most
        self.times = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._words in sql and self.times < self._most:
            self.times += 1
            raise self._error()
        return execute(sql, params, many, context)


def deadlock() -> Exception:
    error = OperationalError("deadlock detected")
    error.__cause__ = psycopg.errors.DeadlockDetected("deadlock detected")
    return error


@pytest.mark.parametrize("words", ["INSERT INTO memories_memory ", "calls_dailyusage", "FOR UPDATE"])
def test_after_a_deadlock_each_is_walked_by_itself(words: str, together: Together, scripted: Script) -> None:
    scripted(REST, repeat=True)
    together.begin()
    together.walk()
    together.answer()
    trouble = Trouble(words, deadlock)
    with connections[APP].execute_wrapper(trouble), structlog.testing.capture_logs() as logs:
        assert together.walk() == {agent.id for agent in together.agents}

    assert trouble.times == 1
    assert [entry["heartbeats"] for entry in logs if entry["event"] == "batch_failed"] == [EIGHT]
    assert_one_done_beat_each(together)


def test_a_deadlock_of_one_alone_leaves_the_others_their_turn(
    together: Together, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)
    together.begin()
    together.walk()
    together.answer()
    unlucky, *others = sorted(agent.id for agent in together.agents)

    def load(leases: Sequence[tuple[UUID, int]], **options: Any) -> Any:
        if unlucky in {agent_id for agent_id, _ in leases}:
            raise deadlock()
        return load_batch(leases, **options)

    monkeypatch.setattr(runner, "load_batch", load)
    with pytest.raises(OperationalError, match="deadlock"), structlog.testing.capture_logs() as logs:
        together.walk()
    assert [entry["agent_id"] for entry in logs if entry["event"] == "heartbeat_deferred"] == [str(unlucky)]
    for agent in together.agents:
        (beat,) = beats_of(agent)
        assert beat.status == ("waiting" if agent.id == unlucky else "done"), agent.name
    assert len(others) == EIGHT - 1


def lost() -> Exception:
    connections[APP].connection.close()
    return InterfaceError("the connection is closed")


def test_a_connection_that_is_lost_in_a_batch_costs_nothing(together: Together, scripted: Script) -> None:
    scripted(REST, repeat=True)
    together.begin()
    together.walk()
    together.answer()
    with connections[APP].execute_wrapper(Trouble("calls_dailyusage", lost)):
        together.walk()
    assert_one_done_beat_each(together)


def test_an_unreachable_database_loses_no_heartbeat_of_a_batch(
    together: Together, scripted: Script, fleet: Fleet
) -> None:
    scripted(REST, repeat=True)
    together.begin()
    together.walk()
    together.answer()
    trouble = Trouble("calls_dailyusage", lost, most=1 + EIGHT)
    with connections[APP].execute_wrapper(trouble), pytest.raises(InterfaceError):
        together.walk()

    assert set(statuses(together)) == {HeartbeatStatus.WAITING}
    for agent in together.agents:
        lose_lease(agent)
    assert fleet.dispatch().lost == EIGHT
    fleet.run()
    assert_one_done_beat_each(together)


# --- Tenants -------------------------------------------------------------------------------------------


def test_an_agent_of_another_tenant_is_not_found(
    fleet: Fleet, tenant: Tenant, other_tenant: Tenant, new_agent: Make, scripted: Script
) -> None:
    scripted(REST, repeat=True)
    mine, other = new_agent(tenant, "Ada"), new_agent(other_tenant, "Bo")
    for agent in (mine, other):
        make_due(agent)
    fleet.dispatch()
    leases = [(UUID(message.arguments["agent_id"]), message.arguments["epoch"]) for message in fleet.messages]

    assert advance_heartbeats(tenant_id=tenant.id, leases=leases) == {mine.id}
    assert beats_of(other) == []
    assert schedule_of(other).state == ScheduleState.QUEUED
    fleet.run()
    assert [beat.status for agent in (mine, other) for beat in beats_of(agent)] == [DONE, DONE]
    with tenant_transaction(other_tenant.id):
        assert set(Heartbeat.objects.values_list("agent_id", flat=True)) == {other.id}


# --- The pace ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("each_ms", "size"), [([], 8), ([5.0], 8), ([19.0] * 50, 7), ([100.0] * 50, 1), ([10_000.0] * 50, 1)]
)
def test_batches_are_cut_by_the_pace_of_the_process(
    each_ms: list[float], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LEG_MS", 150.0)
    pace = runner.Pace()
    for elapsed in each_ms:
        pace.count(heartbeats=4, elapsed_ms=elapsed * 4)
    assert pace.batch_size == size


def test_agents_that_one_leg_has_no_room_for_are_walked_in_the_next(
    together: Together, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)
    monkeypatch.setattr(runner.Pace, "batch_size", 3)
    together.run()
    assert_one_done_beat_each(together)
