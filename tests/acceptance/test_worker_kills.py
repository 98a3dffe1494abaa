"""Workers killed at any step: every due heartbeat still completes exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.fleet.exactly_once import assert_exactly_once
from tests.acceptance.fleet.points import ALL_POINTS, UNREADABLE
from tests.acceptance.fleet.real_fleet import RealFleet

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

ROUNDS = 5
BATCH_ROUNDS = 15
#: Points at which a worker runs the work of several agents, before and after its commit.
BATCH_POINTS = (
    "observe begins",
    "focus ends",
    "orient ends",
    "think ends",
    "suspend is written",
    "heartbeat worker is about to publish",
    "heartbeat worker has published",
    "call is claimed",
    "reply has arrived",
    "reply is written",
    "model worker is about to publish",
    "think goes on",
    "act ends",
    "goals ends",
    "feel ends",
    "record ends",
    "plan_next ends",
    "finish is written",
)

# The time of a leg is shared by the heartbeats of its batch.
BATCHED = "SELECT count(*) FROM heartbeats_heartbeat WHERE status = 'done' AND elapsed_ms > 1.5 * own_ms"


@pytest.fixture(scope="module")
def fleet(django_db_blocker: Any) -> Iterator[RealFleet]:
    """Return a running fleet with one agent for each point at which a worker is killed."""
    with django_db_blocker.unblock(), RealFleet() as new:
        new.populate(ALL_POINTS)
        new.start()
        yield new


def test_a_worker_killed_at_any_step_costs_only_a_lease(fleet: RealFleet) -> None:
    # A killed worker also interrupts other agents' steps, so some reach their own point at a second attempt.
    for _ in range(ROUNDS):
        fleet.make_due(fleet.agents_not_killed())
        fleet.wait_until_all_are_done()
        if not fleet.agents_not_killed():
            break
    assert fleet.agents_not_killed() == []
    assert_exactly_once(fleet)


def test_a_worker_killed_with_a_batch_costs_each_agent_only_a_lease(fleet: RealFleet) -> None:
    readable = [agent for agent in fleet.agents if agent.model != UNREADABLE]
    left = list(BATCH_POINTS)
    for _ in range(BATCH_ROUNDS):
        # Agents whose worker was lost come back alone, so of those that share a batch only one is killed in a round.
        names = (agent.name for agent in readable[:: len(readable) // len(left)])
        fleet.plan_kills(dict(zip(names, left, strict=False)), in_batch=True)
        # All agents in one statement, so that messages carry several.
        fleet.make_due(readable)
        fleet.wait_until_all_are_done()
        left = [agent.point for agent in fleet.agents_not_killed()]
        if not left:
            break
    assert left == []
    assert_exactly_once(fleet)
    ((batched,),) = fleet.rows(BATCHED)
    assert batched > len(BATCH_POINTS), "hardly any heartbeats ran together"
