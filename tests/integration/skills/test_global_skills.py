"""The installation's skills: loaded from files, changed with them, withdrawn without being taken from agents."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import pytest
from django.db import DatabaseError, connections

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.calls.services.provider_keys import ProviderAccess, store_provider_key
from apps.fleet import tenant_models
from apps.fleet.policy import set_policy
from apps.fleet.tenant_models import disconnect_provider, set_default_model
from apps.knowledge.models import AgentSkill, GlobalSkill, GlobalSkillVersion
from apps.knowledge.services import global_skills, skill_users
from apps.knowledge.services.active_skills import active_skills, choose_skills
from apps.knowledge.services.global_skills import load_global_skills, reload_changed_skills
from apps.knowledge.services.skill_texts import skills_column
from apps.knowledge.services.skills import (
    FoundSkill,
    SkillOrigin,
    add_skill,
    delete_skill,
    find_skill,
    list_skills,
    replace_skill,
    text_of,
)
from apps.signals.services.reading import SignalFilter, read_signals
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.tenants.statements import fetch
from arbor.errors import Invalid, LimitReached
from arbor.knowledge.skill_files import read_folders, shipped_folder
from arbor.signals import Cursor
from config.cli.checks.finding import CheckVerdict
from config.cli.checks.skills import check_skills
from tests.integration.skills.conftest import WriteSkill, skill_text
from tests.support.races import none_if_refused, race
from tests.support.threads import await_blocked_session, in_own_connection

ACTOR = "user:nora"

pytestmark = pytest.mark.usefixtures("database")


def test_the_skills_that_come_with_arbor_are_valid() -> None:
    shipped = read_folders([shipped_folder()])
    assert shipped.unreadable == ()
    assert {"cited-answers", "decision-memo"} <= set(shipped.skills)


def test_files_are_loaded_once_and_again_when_they_change(write_skill: WriteSkill) -> None:
    write_skill("lamps")
    first = reload_changed_skills()
    assert first is not None
    assert first.added == ["lamps"]
    assert reload_changed_skills() is None
    write_skill("lamps", "Dim all of them.", version="2")
    changes = reload_changed_skills()
    assert changes is not None
    assert (changes.added, changes.changed, changes.unchanged) == ([], ["lamps"], 0)
    assert GlobalSkill.objects.get(name="lamps").version == "2"
    assert GlobalSkillVersion.objects.filter(name="lamps").count() == 2
    events = PlatformEvent.objects.using(OPS).filter(action=AuditAction.SKILL_CHANGED).order_by("id")
    assert [event.message for event in events] == [
        "global skills: added lamps",
        "global skills: changed lamps",
    ]


def test_a_broken_file_leaves_the_last_version(write_skill: WriteSkill) -> None:
    write_skill("lamps")
    load_global_skills(actor=ACTOR)
    path = write_skill("lamps", text="no front matter")
    write_skill("ropes", text=skill_text("cords"))
    changes = load_global_skills(actor=ACTOR)
    assert (changes.changed, changes.withdrawn) == ([], [])
    broken, misnamed = changes.unreadable
    assert broken.path == str(path)
    assert "front matter" in broken.fault
    assert "named 'cords', and its folder 'ropes'" in misnamed.fault
    assert GlobalSkill.objects.get(name="lamps").is_present


def test_agents_keep_a_skill_whose_file_is_gone(agent: Agent, write_skill: WriteSkill) -> None:
    path = write_skill("lamps")
    write_skill("ropes")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    path.unlink()
    assert load_global_skills(actor=ACTOR).withdrawn == ["lamps"]
    with tenant_transaction(agent.tenant_id):
        assert [(skill.name, skill.is_present) for skill in active_skills(agent.id)] == [("lamps", False)]
        choose_skills(agent_id=agent.id, names=["ropes", "lamps"], actor=ACTOR)
        choose_skills(agent_id=agent.id, names=["ropes"], actor=ACTOR)
        with pytest.raises(Invalid, match="lamps is no longer in the installation's folder"):
            choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        assert [skill.name for skill in list_skills()] == ["ropes"]


def test_a_change_reaches_the_tenants_whose_agents_use_it(agent: Agent, write_skill: WriteSkill) -> None:
    write_skill("lamps")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    write_skill("lamps", "Dim all of them.")
    load_global_skills(actor="system:skills")
    with tenant_transaction(agent.tenant_id):
        page = read_signals(after=Cursor(), wanted=SignalFilter.of(names=["agent.skill_changed"]))
        event = AuditEvent.objects.filter(action=AuditAction.SKILL_CHANGED).latest("id")
    assert [(record.agent_id, record.data["skill"]) for record in page.signals] == [(agent.id, "lamps")]
    assert (event.message, event.actor) == ("the global skill lamps changed", "system:skills")


def test_a_change_and_its_signals_commit_together(
    agent: Agent, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill("lamps")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    write_skill("lamps", "Dim all of them.", version="2")

    def crash(*_: object) -> None:
        raise RuntimeError("crashed")

    with monkeypatch.context() as patch:
        patch.setattr(skill_users, "write_tenant_signals", crash)
        with pytest.raises(RuntimeError, match="crashed"):
            load_global_skills(actor=ACTOR)
    assert GlobalSkill.objects.get(name="lamps").version == "1"
    assert load_global_skills(actor=ACTOR).changed == ["lamps"]
    with tenant_transaction(agent.tenant_id):
        page = read_signals(after=Cursor(), wanted=SignalFilter.of(names=["agent.skill_changed"]))
    assert len(page.signals) == 1


def test_agents_keep_a_version_where_a_larger_one_does_not_fit(
    agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill
) -> None:
    set_window(16_384)
    write_skill("lamps")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        (first,) = choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    for version in ("2", "3"):
        write_skill("lamps", "word " * 9_000, version=version)
        assert load_global_skills(actor=ACTOR).unfitting == ["Ada (lamps)"]
    with tenant_transaction(agent.tenant_id):
        assert [(skill.version, skill.retained_digest) for skill in active_skills(agent.id)] == [
            ("3", first.digest)
        ]
        assert _prompted(agent) == [["lamps", first.digest]]
        event = AuditEvent.objects.filter(agent_id=agent.id, level="warning").latest("id")
    assert event.message == "Ada keeps its version of lamps: the latest does not fit"
    assert "the skills take 11," in event.detail["fault"]
    assert "which keep an earlier version: Ada (lamps)" in check_skills().detail
    with tenant_transaction(agent.tenant_id):
        # What the agent uses counts, not the version that it does not use.
        set_policy(agent_id=agent.id, changes={"tier_models": {"reflex": ["ollama/tiny"]}}, actor=ACTOR)
        assert _prompted(agent) == [["lamps", first.digest]]
    write_skill("lamps", "Dim them.", version="4")
    assert load_global_skills(actor=ACTOR).unfitting == []
    with tenant_transaction(agent.tenant_id):
        assert _prompted(agent) == [["lamps", find_skill("lamps").digest]]
    assert check_skills().verdict is CheckVerdict.OK


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
    changes, chosen = race(lambda: load_global_skills(actor=ACTOR), none_if_refused(choose, LimitReached))
    assert changes.changed == ["lamps"]
    assert chosen is None


def test_models_that_skills_do_not_fit_are_refused(
    agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_window(128_000)
    write_skill("lamps", "word " * 9_000)
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        (skill,) = choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
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
        assert _prompted(agent) == [["lamps", skill.digest]]
    with tenant_transaction(agent.tenant_id):
        signals = read_signals(after=Cursor(), wanted=SignalFilter.of(names=["agent.skill_changed"])).signals
    assert [record.data["digest"] for record in signals] == [skill.digest]


@pytest.fixture
def retaining(agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill) -> str:
    """Let the agent keep the first version of the skill `lamps`, and return its digest."""
    set_window(16_384)
    write_skill("lamps")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        (first,) = choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    write_skill("lamps", "word " * 9_000, version="2")
    assert load_global_skills(actor=ACTOR).unfitting == ["Ada (lamps)"]
    return first.digest


def test_a_retained_version_takes_its_own_room(agent: Agent, retaining: str) -> None:
    """Change models and add a skill of the tenant: neither is refused for a version that the agent does not use."""
    with tenant_transaction(agent.tenant_id):
        set_policy(agent_id=agent.id, changes={"tier_models": {"reflex": ["ollama/tiny"]}}, actor=ACTOR)
        add_skill(text=skill_text("ropes"), actor=ACTOR)
        AgentSkill.objects.create(tenant_id=agent.tenant_id, agent=agent, position=2, name="ropes")
        replace_skill(text=skill_text("ropes", "word " * 100), actor=ACTOR)
        assert _prompted(agent)[0] == ["lamps", retaining]


def test_skills_are_chosen_beside_a_retained_version(agent: Agent, retaining: str) -> None:
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("ropes"), actor=ACTOR)
        chosen = choose_skills(agent_id=agent.id, names=["ropes", "lamps"], actor=ACTOR)
        assert [(skill.name, skill.retained_digest) for skill in chosen] == [
            ("ropes", ""),
            ("lamps", retaining),
        ]
        assert _prompted(agent)[1] == ["lamps", retaining]
        add_skill(text=skill_text("sails", "word " * 9_000), actor=ACTOR)
    with pytest.raises(LimitReached, match=r"lamps \d, "), tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps", "sails"], actor=ACTOR)


def test_choosing_the_same_skills_again_measures_them(
    agent: Agent, retaining: str, set_window: Callable[[int], None]
) -> None:
    with tenant_transaction(agent.tenant_id):
        (kept,) = choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        assert kept.retained_digest == retaining
        set_window(128_000)
        (latest,) = choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        assert latest.retained_digest == ""
        assert _prompted(agent) == [["lamps", latest.digest]]
    set_window(16_384)
    with pytest.raises(LimitReached, match="lamps 11,"), tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)


@pytest.mark.usefixtures("retaining")
def test_another_default_model_lets_agents_use_the_latest(agent: Agent) -> None:
    set_default_model(tenant_id=agent.tenant_id, model="reflex/default", actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        latest = find_skill("lamps").digest
        assert _prompted(agent) == [["lamps", latest]]
        page = read_signals(after=Cursor(), wanted=SignalFilter.of(names=["agent.skill_changed"]))
    assert [record.data["digest"] for record in page.signals] == [latest]


@pytest.fixture
def filling(agent: Agent, set_window: Callable[[int], None], write_skill: WriteSkill) -> Agent:
    """Return an agent that calls no model, whose skill does not fit the model of the installation."""
    set_window(16_384)
    set_default_model(tenant_id=agent.tenant_id, model="reflex/default", actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps", "word " * 9_000), actor=ACTOR)
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    return agent


def test_the_installations_model_is_checked_as_a_default(filling: Agent, tenant: Tenant) -> None:
    with pytest.raises(LimitReached, match=r"agent Ada: the skills take 11,"):
        set_default_model(tenant_id=tenant.id, model="", actor=ACTOR)
    assert Tenant.objects.using(OPS).get(id=tenant.id).default_model == "reflex/default"


def test_a_key_can_be_removed_though_skills_no_longer_fit(
    filling: Agent, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
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
        changing = in_own_connection(
            lambda: set_default_model(tenant_id=agent.tenant_id, model="reflex/default", actor=ACTOR)
        )
        await_blocked_session()
    changing.join(20)
    assert Tenant.objects.using(OPS).get(id=agent.tenant_id).default_model == "reflex/default"


@pytest.mark.usefixtures("retaining")
def test_an_own_skill_must_fit_beside_a_smaller_retained_version(agent: Agent) -> None:
    too_large = skill_text("lamps", "word " * 8_900)
    with pytest.raises(LimitReached, match="agent Ada: the skills take"), tenant_transaction(agent.tenant_id):
        add_skill(text=too_large, actor=ACTOR)


@pytest.mark.usefixtures("retaining")
def test_the_latest_version_follows_a_deleted_own_skill(agent: Agent, write_skill: WriteSkill) -> None:
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps"), actor=ACTOR)
    write_skill("lamps", "Dim them.", version="3")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        delete_skill(name="lamps", actor=ACTOR)
        assert _prompted(agent) == [["lamps", find_skill("lamps").digest]]


def _prompted(agent: Agent) -> list[list[str]]:
    """Return the skills of the agent's next prompt, [name, digest] each."""
    column = skills_column(tenant="a.tenant_id", agent="a.id")
    ((skills,),) = fetch(
        f"SELECT {column} FROM agents_agent a WHERE a.tenant_id = %(tenant)s AND a.id = %(agent)s",
        agent=agent.id,
    )
    assert isinstance(skills, list)
    return skills


