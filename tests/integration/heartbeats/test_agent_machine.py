"""Acts on an agent in any order: its schedule, rights, keys and accounts stay consistent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from apps.agents.models import Agent
from apps.heartbeats.services.calls import calls
from apps.tenants.models import Tenant
from tests.integration.heartbeats.agent_machine import AgentMachine, PricedModel
from tests.support.moved_clock import moved_clock


def test_any_order_of_acts_leaves_an_agent_consistent(
    tenant: Tenant,
    new_agent: Callable[..., Agent],
    superuser: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Machine(AgentMachine):
        pass

    model = PricedModel()
    monkeypatch.setattr(calls, "model_for", lambda _handle: model)
    monkeypatch.setattr(django_settings, "ARBOR_DEFAULT_MODEL", model.handle)
    Machine.tenant, Machine.model, Machine.new_agent = tenant, model, staticmethod(new_agent)
    with moved_clock(superuser, monkeypatch) as Machine.clock:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                # Shrinking would take longer than the test; the steps of a failure are few anyway.
                phases=[Phase.generate],
                max_examples=8,
                stateful_step_count=15,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
