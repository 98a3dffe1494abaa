"""Service calls on a mind in any order: it stays consistent, without traces of purged memories."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from apps.agents.models import Agent
from apps.memories.services.retention.archive import purge
from apps.memories.services.store.remember import remember
from apps.memories.services.store.revision import revise
from apps.tenants.scope import tenant_transaction
from tests.integration.memories.conftest import a_memory
from tests.integration.memories.life_machine import LifeMachine
from tests.integration.memories.mind_invariants import tables_with
from tests.integration.memories.mind_machine import MindMachine
from tests.support.moved_clock import moved_clock


def test_any_order_of_acts_leaves_a_mind_consistent(
    database: None, superuser: psycopg.Connection[Any]
) -> None:
    class Machine(MindMachine):
        pass

    Machine.superuser = superuser
    run(Machine, examples=12)


def test_a_mind_stays_consistent_while_time_passes(
    database: None, superuser: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Machine(LifeMachine):
        pass

    Machine.superuser = superuser
    with moved_clock(superuser, monkeypatch) as Machine.clock:
        run(Machine, examples=8)


def run(machine: type[MindMachine], *, examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            # Shrinking takes longer than the time limit of the test; the steps of a failure are few anyway.
            phases=[Phase.generate],
            max_examples=examples,
            stateful_step_count=12,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_revised_and_purged_memory_is_in_no_table(mind: Agent, superuser: psycopg.Connection[Any]) -> None:
    (memory_id,) = remember(
        tenant_id=mind.tenant_id, agent_id=mind.id, memories=[a_memory("The gate code is 4711.")]
    ).ids
    with tenant_transaction(mind.tenant_id):
        revise(
            agent_id=mind.id,
            memory_id=memory_id,
            revised=a_memory("The gate has no code."),
            reason="it was changed",
            actor="user:ada",
            vectors=None,
            model=None,
        )
        purge(memory_ids=[memory_id], reason="it is secret", actor="user:ada")

    assert tables_with(superuser, mind.tenant_id, "The gate code is 4711.") == set()