def test_a_skill_of_the_tenant_goes_before_a_global_one(agent: Agent, write_skill: WriteSkill) -> None:
    write_skill("lamps", "Globally.")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        assert find_skill("lamps").origin is SkillOrigin.GLOBAL
        add_skill(text=skill_text("lamps", "Locally."), actor=ACTOR)
        assert text_of(find_skill("lamps")).endswith("Locally.\n")
        delete_skill(name="lamps", actor=ACTOR)
        assert text_of(find_skill("lamps")).endswith("Globally.\n")


def test_no_serving_role_changes_a_version(agent: Agent, write_skill: WriteSkill) -> None:
    write_skill("lamps")
    load_global_skills(actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("ropes"), actor=ACTOR)
    for statement in (
        "UPDATE knowledge_skillversion SET text = 'x'",
        "DELETE FROM knowledge_skillversion",
        "UPDATE knowledge_globalskillversion SET text = 'x'",
        "UPDATE knowledge_globalskill SET name = 'x'",
    ):
        with pytest.raises(DatabaseError, match="permission denied"), tenant_transaction(agent.tenant_id):
            connections[APP].cursor().execute(statement)


def test_the_doctor_names_files_and_withdrawn_skills(agent: Agent, write_skill: WriteSkill) -> None:
    path = write_skill("lamps")
    assert "not loaded as they are: lamps" in check_skills().detail
    load_global_skills(actor=ACTOR)
    assert (check_skills().verdict, check_skills().detail) == (CheckVerdict.OK, "1 global skills are loaded")
    with tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    path.unlink()
    write_skill("ropes", text="no front matter")
    load_global_skills(actor=ACTOR)
    finding = check_skills()
    assert finding.verdict is CheckVerdict.WARN
    assert "used by agents, but without a file: lamps" in finding.detail
    assert "ropes/SKILL.md: the skill has 1 fault" in finding.detail
