"""The energy policies of an agent and its tenant, from the services that set them to a heartbeat."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from apps.agents.models import Agent, AgentPolicy, AgentState
from apps.agents.services.templates import add_template, read_template
from apps.fleet.administration import set_tenant_energy
from apps.fleet.creation import create_agent
from apps.fleet.policy import policy_of, set_policy
from apps.heartbeats.services.situations.situation import load_agent
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.agents.energy import EnergyTerms
from arbor.errors import Invalid, TemplateInvalid
from tests.integration.heartbeats.actions.conftest import RunReplies
from tests.integration.heartbeats.conftest import last_heartbeat, replay_of, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import action_of, reply_of, text_of
from tests.support.threads import start_blocked

TEMPLATE = """\
---
name: Miser
version: "1"
character: {name: Miser}
actions: [recall, reflect, rest]
energy: {regeneration: 3, maximum: 12, costs: {reflect: 4}}
---
"""


def set_energy(agent: Agent, **changes: Any) -> None:
    with tenant_transaction(agent.tenant_id):
        set_policy(agent_id=agent.id, changes={"energy": changes}, actor="test")


def energy_of(agent: Agent) -> float:
    with tenant_transaction(agent.tenant_id):
        return AgentState.objects.get(agent_id=agent.id).energy


def slug_of(agent: Agent) -> str:
    with tenant_transaction(agent.tenant_id):
        return Tenant.objects.get(id=agent.tenant_id).slug


def test_energy_follows_the_agents_and_its_tenants_policies(run_replies: RunReplies, agent: Agent) -> None:
    set_tenant_energy(
        slug=slug_of(agent), changes={"regeneration": 5, "maximum": 40, "costs": {"reflect": 9}}, actor="test"
    )
    set_energy(agent, regeneration=25, costs={"recall": 6})
    insight = action_of("reflect", insight="The tide turns at noon.")
    request = run_replies(
        reply_of(action_of("recall", query="tide"), insight, insight, insight, insight)
    ).requests[0]

    text = text_of(request)
    assert (
        "35 of at most 40. 25 come back at each heartbeat; what you do not spend is kept, up to 40." in text
    )
    assert "- recall (6): " in text
    assert "- reflect (9): " in text
    heartbeat = last_heartbeat(agent)
    assert [(action["verdict"], action["cost"]) for action in heartbeat.actions[:5]] == [
        ("run", 6),
        ("run", 9),
        ("run", 9),
        ("run", 9),
        ("too_little_energy", 0),
    ]
    assert heartbeat.actions[4]["reason"] == "reflect costs 9, 2 energy is left"
    assert (heartbeat.energy_start, heartbeat.energy_end, energy_of(agent)) == (35.0, 2.0, 2.0)
    assert replay_of(heartbeat).differences == []


def test_energy_beyond_the_default_maximum_is_kept(run_replies: RunReplies, agent: Agent) -> None:
    set_energy(agent, maximum=50, regeneration=45)
    run_replies(reply_of(action_of("rest")))
    assert energy_of(agent) == 50
    set_energy(agent, maximum=None, regeneration=None)
    run_replies(reply_of(action_of("rest")))
    assert energy_of(agent) == 20


def test_the_reflex_policy_decides_within_the_costs(fleet: Fleet, agent: Agent) -> None:
    set_energy(agent, maximum=20, regeneration=1, costs=dict.fromkeys(("reflect", "recall", "connect"), 20))
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(energy=0)
    run_heartbeat(fleet, agent)
    heartbeat = last_heartbeat(agent)
    assert all(action["verdict"] == "run" for action in heartbeat.actions)
    assert (heartbeat.energy_start, heartbeat.energy_end) == (1.0, 1.0)


def test_a_program_reads_the_terms_in_force(agent: Agent) -> None:
    set_tenant_energy(slug=slug_of(agent), changes={"maximum": 30}, actor="test")
    set_energy(agent, regeneration=4)
    with tenant_transaction(agent.tenant_id):
        assert load_agent(agent.id).energy_terms == EnergyTerms(regeneration=4, maximum=30)


def test_terms_that_cannot_work_change_nothing(agent: Agent) -> None:
    set_energy(agent, maximum=30, costs={"recall": 25})
    with pytest.raises(Invalid, match="the energy cost of recall is 0 to the maximum of 20, got 25"):
        set_energy(agent, maximum=None)
    with pytest.raises(Invalid, match="an energy policy has regeneration, maximum, costs, got 'decay'"):
        set_energy(agent, decay=1)
    with pytest.raises(Invalid, match="rest is always free"):
        set_tenant_energy(slug=slug_of(agent), changes={"costs": {"rest": 2}}, actor="test")
    set_energy(agent, maximum=None, regeneration=15, costs=None)
    with pytest.raises(
        Invalid,
        match=f"policy of the agent {agent.name} does not fit the tenant's: .* at most the maximum of 12, got 15",
    ):
        set_tenant_energy(slug=slug_of(agent), changes={"maximum": 12}, actor="test")
    with tenant_transaction(agent.tenant_id):
        assert policy_of(agent.id).energy == {"regeneration": 15.0}
        assert Tenant.objects.get(id=agent.tenant_id).energy == {}


def test_two_changes_of_a_tenants_energy_at_once_both_stay(agent: Agent) -> None:
    slug = slug_of(agent)
    with transaction.atomic(using=OPS):
        set_tenant_energy(slug=slug, changes={"maximum": 30}, actor="test")
        start_blocked(
            lambda: set_tenant_energy(slug=slug, changes={"regeneration": 4}, actor="test"), using=OPS
        )
    assert Tenant.objects.using(OPS).get(slug=slug).energy == {"maximum": 30.0, "regeneration": 4.0}


def test_an_agent_has_the_energy_of_its_template(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        add_template(text=TEMPLATE, actor="test")
        miser = create_agent(
            name="Miser",
            template_name="Miser",
            actor="test",
            interval=settings.ARBOR_HEARTBEAT_INTERVAL,
        )
        stored = AgentPolicy.objects.get(agent_id=miser.id).energy
        assert stored == {"regeneration": 3.0, "maximum": 12.0, "costs": {"reflect": 4}}
        assert load_agent(miser.id).energy_terms.maximum == 12
        assert not AgentPolicy.objects.filter(agent_id=agent.id).exists()


def test_a_template_whose_costs_cannot_be_paid_is_refused() -> None:
    with pytest.raises(TemplateInvalid, match="energy: the energy cost of reflect is 0 to the maximum of 12"):
        read_template(TEMPLATE.replace("reflect: 4", "reflect: 14"))
