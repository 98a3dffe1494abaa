"""Pages of skills: the list, the editor, and the choice of skills for an agent."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from apps.agents.models import Agent
from apps.agents.services.lookup import agent_by_id
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.pages.skills import SkillEditorPage, check_skill_text, open_skill
from apps.console.views import console_page, posted_text, refuse
from apps.knowledge.services.active_skills import active_skills, choose_skills
from apps.knowledge.services.skills import (
    FoundSkill,
    add_skill,
    delete_skill,
    list_skills,
    replace_skill,
)
from apps.tenants.scope import APP
from arbor.errors import AlreadyExists, ArborError, Invalid, NotFound
from arbor.knowledge.skills import MAX_SKILLS


@dataclass(frozen=True, kw_only=True)
class AgentSkillsPage:
    """The skills that an agent follows, by place, and the skills that it can follow."""

    agent: Agent
    #: The active skill of each of the five places; empty for none.
    places: list[str]
    active: list[FoundSkill]
    offered: list[FoundSkill]
    may_operate: bool

    @property
    def tokens(self) -> int:
        """Return the tokens of the active skills together."""
        return sum(skill.tokens for skill in self.active)

    @property
    def retained(self) -> list[FoundSkill]:
        """Return the active skills of which the agent follows an earlier version."""
        return [skill for skill in self.active if skill.retained_digest]


@require_safe
def show_skills(request: HttpRequest) -> HttpResponse:
    """List the skills that the tenant's agents can use."""
    require_member(request, to="see its skills")
    return console_page(
        request,
        "console/skills.html",
        title="Skills",
        skills=list_skills(),
        may_operate=has_right(request, Right.OPERATE),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def edit_skill(request: HttpRequest) -> HttpResponse:
    """Show the editor of a skill; check, save or delete what was posted."""
    require_member(request, to="see its skills")
    if request.method != "POST":
        return _editor(request, open_skill(request.GET.get("name", "")))
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted="change a skill")
    name, act = request.POST.get("name", ""), request.POST.get("act")
    if act == "delete":
        return _delete(request, name)
    text = posted_text(request)
    page = check_skill_text(text, name=name)
    if page.skill is not None and act == "save":
        saved = _save(request, text, replaces=page.replaces)
        if saved is not None:
            return saved
    return _editor(request, page)


@require_http_methods(["GET", "HEAD", "POST"])
def show_agent_skills(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Show the skills that an agent follows; set them to the posted ones."""
    require_member(request, to="see its skills")
    agent = agent_by_id(agent_id)
    if request.method == "POST":
        if not has_right(request, Right.OPERATE):
            return refuse(request, agent_id=agent_id, attempted="choose skills of an agent")
        _choose(request, agent)
        return HttpResponseRedirect(reverse("admin:agent-skills", args=[agent_id]))
    active = active_skills(agent.id)
    names = [skill.name for skill in active]
    page = AgentSkillsPage(
        agent=agent,
        places=[*names, *[""] * (MAX_SKILLS - len(names))],
        active=active,
        offered=[skill for skill in list_skills() if skill.is_present or skill.name in names],
        may_operate=has_right(request, Right.OPERATE),
    )
    return console_page(request, "console/agent_skills.html", title=f"Skills of {agent.name}", page=page)


def _choose(request: HttpRequest, agent: Agent) -> None:
    names = [name for name in request.POST.getlist("skill") if name]
    try:
        with transaction.atomic(using=APP):
            chosen = choose_skills(agent_id=agent.id, names=names, actor=actor_of(request))
    except ArborError as refusal:
        messages.error(request, f"Nothing was changed: {refusal}.")
    else:
        listed = ", ".join(skill.name for skill in chosen) or "no skills"
        messages.success(request, f"{agent.name} follows {listed} from its next prompt on.")


def _save(request: HttpRequest, text: str, *, replaces: bool) -> HttpResponse | None:
    """Add or replace the skill, and redirect to its editor; None, with a message, where that is refused."""
    try:
        with transaction.atomic(using=APP):
            skill = (replace_skill if replaces else add_skill)(text=text, actor=actor_of(request))
    except (Invalid, AlreadyExists, NotFound) as refusal:
        messages.error(request, f"Nothing was saved: {refusal}.")
        return None
    messages.success(request, f"Saved the skill {skill.name}, {skill.tokens:,} tokens.")
    return HttpResponseRedirect(f"{reverse('admin:skill-edit')}?name={skill.name}")


def _delete(request: HttpRequest, name: str) -> HttpResponse:
    try:
        with transaction.atomic(using=APP):
            delete_skill(name=name, actor=actor_of(request))
    except ArborError as refusal:
        messages.error(request, f"Nothing was deleted: {refusal}.")
        return HttpResponseRedirect(f"{reverse('admin:skill-edit')}?name={name}")
    messages.success(request, f"Deleted the skill {name}.")
    return HttpResponseRedirect(reverse("admin:skills"))


def _editor(request: HttpRequest, page: SkillEditorPage) -> HttpResponse:
    title = f"Skill {page.found.name}" if page.found else "New skill"
    may_operate = has_right(request, Right.OPERATE)
    return console_page(request, "console/skill_editor.html", title=title, page=page, may_operate=may_operate)
