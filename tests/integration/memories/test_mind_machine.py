"""Any order of acts on a mind leaves it sound, and what was purged is nowhere."""

from __future__ import annotations

from typing import Any

import psycopg
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from apps.tenants.models import Tenant
from tests.integration.memories.mind_machine import MindMachine


def test_any_order_of_acts_leaves_a_mind_sound(tenant: Tenant, cleaner: psycopg.Connection[Any]) -> None:
    class Machine(MindMachine):
        pass

    Machine.tenant, Machine.cleaner = tenant, cleaner
    run_state_machine_as_test(
        Machine,
        settings=settings(
            phases=[Phase.generate], max_examples=12, stateful_step_count=12, report_multiple_bugs=False, suppress_health_check=list(HealthCheck)
        ),
    )
