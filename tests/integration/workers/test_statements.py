"""The number of statements per heartbeat."""

from __future__ import annotations

from django.db import connections

from apps.agents.models import Agent
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.schedule import claim_now
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from tests.integration.heartbeats.conftest import heartbeats_of
from tests.integration.heartbeats.fleet import Fleet
from tests.support.database import recorded_statements

#: The statements of dispatch, both legs and the call, without BEGIN and COMMIT, for a heartbeat that stores a memory, moves a goal
#: and recalls twice: the last recall has no clear memory, so a partial recall follows. By the reflex policy an agent carries out
#: several steps in one heartbeat.
MAX_STATEMENTS = 47


def test_a_reflex_heartbeat_takes_few_statements(fleet: Fleet, agent: Agent) -> None:
    longest: list[str] = []
    for _ in range(6):  # each mode once, with the consolidation of the fifth heartbeat
        with recorded_statements(APP, OPS, control=True) as sent:
            # A requested heartbeat is never idle.
            with tenant_transaction(agent.tenant_id):
                claim_now(agent_id=agent.id)
            fleet.run()
        longest = max(longest, sent, key=len)
    assert {heartbeat.status for heartbeat in heartbeats_of(agent)} == {HeartbeatStatus.DONE}
    assert len(longest) <= MAX_STATEMENTS, f"{len(longest)} statements:\n" + "\n".join(
        " ".join(statement.split())[:120] for statement in longest
    )


def test_statements_are_prepared_here_as_in_a_worker(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        assert connections[APP].fixed_statements() is not None  # type: ignore[attr-defined]
