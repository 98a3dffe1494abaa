"""Every due heartbeat completes exactly once, whatever dies: a worker at any step, the broker's data, the database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apps.tenants.packing import unpack, unpack_list
from tests.acceptance.fleet.real_fleet import Agent, RealFleet

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

#: The steps of a beat, in order (`arbor/pipeline/heartbeat.dot`).
NODES = (
    "observe",
    "background_checks",
    "idle",
    "focus",
    "guard",
    "orient",
    "inject_goals",
    "select_mode",
    "build_prompt",
    "think",
    "parse",
    "decide",
    "embed",
    "store_decompositions",
    "process_proposals",
    "identity_insights",
    "act",
    "goals",
    "follow_up",
    "feel",
    "record",
    "plan_next",
)
POINTS = (
    "dispatcher is about to tell",
    "dispatcher has told",
    *(f"{node} {edge}" for node in NODES for edge in ("begins", "ends")),
    "suspend is written",
    "walker is about to tell",
    "walker has told",
    "call is taken",
    "reply has come",
    "reply is written",
    "model worker is about to tell",
    "model worker has told",
    "think goes on",
    "finish is written",
)
#: A model whose replies cannot be read leads to the one node that the others do not pass.
UNREADABLE = "openai/stub-babble"
NOP_POINTS = ("nop begins", "nop ends")
ROUNDS = 5
#: Points at which a worker has the work of several agents in its hands, committed, about to be, or not yet.
BATCH_POINTS = (
    "observe begins",
    "focus ends",
    "orient ends",
    "think ends",
    "suspend is written",
    "walker is about to tell",
    "walker has told",
    "call is taken",
    "reply has come",
    "reply is written",
    "model worker is about to tell",
    "think goes on",
    "act ends",
    "goals ends",
    "feel ends",
    "record ends",
    "plan_next ends",
    "finish is written",
)
#: As many as one message carries.
BATCHED_TASKS = 8

# What each agent has done, against what its heartbeats say: a difference means that something was lost or doubled.
AGENTS = """
SELECT a.name, s.beats, s.nops, sc.state, sc.attempts,
    count(h.id) FILTER (WHERE h.status = 'done'), count(h.id) FILTER (WHERE h.status = 'failed'),
    count(h.id) FILTER (WHERE h.status NOT IN ('done', 'failed')), count(DISTINCT h.slot_at),
    coalesce(max(h.number), 0)
FROM agents_agent a JOIN agents_agentstate s ON s.agent_id = a.id JOIN heartbeats_heartbeatschedule sc ON sc.agent_id = a.id
LEFT JOIN heartbeats_heartbeat h ON h.agent_id = a.id GROUP BY a.name, s.beats, s.nops, sc.state, sc.attempts
"""
ENERGY = """
WITH beat AS (
    SELECT h.agent_id, h.number, h.energy_start, h.energy_end,
        (SELECT coalesce(sum((action ->> 'cost')::float), 0) FROM jsonb_array_elements(h.actions) action) AS cost,
        lag(h.energy_end) OVER (PARTITION BY h.agent_id ORDER BY h.number) AS before
    FROM heartbeats_heartbeat h WHERE h.status = 'done'
)
SELECT a.name, beat.number FROM beat JOIN agents_agent a ON a.id = beat.agent_id
JOIN agents_agentstate s ON s.agent_id = beat.agent_id
WHERE beat.energy_end <> beat.energy_start - beat.cost
    OR beat.before IS NOT NULL AND beat.energy_start <> least(20, beat.before + 10)
    OR beat.number = s.beats AND s.energy <> beat.energy_end
"""
NARRATIVES = """
SELECT a.name, h.number FROM heartbeats_heartbeat h JOIN agents_agent a ON a.id = h.agent_id
WHERE h.status = 'done' AND 1 <> (SELECT count(*) FROM memories_memory m
    WHERE m.agent_id = h.agent_id AND m.session = 'heartbeats' AND m.position = h.number AND m.id = h.memory_id)
