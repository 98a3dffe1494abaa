"""A tenant's skills: stored, replaced, chosen, deleted; never another tenant's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import IntegrityError, transaction

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.knowledge.models import AgentSkill, SkillVersion
from apps.knowledge.services.active_skills import active_skills, choose_skills
from apps.knowledge.services.skills import (
    SkillOrigin,
    add_skill,
    delete_skill,
    find_skill,
    latest_versions,
    list_skills,
    replace_skill,
    text_of,
)
from apps.signals.services.reading import SignalFilter, read_signals
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound, SkillInvalid
from arbor.signals import Cursor, SignalName
from tests.integration.memories.conftest import at_once
from tests.integration.skills.conftest import ACTOR, skill_text


@pytest.fixture
def scope(agent: Agent) -> Iterator[None]:
    """Run the test inside the transaction of the agent's tenant."""
    with tenant_transaction(agent.tenant_id):
        yield


@pytest.mark.usefixtures("scope")
def test_a_skill_has_unchanging_versions() -> None:
    first = add_skill(text=skill_text("lamps"), actor=ACTOR)
    second = replace_skill(text=skill_text("lamps", "Dim them.", version="2"), actor="user:ada")
    assert replace_skill(text=skill_text("lamps", "Dim them.", version="2"), actor=ACTOR) == second
    back = replace_skill(text=skill_text("lamps"), actor=ACTOR)
    assert (first.digest, first.origin) == (back.digest, SkillOrigin.TENANT)
    versions = latest_versions(find_skill("lamps"))
    assert [(version.version, version.created_by, version.is_current) for version in versions.shown] == [
        ("2", "user:ada", False),
        ("1", ACTOR, True),
    ]
    assert text_of(back) == skill_text("lamps")
    acts = AuditEvent.objects.filter(action=AuditAction.SKILL_CHANGED).order_by("id")
    assert [event.message for event in acts] == [
        "added the skill lamps 1",
        "changed the skill lamps 2",
        "changed the skill lamps 1",
    ]
    assert acts[1].detail["before"] == first.digest


@pytest.mark.usefixtures("scope")
def test_a_replaced_skill_is_returned_with_its_agents(agent: Agent) -> None:
    assert add_skill(text=skill_text("lamps"), actor=ACTOR).agents == 0
    choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
    for body in ("Dim them.", "Dim them."):
        assert replace_skill(text=skill_text("lamps", body), actor=ACTOR).agents == 1


@pytest.mark.usefixtures("scope")
def test_wrong_skills_are_refused() -> None:
    add_skill(text=skill_text("lamps"), actor=ACTOR)
    with pytest.raises(AlreadyExists, match="replace it"):
        add_skill(text=skill_text("lamps", "Other."), actor=ACTOR)
    with pytest.raises(NotFound, match="no skill 'ropes' of its own; add it"):
        replace_skill(text=skill_text("ropes"), actor=ACTOR)
    with pytest.raises(SkillInvalid, match="must be lower-case"):
        add_skill(text=skill_text("Big Lamps"), actor=ACTOR)
    with pytest.raises(NotFound, match=r"there is no skill 'ropes'; there is: .*lamps"):
        find_skill("ropes")


def test_a_person_chooses_the_skills_of_an_agent(agent: Agent, scope: None) -> None:
    for name in ("lamps", "ropes"):
        add_skill(text=skill_text(name), actor=ACTOR)
    choose_skills(agent_id=agent.id, names=["ropes", "lamps"], actor=ACTOR)
    assert [skill.name for skill in active_skills(agent.id)] == ["ropes", "lamps"]
    assert {skill.name: skill.agents for skill in list_skills() if skill.agents} == {"lamps": 1, "ropes": 1}
    with pytest.raises(Invalid, match="lamps is in use by Ada: choose other skills"):
        delete_skill(name="lamps", actor=ACTOR)
    choose_skills(agent_id=agent.id, names=["ropes"], actor=ACTOR)
    delete_skill(name="lamps", actor=ACTOR)
    assert SkillVersion.objects.filter(name="lamps").exists()
    event = AuditEvent.objects.filter(action=AuditAction.SKILL_CHANGED, agent_id=agent.id).latest("id")
    assert (event.message, event.detail) == (
        "Ada uses ropes",
        {"before": ["ropes", "lamps"], "after": ["ropes"]},
    )


