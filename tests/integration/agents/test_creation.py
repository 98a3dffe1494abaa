"""The creation of agents: complete, or rolled back as a whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from apps.agents.models import Agent, AgentKey, AgentState, HeartbeatSchedule, ScheduleState
from apps.agents.services.identity import identities_of
from apps.agents.services.templates import add_template, find_template
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet import creation
from apps.fleet.creation import NewAgent, create_agent, create_agents, ensure_agent
from apps.goals.models import Goal
from apps.memories.models import Memory
from apps.memories.services.store.remember import MemoryWriter
from apps.selves.models import Belief, IdentityAspect
from apps.selves.services.history import birth_self_of
from apps.selves.services.self_knowledge import system_prompt_of
from apps.tenants.checks import tenant_models
from apps.tenants.keys import master_keys
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import set_status
from arbor.agents.identity import open_private_key, public_id, sign, verify
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import AlreadyExists, ConfigurationInvalid, Invalid, NotFound, SealBroken, TransitionIllegal
from arbor.goals.backlog import Backlog
from arbor.goals.values import GoalState, GoalType
from arbor.heartbeat.actions import first_actions
from arbor.memory.values import MemoryType
from arbor.sealing import SealedRecord
from arbor.selves.history import PartKind
from config.keys import KeySource
from tests.factories.authority import allowed_actions
from tests.integration.agents.conftest import ACTOR, MakeAgent

SMALL = """---
name: {name}
version: "2.0"
character: {{name: Small}}
actions: [rest]
{more}
---
"""


def rows_of_tenants() -> dict[str, int]:
    """Return the number of rows of all tenants by table, as the owner of the tables sees them; empty tables are left out."""
    counts = {}
    with connections["owner"].cursor() as cursor:
        for model in tenant_models():
            cursor.execute("SET row_security = off")
            cursor.execute(f"SELECT count(*) FROM {model._meta.db_table}")
            counts[model._meta.db_table] = cursor.fetchone()[0]
    return {table: count for table, count in counts.items() if count}


def test_a_new_agent_has_everything_its_template_gives_it(make: MakeAgent, tenant: Tenant) -> None:
    agent = make(template_name="monitor")
    with tenant_transaction(tenant.id):
        spec = find_template("Monitor").spec
        state = AgentState.objects.get(agent=agent)
        assert agent.status == AgentStatus.CREATED
        assert (agent.template_name, agent.template_version) == ("Monitor", spec.version)
        assert allowed_actions(agent) == sorted(first_actions(spec.actions))
        assert [thought["text"] for thought in state.working_memory["thoughts"]] == list(
            spec.initial_thoughts
        )
        assert state.working_memory["curiosity"] == list(spec.initial_interests)
        assert state.working_memory["agent_id"] == str(state.agent_id)
        assert state.working_memory["name"] == state.agent.name
        assert state.working_memory["started_at"]
        assert {goal.title for goal in Goal.objects.all()} == {goal.heading for goal in spec.initial_goals}
        known = set(Memory.objects.filter(type=MemoryType.SEMANTIC).values_list("content", flat=True))
        assert {item.content for item in spec.character.knowledge} == known
        assert not Belief.objects.exists()
        assert set(IdentityAspect.objects.values_list("kind", "content")) == {
            ("self_concept", spec.character.nature),
            ("purpose", spec.character.role),
            ("emotional_baseline", spec.character.tone),
            *(("trait", trait.name) for trait in spec.character.traits),
            *(("value", value) for value in spec.values),
        }
        aspects = birth_self_of(agent.id).of(PartKind.ASPECT)
        assert {UUID(target): values["content"] for target, values in aspects.items()} == dict(
            IdentityAspect.objects.values_list("id", "content")
        )
        event = AuditEvent.objects.get()
        assert (event.action, event.actor, event.agent_id) == (AuditAction.AGENT_CREATED, ACTOR, agent.id)


def test_first_memories_have_vectors_of_an_in_process_embedder(
    make: MakeAgent, tenant: Tenant, settings: Any
) -> None:
    make(template_name="monitor")
    settings.ARBOR_EMBED_AT_STORAGE = "never"
    make(template_name="monitor", name="Later")
    with tenant_transaction(tenant.id):
        missing = Memory.objects.filter(embedding=None)
        assert {name for (name,) in missing.values_list("agent__name")} == {"Later"}
        assert Memory.objects.exclude(embedding=None).count() == missing.count()


def test_the_id_is_derived_from_a_key_of_the_agent_alone(make: MakeAgent, tenant: Tenant) -> None:
    agent = make()
    with tenant_transaction(tenant.id):
        key = AgentKey.objects.get(agent=agent, purpose="signing")
    assert agent.public_id == public_id(bytes(key.public_key))
    sealed = SealedRecord.from_json(key.sealed_private_key)
    keys = master_keys()
    private = open_private_key(sealed, keys=keys, agent_public_id=agent.public_id, tenant_id=str(tenant.id))
    assert verify(bytes(key.public_key), b"it is me", sign(private, b"it is me"))
    with pytest.raises(SealBroken):
        open_private_key(
            sealed, keys=keys, agent_public_id=make(name="Rigel").public_id, tenant_id=str(tenant.id)
        )


def test_a_new_agents_schedule_is_off_until_the_start(make: MakeAgent, tenant: Tenant) -> None:
    agent = make(interval=timedelta(seconds=90))
    with tenant_transaction(tenant.id):
        schedule = HeartbeatSchedule.objects.get(agent=agent)
    assert (schedule.state, schedule.interval_s) == (ScheduleState.OFF, 90)


def test_a_new_agent_has_its_templates_interval(make: MakeAgent, tenant: Tenant) -> None:
    agent = make()
    with tenant_transaction(tenant.id):
        assert HeartbeatSchedule.objects.get(agent=agent).interval_s == 1800


def test_three_goals_are_active_and_the_rest_is_queued(make: MakeAgent, tenant: Tenant) -> None:
    goals = [f"  - {{type: explore, description: Region {n}, priority: {n * 10}}}" for n in range(6)]
    text = SMALL.format(name="Mapper", more="initial_goals:\n" + "\n".join(goals))
    with tenant_transaction(tenant.id):
        add_template(text=text, actor=ACTOR)
    make(template_name="Mapper")
    with tenant_transaction(tenant.id):
        states = dict(Goal.objects.values_list("title", "state"))
        stated = dict(Goal.objects.values_list("title", "priority"))
        assert set(Goal.objects.values_list("type", flat=True)) == {GoalType.EXPLORE}
    assert stated == {f"Region {number}": number * 10 for number in range(6)}
    assert {title for title, state in states.items() if state == GoalState.ACTIVE} == {
        "Region 5",
        "Region 4",
        "Region 3",
    }
    assert [state for state in states.values() if state != GoalState.ACTIVE] == [GoalState.QUEUED] * 3


def test_a_tenants_own_template_goes_before_a_built_in_one(make: MakeAgent, tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        add_template(text=SMALL.format(name="scout", more=""), actor=ACTOR)
    assert make(template_name="Scout").template_version == "2.0"


def test_the_system_prompt_has_the_agents_name_and_traits(make: MakeAgent, tenant: Tenant) -> None:
    agent = make(name="Wren", template_name="Kestrel")
    with tenant_transaction(tenant.id):
        prompt = system_prompt_of(agent)
    assert prompt.startswith("# Character: Wren\n")
    assert "strongly experimental" in prompt


def test_the_audit_log_lists_texts_shortened_for_working_memory(make: MakeAgent, tenant: Tenant) -> None:
    long = "why " * 60
    with tenant_transaction(tenant.id):
        add_template(
            text=SMALL.format(name="Asker", more=f"initial_interests: ['{long.strip()}']"), actor=ACTOR
        )
    make(template_name="Asker")
    with tenant_transaction(tenant.id):
        shortened = AuditEvent.objects.get(action=AuditAction.AGENT_CREATED).detail["shortened"]
    assert len(shortened) == 1
    assert shortened[0].startswith("why why")


def test_an_unknown_template_is_refused_with_the_existing_names(make: MakeAgent) -> None:
    with pytest.raises(NotFound, match=r"no template 'Scot'; there is: Alder, .*Scout"):
        make(template_name="Scot")


def test_a_used_name_is_refused_in_any_case(make: MakeAgent) -> None:
    make(name="Vega")
    with pytest.raises(AlreadyExists, match="'vega'"):
        make(name="vega")


@pytest.mark.parametrize("name", ["", "  ", "-dash", "a/b", "x" * 65, "two\nlines", "nul\0", "<b>"])
def test_a_name_that_cannot_be_typed_or_read_is_refused(make: MakeAgent, name: str) -> None:
    with pytest.raises(Invalid, match="an agent's name begins with"):
        make(name=name)


@pytest.mark.parametrize("seconds", [0, 0.5, 31 * 86400])
def test_an_interval_out_of_range_is_refused(make: MakeAgent, seconds: float) -> None:
    with pytest.raises(Invalid, match="1 second to 30 days"):
        make(interval=timedelta(seconds=seconds))


def test_no_agent_can_be_created_in_a_suspended_tenant(make: MakeAgent, tenant: Tenant) -> None:
    set_status(slug=tenant.slug, status=TenantStatus.SUSPENDED)

    with pytest.raises(TransitionIllegal, match=f"the tenant {tenant.slug} is suspended; resume it first"):
        make()
    with tenant_transaction(tenant.id):
        assert not Agent.objects.exists()


def test_a_model_that_is_no_handle_is_refused(make: MakeAgent) -> None:
    with pytest.raises(Invalid, match="provider/model"):
        make(model="gpt")


def test_without_a_master_key_nothing_is_made(make: MakeAgent, settings: Any) -> None:
    settings.ARBOR_MASTER_KEYS = KeySource()
    with pytest.raises(ConfigurationInvalid, match="openssl rand -base64 32"):
        make()
    assert rows_of_tenants() == {}


def test_agents_created_together_are_all_there_or_none(tenant: Tenant, templates: None) -> None:
    new_agents = [NewAgent(name=name, template_name="Scout") for name in ("Vega", "Lyra")]
    with tenant_transaction(tenant.id):
        agents = create_agents(
            new_agents=[*new_agents, NewAgent(name="Deneb", template_name="Researcher")], actor=ACTOR
        )
        identities = identities_of([agent.id for agent in agents])
        assert [agent.name for agent in agents] == ["Vega", "Lyra", "Deneb"]
        assert {identity.refusal for identity in identities.values()} == {""}
        assert AuditEvent.objects.filter(action=AuditAction.AGENT_CREATED).count() == 3
        counts = [Memory.objects.filter(agent=agent).count() for agent in agents[:2]]
        assert counts[0] == counts[1] > 0
        for again in ("deneb", "Mira"):
            with pytest.raises(AlreadyExists, match="already; choose another name"):
                create_agents(
                    new_agents=[NewAgent(name=name, template_name="Scout") for name in ("Mira", again)],
                    actor=ACTOR,
                )
        with pytest.raises(Invalid, match="1 to 100 agents"):
            create_agents(new_agents=[], actor=ACTOR)
        assert Agent.objects.count() == 3


class InjectedError(Exception):
    """A fault that the test injects."""


STEPS = [
    (creation, "find_template"),
    (creation, "generate_key_pair"),
    (creation, "_store_agents"),
    (creation, "create_identities"),
    (creation, "grant_actions"),
    (creation, "create_schedules"),
    (creation, "create_policy"),
    (creation, "first_working_memory"),
    (creation, "load_backlogs"),
    (Backlog, "add"),
    (creation, "save_backlogs"),
    (creation, "create_selves"),
    (MemoryWriter, "write"),
    (creation, "record"),
    (creation, "emit"),
]


def break_after(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
    """Let the step complete and then raise."""
    step: Callable[..., object] = getattr(owner, name)

    def broken(*args: object, **kwargs: object) -> None:
        step(*args, **kwargs)
        raise InjectedError

    monkeypatch.setattr(owner, name, broken)


@pytest.mark.parametrize(("owner", "name"), STEPS, ids=[name for _, name in STEPS])
def test_a_failure_at_any_step_leaves_no_row(
    make: MakeAgent, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    break_after(monkeypatch, owner, name)
    with pytest.raises(InjectedError):
        make()
    assert rows_of_tenants() == {}


def test_a_failed_creation_keeps_earlier_writes(
    tenant: Tenant, templates: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_after(monkeypatch, MemoryWriter, "write")
    with tenant_transaction(tenant.id):
        add_template(text=SMALL.format(name="Kept", more=""), actor=ACTOR)
        with pytest.raises(InjectedError):
            create_agent(name="Vega", template_name="Scout", actor=ACTOR)
    assert rows_of_tenants() == {"agents_template": 1, "audit_auditevent": 1}


def test_an_agent_that_exists_is_ensured_without_a_change(make: MakeAgent, tenant: Tenant) -> None:
    agent, rows = make(name="Vega"), rows_of_tenants()
    with tenant_transaction(tenant.id):
        again = ensure_agent(name="vega", template_name="scout", actor=ACTOR)
        with pytest.raises(AlreadyExists, match="created from the template Scout, not Monitor"):
            ensure_agent(name="Vega", template_name="Monitor", actor=ACTOR)
        other = ensure_agent(name="Rigel", template_name="Scout", actor=ACTOR)
    assert (again.id, other.name) == (agent.id, "Rigel")
    assert rows_of_tenants()["agents_agent"] == rows["agents_agent"] + 1