"""
UNOWNED_NARRATIVES = """
SELECT count(*) FROM memories_memory m WHERE m.session = 'heartbeats'
    AND NOT EXISTS (SELECT FROM heartbeats_heartbeat h WHERE h.memory_id = m.id AND h.status = 'done')
"""
# How often memories were used, how often by actions that recalled them, and what the beats saw.
ACCESSES = """
SELECT a.name, coalesce((SELECT sum(x.count) FROM memories_memoryaccess x JOIN memories_memory m ON m.id = x.memory_id
        WHERE m.agent_id = a.id), 0),
    coalesce((SELECT sum(jsonb_array_length(action -> 'memory_ids'))
        FROM heartbeats_heartbeat h CROSS JOIN jsonb_array_elements(h.actions) action
        WHERE h.agent_id = a.id AND h.status = 'done' AND action ->> 'action' = 'recall'), 0),
    ARRAY(SELECT h.situation FROM heartbeats_heartbeat h WHERE h.agent_id = a.id AND h.status = 'done')
FROM agents_agent a JOIN agents_agentstate s ON s.agent_id = a.id WHERE s.nops = 0
"""
DOUBLED_NOTES = """
SELECT n.text FROM goals_progressnote n WHERE n.heartbeat_id IS NOT NULL
GROUP BY n.heartbeat_id, n.goal_id, n.text HAVING count(*) > 1
"""
# A model is asked once in each turn.
CALLS = """
SELECT a.name, h.number, h.turns, count(DISTINCT c.id), count(l.id), count(DISTINCT l.call_id)
FROM heartbeats_heartbeat h JOIN agents_agent a ON a.id = h.agent_id
LEFT JOIN calls_externalcall c ON c.heartbeat_id = h.id LEFT JOIN calls_ledgerentry l ON l.call_id = c.id
WHERE h.status = 'done' GROUP BY a.name, h.number, h.turns
HAVING count(DISTINCT c.id) <> h.turns OR count(l.id) <> h.turns OR count(DISTINCT l.call_id) <> h.turns
"""
TRACES = "SELECT trace FROM heartbeats_heartbeat"
# The time of a leg is shared by the heartbeats that were walked together.
BATCHED = "SELECT count(*) FROM heartbeats_heartbeat WHERE status = 'done' AND elapsed_ms > 1.5 * own_ms"


@pytest.fixture(scope="module")
def fleet() -> Iterator[RealFleet]:
    """Return a running fleet with one agent for each point of death."""
    readable = [(point, "") for point in POINTS]
    with RealFleet() as made:
        made.populate([*readable, *((point, UNREADABLE) for point in NOP_POINTS)])
        made.start()
        yield made


def assert_exactly_once(fleet: RealFleet) -> None:
    """Check the rows: every due heartbeat once, with each of its effects once."""
    unreadable = {agent.name for agent in fleet.agents if agent.model == UNREADABLE}
    for name, beats, nops, state, attempts, done, failed, other, slots, last in fleet.rows(AGENTS):
        due = fleet.due[name]
        if name in unreadable:
            assert (name, beats, nops, done, failed) == (name, 0, due, 0, due)
        else:
            assert (name, beats, nops, done, failed, last) == (name, due, 0, due, 0, due)
        assert (name, state, attempts, other, slots) == (name, "idle", 0, 0, due)
    assert fleet.rows(ENERGY) == []
    assert fleet.rows(NARRATIVES) == []
    assert fleet.rows(UNOWNED_NARRATIVES) == [(0,)]
    for name, counted, recalled, situations in fleet.rows(ACCESSES):
        shown = sum(len(unpack(situation)["relevant"]) for situation in situations)
        assert (name, counted) == (name, recalled + shown)
    assert fleet.rows(DOUBLED_NOTES) == []
    assert fleet.rows(CALLS) == []
    for (trace,) in fleet.rows(TRACES):
        steps = unpack_list(trace)
        assert [step["sequence"] for step in steps] == list(range(1, len(steps) + 1))


def test_a_worker_killed_at_any_step_of_a_beat_costs_a_lease_and_nothing_else(fleet: RealFleet) -> None:
    # A worker of many threads takes other agents' steps with it, so some get to their own point at a second try.
    for _ in range(ROUNDS):
        fleet.make_due(fleet.spared())
        fleet.wait_until_all_are_done()
        if not fleet.spared():
            break
    assert fleet.spared() == []
    assert_exactly_once(fleet)


def test_a_worker_killed_with_several_agents_in_its_hands_costs_each_a_lease_and_nothing_else(
    fleet: RealFleet,
) -> None:
    left = list(BATCH_POINTS)
    sizes: dict[str, int] = {}
    for _ in range(len(BATCH_POINTS) * 2):
        groups = groups_of(fleet)
        doomed = dict(zip((group[0].name for group in groups), left, strict=False))
        fleet.doom(doomed)
        # All of a tenant in one statement: one message carries them.
        fleet.make_due([agent for group in groups for agent in group])
        fleet.wait_until_all_are_done()
        for agent in fleet.agents:
            # One that died with nobody else in its hands has its point tried again.
            if fleet.lost_with(agent) > 1:
                left.remove(agent.point)
                sizes[agent.point] = fleet.lost_with(agent)
        if not left:
            break
    assert left == [], f"no worker died with several agents there; of the others: {sizes}"
    assert_exactly_once(fleet)
    ((batched,),) = fleet.rows(BATCHED)
    assert batched > len(BATCH_POINTS), "hardly any heartbeats were walked together"


def groups_of(fleet: RealFleet) -> list[list[Agent]]:
    """Return as many agents of each tenant as one message carries."""
    readable = [agent for agent in fleet.agents if agent.model != UNREADABLE]
    tenants = sorted({agent.tenant for agent in readable})
    return [[agent for agent in readable if agent.tenant == tenant][:BATCHED_TASKS] for tenant in tenants]


def test_a_broker_that_loses_all_messages_under_way_loses_no_beat(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    fleet.flush_broker()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)


def test_two_dispatchers_and_two_schedulers_do_no_harm(fleet: RealFleet) -> None:
    for name in ("dispatcher", "scheduler"):
        fleet.start_another(name)
    fleet.make_due()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)
    for name in ("dispatcher-2", "scheduler-2"):
        fleet.retire(name)


def test_workers_told_to_end_while_they_are_busy_lose_nothing(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    for name in ("heartbeat", "model", "dispatcher"):
        fleet.parts[name].ask_to_stop()
    # Those that have ended are started again while we wait.
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)


def test_workers_killed_with_all_their_children_lose_nothing(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    for name in ("heartbeat", "model", "dispatcher", "scheduler"):
        fleet.parts[name].kill()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)


def test_heartbeats_go_on_when_the_broker_was_restarted(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    # A worker that holds a message when its broker goes may end itself (kombu 5.7 closes what is closed already):
    # whoever supervises it starts it again, as this fleet does.
    fleet.restart_broker()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)


def test_workers_go_on_when_the_database_was_killed_and_started_again(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    workers = {name: part.pid for name, part in fleet.parts.items()}
    fleet.crash_database()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)
    assert {name: part.pid for name, part in fleet.parts.items()} == workers


def test_every_process_says_in_the_database_that_it_lives(fleet: RealFleet) -> None:
    def living() -> set[tuple[str, str, str]]:
        return set(
            fleet.rows(
                "SELECT kind, queues, pool FROM heartbeats_process WHERE seen_at > now() - interval '20 s'"
            )
        )

    expected = {
        ("worker", "dispatch", "prefork"),
        ("worker", "heartbeat", "prefork"),
        ("worker", "embedding,llm,outbox", "thread"),
        ("scheduler", "", ""),
    }
    fleet.wait_for(lambda: living() >= expected, what="all kinds of processes are heard of")
