"""The demo of a new installation: created once, completed after an interruption, absent from installations in use."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.agents.models import Agent, HeartbeatSchedule
from apps.fleet.administration import resume_tenant, suspend_tenant
from apps.fleet.lifecycle import destroy_agent
from apps.memories.models import Memory
from apps.tenants.models import Role, User
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import all_slugs, create_tenant, tenant_by_slug, tenants_of
from arbor.agents.lifecycle import AgentStatus
from config.demo import installation
from config.demo.installation import CONVERSATION, INTERVAL_WITH_MODEL, TENANTS, make_demo
from tests.factories.users import UserFactory

TURNS = len(CONVERSATION.read_text(encoding="utf-8").splitlines())


@pytest.fixture
def operator(database: None, templates: None) -> str:
    """Return the name of the user who operates the installation, with the built-in templates stored."""
    UserFactory.create(username="operator")
    return "operator"


def agents_of(slug: str) -> list[Agent]:
    with tenant_transaction(tenant_by_slug(slug).id):
        return list(Agent.objects.select_related("schedule").order_by("name"))


def count_turns(agent: Agent) -> int:
    with tenant_transaction(agent.tenant_id):
        return Memory.objects.filter(agent_id=agent.id, source=f"ingest:{CONVERSATION.name}").count()


def test_two_tenants_get_three_active_agents_with_memories(operator: str) -> None:
    started = timezone.now()
    assert make_demo(operator=operator) == 6
    took = timezone.now() - started
    assert set(all_slugs()) == {"harbour", "orchard"}
    agents = [agent for demo in TENANTS for agent in agents_of(demo.slug)]
    assert len({agent.template_name for agent in agents}) == 6
    for agent in agents:
        assert agent.status == AgentStatus.ACTIVE
        assert count_turns(agent) == TURNS
        assert 20 <= agent.schedule.interval_s <= 40
    due_times = sorted(agent.schedule.next_due_at for agent in agents)
    assert due_times[0] <= timezone.now()
    assert timedelta(seconds=20) < due_times[-1] - due_times[0] < timedelta(seconds=40) + took


def test_the_operator_owns_the_tenants_of_the_demo(operator: str) -> None:
    user = UserFactory.create(username="somebody")
    make_demo(operator="somebody")
    assert {access.slug: access.role for access in tenants_of(user)} == {
        "harbour": Role.OWNER,
        "orchard": Role.OWNER,
    }


def test_the_demo_is_created_once(operator: str) -> None:
    make_demo(operator=operator)
    before = [agent.id for demo in TENANTS for agent in agents_of(demo.slug)]
    assert make_demo(operator=operator) == 0
    assert [agent.id for demo in TENANTS for agent in agents_of(demo.slug)] == before


def test_an_interrupted_demo_has_an_owner_later(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(installation, "set_member_role", interrupt)
        with pytest.raises(KeyboardInterrupt):
            make_demo(operator=operator)
    make_demo(operator=operator)
    owned = {access.slug for access in tenants_of(User.objects.get()) if access.role == Role.OWNER}
    assert owned == {"harbour", "orchard"}


def test_an_interrupted_demo_skips_a_suspended_tenant(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(installation, "ingest", interrupt)
        with pytest.raises(KeyboardInterrupt):
            make_demo(operator=operator)
    suspend_tenant(slug="harbour", actor="test")
    assert make_demo(operator=operator) == 3
    assert [agent.status for agent in agents_of("harbour")] == [AgentStatus.CREATED]
    resume_tenant(slug="harbour", actor="test")
    assert make_demo(operator=operator) == 3


def test_an_installation_with_tenants_gets_no_demo(operator: str) -> None:
    create_tenant(slug="acme", name="Acme")
    assert make_demo(operator=operator) == 0
    assert all_slugs() == ["acme"]


def test_a_destroyed_agent_is_not_created_again(operator: str) -> None:
    make_demo(operator=operator)
    tenant = tenant_by_slug("harbour")
    with tenant_transaction(tenant.id):
        wren = Agent.objects.get(name="Wren")
        destroy_agent(agent_id=wren.id, confirm="Wren", actor="cli:tests")
    assert make_demo(operator=operator) == 0
    assert [agent.name for agent in agents_of("harbour")] == ["Mira", "Tam"]


def test_an_interrupted_demo_is_completed(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def interrupt_second(**arguments: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(installation, "ingest", interrupt_second)
        with pytest.raises(KeyboardInterrupt):
            make_demo(operator=operator)
    assert [agent.status for agent in agents_of("harbour")] == [AgentStatus.ACTIVE, AgentStatus.CREATED]
    assert make_demo(operator=operator) == 5
    agents = [agent for demo in TENANTS for agent in agents_of(demo.slug)]
    assert len(agents) == 6
    assert {agent.status for agent in agents} == {AgentStatus.ACTIVE}
    assert count_turns(agents_of("harbour")[1]) == TURNS


def test_heartbeats_with_a_paid_model_have_a_longer_interval(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "default_model", lambda: "openai/gpt-6-luna")
    make_demo(operator=operator)
    with tenant_transaction(tenant_by_slug("orchard").id):
        intervals = set(HeartbeatSchedule.objects.values_list("interval_s", flat=True))
    assert intervals == {INTERVAL_WITH_MODEL.total_seconds()}


def test_the_bundled_conversation_is_ingested_completely(operator: str) -> None:
    assert TURNS >= 60
    make_demo(operator=operator)
    with tenant_transaction(tenant_by_slug("harbour").id):
        mira = Agent.objects.get(name="Mira")
        sessions = Memory.objects.filter(agent_id=mira.id, source__startswith="ingest:").values("session")
        assert sessions.distinct().count() >= 5
        assert set(sessions.values_list("role", flat=True)) == {"Mara", "Teo"}
