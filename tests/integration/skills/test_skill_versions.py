"""Versions of global skills: an agent keeps one that fits its models, and that one counts against the window."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.calls.services.provider_keys import ProviderAccess, store_provider_key
from apps.fleet import tenant_models
from apps.fleet.policy import set_policy
from apps.fleet.tenant_models import disconnect_provider, set_default_model
from apps.knowledge.models import AgentSkill
from apps.knowledge.services import global_skills, skill_users
from apps.knowledge.services.active_skills import active_skills, choose_skills
from apps.knowledge.services.global_skills import load_global_skills
from apps.knowledge.services.skill_texts import skills_column
from apps.knowledge.services.skills import (
    FoundSkill,
    add_skill,
    delete_skill,
    find_skill,
    replace_skill,
)
from apps.signals.services.reading import SignalFilter, read_signals
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import fetch
from arbor.errors import LimitReached
from arbor.signals import Cursor
from config.cli.checks.finding import CheckVerdict
from config.cli.checks.skills import check_skills
from tests.integration.skills.conftest import ACTOR, WriteSkill, choose_lamps, skill_text
from tests.support.races import none_if_refused, race
from tests.support.threads import await_blocked_session, start_blocked

pytestmark = pytest.mark.usefixtures("database")


def test_agents_keep_a_version_where_a_larger_one_does_not_fit(
    agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill
) -> None:
    set_window(16_384)
    first = choose_lamps(agent, write_skill)
    for version in ("2", "3"):
        write_skill("lamps", "word " * 9_000, version=version)
        assert load_global_skills(actor=ACTOR).unfitting == ["Ada (lamps)"]
    with tenant_transaction(agent.tenant_id):
        assert [(skill.version, skill.retained_digest) for skill in active_skills(agent.id)] == [
            ("3", first.digest)
        ]
        assert _prompted_skills(agent) == [["lamps", first.digest]]
        event = AuditEvent.objects.filter(agent_id=agent.id, level="warning").latest("id")
    assert event.message == "Ada keeps its version of lamps: the latest does not fit"
    assert "the skills take 11," in event.detail["fault"]
    assert "which keep an earlier version: Ada (lamps)" in check_skills().detail
    with tenant_transaction(agent.tenant_id):
        # What the agent uses counts, not the version that it does not use.
        set_policy(agent_id=agent.id, changes={"tier_models": {"reflex": ["ollama/tiny"]}}, actor=ACTOR)
        assert _prompted_skills(agent) == [["lamps", first.digest]]
    write_skill("lamps", "Dim them.", version="4")
    assert load_global_skills(actor=ACTOR).unfitting == []
    with tenant_transaction(agent.tenant_id):
        assert _prompted_skills(agent) == [["lamps", find_skill("lamps").digest]]
    assert check_skills().verdict is CheckVerdict.OK


def test_a_version_that_comes_back_is_measured_again(
    agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill
) -> None:
    set_window(16_384)
    first = choose_lamps(agent, write_skill)
    path = write_skill("lamps", "word " * 9_000, version="2")
    load_global_skills(actor=ACTOR)
    text = path.read_text(encoding="utf-8")

    def come_back() -> list[list[str]]:
        path.unlink()
        load_global_skills(actor=ACTOR)
        path.write_text(text, encoding="utf-8")
        load_global_skills(actor=ACTOR)
        with tenant_transaction(agent.tenant_id):
            return _prompted_skills(agent)

    with tenant_transaction(agent.tenant_id):
        warnings = AuditEvent.objects.filter(agent_id=agent.id, level="warning").count()
    assert come_back() == [["lamps", first.digest]]
    with tenant_transaction(agent.tenant_id):
        assert AuditEvent.objects.filter(agent_id=agent.id, level="warning").count() == warnings
        latest = find_skill("lamps").digest
    set_window(128_000)
    assert come_back() == [["lamps", latest]]
    with tenant_transaction(agent.tenant_id):
        event = AuditEvent.objects.filter(message__startswith="the global skill lamps").latest("id")
    assert event.message == "the global skill lamps is back unchanged"


def test_an_agent_that_chooses_during_a_load_is_measured(
    agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_window(16_384)
    write_skill("lamps")
    load_global_skills(actor=ACTOR)
    write_skill("lamps", "word " * 9_000, version="2")
    is_checked = threading.Barrier(2)

    def find(changed: Mapping[str, skill_users.SkillChange]) -> list[skill_users.GlobalSkillUser]:
        found = skill_users.find_skill_users(changed)
        is_checked.wait(20)
        await_blocked_session()
        return found

    def choose() -> list[FoundSkill] | None:
        is_checked.wait(20)
        with tenant_transaction(agent.tenant_id):
            return choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)

    monkeypatch.setattr(global_skills, "find_skill_users", find)
    loaded = list[Sequence[str]]()
    _, chosen = race(
        lambda: loaded.append(load_global_skills(actor=ACTOR).changed), none_if_refused(choose, LimitReached)
    )
    assert loaded == [["lamps"]]
    assert chosen is None


def test_models_that_skills_do_not_fit_are_refused(
    agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_window(128_000)
    skill = choose_lamps(agent, write_skill, "word " * 9_000)
    set_window(16_384)
    tiny = {"tier_models": {"reflex": ["ollama/tiny"]}}
    refused = pytest.raises(LimitReached, match=r"agent Ada: .* a prompt for scripted/model has room")
    with refused, tenant_transaction(agent.tenant_id):
        set_policy(agent_id=agent.id, changes=tiny, actor=ACTOR)
    monkeypatch.setattr(tenant_models, "installation_has", lambda handle: True)
    with pytest.raises(LimitReached, match=r"agent Ada: .* a prompt for ollama/tiny has room"):
        set_default_model(tenant_id=agent.tenant_id, model="ollama/tiny", actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        AgentSkill.objects.update(retained_digest="0" * 64)
        set_window(128_000)
        set_policy(agent_id=agent.id, changes=tiny, actor=ACTOR)
        assert _prompted_skills(agent) == [["lamps", skill.digest]]
    with tenant_transaction(agent.tenant_id):
        signals = read_signals(after=Cursor(), wanted=SignalFilter.of(names=["agent.skill_changed"])).signals
    assert [record.data["digest"] for record in signals] == [skill.digest]


@pytest.fixture
def retained_digest(agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill) -> str:
    """Let the agent keep the first version of the skill `lamps`, and return its digest."""
    set_window(16_384)
    first = choose_lamps(agent, write_skill)
    write_skill("lamps", "word " * 9_000, version="2")
    assert load_global_skills(actor=ACTOR).unfitting == ["Ada (lamps)"]
    return first.digest


def test_a_retained_version_takes_its_own_room(agent: Agent, retained_digest: str) -> None:
    """Change models and add a skill of the tenant: neither is refused for a version that the agent does not use."""
    with tenant_transaction(agent.tenant_id):
        set_policy(agent_id=agent.id, changes={"tier_models": {"reflex": ["ollama/tiny"]}}, actor=ACTOR)
        add_skill(text=skill_text("ropes"), actor=ACTOR)
        AgentSkill.objects.create(tenant_id=agent.tenant_id, agent=agent, position=2, name="ropes")
        replace_skill(text=skill_text("ropes", "word " * 100), actor=ACTOR)
        assert _prompted_skills(agent)[0] == ["lamps", retained_digest]


def test_skills_are_chosen_with_a_retained_version(agent: Agent, retained_digest: str) -> None:
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("ropes"), actor=ACTOR)
        chosen = choose_skills(agent_id=agent.id, names=["ropes", "lamps"], actor=ACTOR)
        assert [(skill.name, skill.retained_digest) for skill in chosen] == [
            ("ropes", ""),
            ("lamps", retained_digest),
        ]
        assert _prompted_skills(agent)[1] == ["lamps", retained_digest]
        add_skill(text=skill_text("sails", "word " * 9_000), actor=ACTOR)
    with pytest.raises(LimitReached, match=r"lamps \d, "), tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps", "sails"], actor=ACTOR)


def test_choosing_the_same_skills_again_measures_them(
    agent: Agent, retained_digest: str, set_window: Callable[[int], None]
) -> None:
    with tenant_transaction(agent.tenant_id):
        (retained,) = choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        assert retained.retained_digest == retained_digest
        set_window(128_000)
        (latest,) = choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        assert latest.retained_digest == ""
        assert _prompted_skills(agent) == [["lamps", latest.digest]]
    set_window(16_384)
    with pytest.raises(LimitReached, match="lamps 11,"), tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)


@pytest.mark.usefixtures("retained_digest")
def test_another_default_model_lets_agents_use_the_latest(agent: Agent) -> None:
    set_default_model(tenant_id=agent.tenant_id, model="reflex/default", actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        latest = find_skill("lamps").digest
        assert _prompted_skills(agent) == [["lamps", latest]]
        page = read_signals(after=Cursor(), wanted=SignalFilter.of(names=["agent.skill_changed"]))
    assert [record.data["digest"] for record in page.signals] == [latest]


@pytest.fixture
def full_agent(agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill) -> Agent:
    """Return an agent that calls no model, whose skill does not fit the model of the installation."""
    set_window(16_384)
    set_default_model(tenant_id=agent.tenant_id, model="reflex/default", actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps", "word " * 9_000), actor=ACTOR)
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    return agent


def test_the_installations_model_is_checked_as_a_default(full_agent: Agent, tenant: Tenant) -> None:
    with pytest.raises(LimitReached, match=r"agent Ada: the skills take 11,"):
        set_default_model(tenant_id=tenant.id, model="", actor=ACTOR)
    assert Tenant.objects.using(OPS).get(id=tenant.id).default_model == "reflex/default"


def test_a_refused_default_names_the_first_agents(
    full_agent: Agent, tenant: Tenant, new_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_models, "_FAULTS_NAMED", 1)
    for name in ("Bo", "Cy"):
        other = new_agent(tenant, name)
        with tenant_transaction(tenant.id):
            choose_skills(agent_id=other.id, names=["lamps"], actor=ACTOR)
    with pytest.raises(
        LimitReached,
        match=r"agent Ada: the skills take 11,.*; and the skills of 2 more agents do not fit either$",
    ) as refusal:
        set_default_model(tenant_id=tenant.id, model="", actor=ACTOR)
    assert "agent Bo" not in str(refusal.value)


def test_a_key_can_be_removed_though_skills_no_longer_fit(
    full_agent: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_models, "installation_has", lambda handle: False)
    with tenant_transaction(tenant.id):
        access = ProviderAccess.of("ollama", key="", base_url="https://models.example.org")
        store_provider_key(access=access, listed=(), actor=ACTOR)
    Tenant.objects.using(OPS).filter(id=tenant.id).update(default_model="ollama/tiny")
    disconnect_provider(tenant_id=tenant.id, provider="ollama", actor=ACTOR)
    assert Tenant.objects.using(OPS).get(id=tenant.id).default_model == ""
    with tenant_transaction(tenant.id):
        event = AuditEvent.objects.filter(message__contains="as the default model").latest("id")
    assert "though agent Ada: the skills take 11," in event.message


def test_a_default_model_waits_for_an_agent_that_chooses(agent: Agent, write_skill: WriteSkill) -> None:
    write_skill("lamps")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        start_blocked(
            lambda: set_default_model(tenant_id=agent.tenant_id, model="reflex/default", actor=ACTOR)
        )
    assert Tenant.objects.using(OPS).get(id=agent.tenant_id).default_model == "reflex/default"


@pytest.mark.usefixtures("retained_digest")
def test_an_own_skill_must_fit_beside_a_smaller_retained_version(agent: Agent) -> None:
    too_large = skill_text("lamps", "word " * 8_900)
    with pytest.raises(LimitReached, match="agent Ada: the skills take"), tenant_transaction(agent.tenant_id):
        add_skill(text=too_large, actor=ACTOR)


@pytest.mark.usefixtures("retained_digest")
def test_the_latest_version_follows_a_deleted_own_skill(agent: Agent, write_skill: WriteSkill) -> None:
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps"), actor=ACTOR)
    write_skill("lamps", "Dim them.", version="3")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        delete_skill(name="lamps", actor=ACTOR)
        assert _prompted_skills(agent) == [["lamps", find_skill("lamps").digest]]


def _prompted_skills(agent: Agent) -> list[list[str]]:
    """Return the skills of the agent's next prompt, [name, digest] each."""
    column = skills_column(tenant="a.tenant_id", agent="a.id")
    ((skills,),) = fetch(
        f"SELECT {column} FROM agents_agent a WHERE a.tenant_id = %(tenant)s AND a.id = %(agent)s",
        agent=agent.id,
    )
    assert isinstance(skills, list)
    return skills