def test_a_change_is_a_signal_to_the_agents_that_use_it(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        add_skill(text=skill_text("lamps"), actor=ACTOR)
        choose_skills(agent_id=agent.id, names=["lamps"], actor=ACTOR)
        changed = replace_skill(text=skill_text("lamps", "Dim them."), actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        page = read_signals(after=Cursor(), wanted=SignalFilter.of(names=["agent.skill*"]))
    assert [(record.name, record.data) for record in page.signals] == [
        (SignalName.AGENT_SKILLS_CHOSEN, {"skills": ["lamps"], "actor": ACTOR}),
        (SignalName.AGENT_SKILL_CHANGED, {"skill": "lamps", "digest": changed.digest, "actor": ACTOR}),
    ]


def test_an_agent_has_at_most_five_skills_in_the_database(agent: Agent, scope: None) -> None:
    names = [f"skill-{number}" for number in range(6)]
    for name in names:
        add_skill(text=skill_text(name), actor=ACTOR)
    with pytest.raises(LimitReached, match="at most 5 active skills, got 6"):
        choose_skills(agent_id=agent.id, names=names, actor=ACTOR)
    choose_skills(agent_id=agent.id, names=names[:5], actor=ACTOR)
    row = AgentSkill(tenant_id=agent.tenant_id, agent=agent, position=6, name=names[5])
    with pytest.raises(IntegrityError, match="at_most_five"), transaction.atomic():
        row.save(force_insert=True)


def test_skills_that_do_not_fit_the_window_are_refused(
    agent: Agent, scope: None, set_window: Callable[[int], None]
) -> None:
    set_window(16_384)
    add_skill(text=skill_text("short"), actor=ACTOR)
    add_skill(text=skill_text("long", "word " * 9_000), actor=ACTOR)
    with pytest.raises(
        LimitReached, match=r"agent Ada: the skills take 11,\d+ tokens \(short \d, long 11,"
    ) as refused:
        choose_skills(agent_id=agent.id, names=["short", "long"], actor=ACTOR)
    assert "its window of 16,384 also contains the rules" in str(refused.value)
    choose_skills(agent_id=agent.id, names=["short"], actor=ACTOR)
    with pytest.raises(LimitReached, match="agent Ada: the skills take"):
        replace_skill(text=skill_text("short", "word " * 9_000), actor=ACTOR)
    assert find_skill("short").tokens < 10


def test_two_skills_that_grow_at_once_do_not_overfill_the_window(
    agent: Agent, set_window: Callable[[int], None]
) -> None:
    set_window(16_384)
    names = ("lamps", "ropes")
    with tenant_transaction(agent.tenant_id):
        for name in names:
            add_skill(text=skill_text(name), actor=ACTOR)
        choose_skills(agent_id=agent.id, names=names, actor=ACTOR)

    def grow(number: int) -> bool:
        try:
            with tenant_transaction(agent.tenant_id):
                replace_skill(text=skill_text(names[number], "word " * 5_000), actor=ACTOR)
        except LimitReached:
            return False
        return True

    assert sorted(at_once(grow, writers=2)) == [False, True]


def test_skills_of_another_tenant_do_not_exist(agent: Agent, other_tenant: Tenant) -> None:
    with tenant_transaction(other_tenant.id):
        add_skill(text=skill_text("secret"), actor=ACTOR)
    with tenant_transaction(agent.tenant_id):
        with pytest.raises(NotFound, match="there is no skill 'secret'"):
            choose_skills(agent_id=agent.id, names=["secret"], actor=ACTOR)
        assert "secret" not in [skill.name for skill in list_skills()]
