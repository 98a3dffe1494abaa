"""Notices of failed heartbeats reach the operator."""

from __future__ import annotations

from collections.abc import Callable

from apps.agents.models import Agent, AgentState
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.status import fleet_status
from apps.tenants.scope import tenant_transaction
from arbor.errors import ModelRefused
from arbor.models.ports import ScriptedModel
from tests.integration.heartbeats.conftest import REST, beats_of, make_due
from tests.integration.heartbeats.fleet import Fleet

type Scripted = Callable[..., ScriptedModel]


def beat(fleet: Fleet, agent: Agent) -> Heartbeat:
    make_due(agent)
    fleet.dispatch()
    fleet.run()
    return beats_of(agent)[-1]


def notices_of(agent: Agent) -> dict[str, str]:
    with tenant_transaction(agent.tenant_id):
        notices = AgentState.objects.values_list("notices", flat=True).get(agent_id=agent.id)
    return {notice["kind"]: notice["text"] for notice in notices}


def test_unreadable_replies_are_noticed_as_many_as_there_are(
    fleet: Fleet, agent: Agent, scripted: Scripted
) -> None:
    scripted("nothing to read", repeat=True)
    assert beat(fleet, agent).status == HeartbeatStatus.FAILED
    assert "1 time in a row" in notices_of(agent)["invalid_replies"]
    beat(fleet, agent)
    assert "2 times in a row" in notices_of(agent)["invalid_replies"]
    assert fleet_status().notices["invalid_replies"] == 1


def test_an_answer_that_can_be_used_is_noticed_as_well(
    fleet: Fleet, agent: Agent, scripted: Scripted
) -> None:
    scripted("nothing to read", "nothing to read", "nothing to read", REST)
    beat(fleet, agent)
    assert beat(fleet, agent).status == HeartbeatStatus.DONE
    assert "invalid_replies" not in notices_of(agent)


def test_refusals_are_noticed_while_every_beat_is_refused(
    fleet: Fleet, agent: Agent, scripted: Scripted
) -> None:
    scripted(ModelRefused("not that"), repeat=True)
    for _ in range(3):
        assert beat(fleet, agent).status == HeartbeatStatus.FAILED
    assert "refusals" in notices_of(agent)
