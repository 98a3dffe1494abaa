"""The installation's skills: loaded from files, changed with them, withdrawn without being taken from agents."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connections

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.knowledge.models import GlobalSkill, GlobalSkillVersion
from apps.knowledge.services import skill_users
from apps.knowledge.services.active_skills import active_skills, choose_skills
from apps.knowledge.services.global_skills import load_global_skills, reload_changed_skills
from apps.knowledge.services.skills import (
    SkillOrigin,
    add_skill,
    delete_skill,
    find_skill,
    list_skills,
    text_of,
)
from apps.signals.services.reading import SignalFilter, read_signals
from apps.tenants.scope import APP, OPS, tenant_transaction
from arbor.errors import Invalid
from arbor.knowledge.skill_files import read_folders, shipped_folder
from arbor.signals import Cursor
from config.cli.checks.finding import CheckVerdict
from config.cli.checks.skills import check_skills
from tests.integration.skills.conftest import ACTOR, WriteSkill, choose_lamps, skill_text

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
    choose_lamps(agent, write_skill)
    write_skill("lamps", "Dim all of them.")
    load_global_skills(actor="system:skills")
    with tenant_transaction(agent.tenant_id):
        page = read_signals(after=Cursor(), wanted=SignalFilter.of(names=["agent.skill_changed"]))
        event = AuditEvent.objects.filter(action=AuditAction.SKILL_CHANGED).latest("id")
    assert [(record.agent_id, record.data["skill"]) for record in page.signals] == [(agent.id, "lamps")]
    assert (event.message, event.actor) == ("the global skill lamps changed", "system:skills")


def test_a_file_that_comes_back_unchanged_is_no_change_for_agents(
    agent: Agent, write_skill: WriteSkill
) -> None:
    choose_lamps(agent, write_skill)
    path = write_skill("lamps")
    load_global_skills(actor=ACTOR)
    text = path.read_text(encoding="utf-8")
    with tenant_transaction(agent.tenant_id):
        before = read_signals(after=Cursor()).cursor, AuditEvent.objects.count()
    path.unlink()
    assert load_global_skills(actor=ACTOR).withdrawn == ["lamps"]
    path.write_text(text, encoding="utf-8")
    assert load_global_skills(actor=ACTOR).changed == ["lamps"]
    with tenant_transaction(agent.tenant_id):
        assert (read_signals(after=before[0]).signals, AuditEvent.objects.count()) == ([], before[1])
    assert GlobalSkill.objects.get(name="lamps").is_present


def test_a_change_and_its_signals_commit_together(
    agent: Agent, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_lamps(agent, write_skill)
    write_skill("lamps", "Dim all of them.", version="2")

    def crash(*_: object, **__: object) -> None:
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


def test_the_serving_role_changes_no_skill_version(agent: Agent, write_skill: WriteSkill) -> None:
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
    assert (check_skills().verdict, check_skills().detail) == (CheckVerdict.OK, "1 global skill is loaded")
    with tenant_transaction(agent.tenant_id):
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    path.unlink()
    assert "not loaded as they are: lamps" in check_skills().detail
    write_skill("ropes", text="no front matter")
    load_global_skills(actor=ACTOR)
    finding = check_skills()
    assert finding.verdict is CheckVerdict.WARN
    assert "used by agents, but without a file: lamps" in finding.detail
    assert "ropes/SKILL.md: the skill has 1 fault" in finding.detail
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps", "Locally."), actor=ACTOR)
    assert "used by agents" not in check_skills().detail
