"""The page of an agent's categories of documents, and the form that sets them."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.agents.models import Agent
from apps.agents.services.lookup import agent_by_id
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.views import console_page, refuse
from apps.knowledge.services.categories import categories_of, describe_categories, set_categories
from apps.knowledge.services.reading import count_categories
from apps.tenants.scope import APP
from arbor.errors import ArborError, Invalid

#: The scopes that can be posted: documents of every category, or of the posted ones.
_ALL, _CHOSEN = "all", "chosen"


@dataclass(frozen=True, kw_only=True)
class CategoryChoice:
    """A category, empty for documents without one, and the number of its published documents."""

    category: str
    published: int
    is_chosen: bool


@dataclass(frozen=True, kw_only=True)
class AgentDocumentsPage:
    """The categories of documents that an agent finds, and the other categories."""

    agent: Agent
    finds_all: bool
    choices: list[CategoryChoice]
    may_operate: bool


@require_http_methods(["GET", "HEAD", "POST"])
def show_agent_documents(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Show the categories of documents that an agent finds; set them to the posted ones."""
    require_member(request, to="see what its agents find")
    agent = agent_by_id(agent_id)
    if request.method == "POST":
        if not has_right(request, Right.OPERATE):
            return refuse(request, agent_id=agent_id, attempted="choose categories of an agent")
        _choose(request, agent)
        return HttpResponseRedirect(reverse("admin:agent-documents", args=[agent_id]))
    page = _read_page(agent, may_operate=has_right(request, Right.OPERATE))
    return console_page(
        request, "console/agent_documents.html", title=f"Documents of {agent.name}", page=page
    )


def _read_page(agent: Agent, *, may_operate: bool) -> AgentDocumentsPage:
    """Return the page; an agent's category that no document has is a choice too. Two queries."""
    chosen = categories_of(agent.id)
    published = {count.category: count.published for count in count_categories()}
    return AgentDocumentsPage(
        agent=agent,
        finds_all=chosen is None,
        choices=[
            CategoryChoice(
                category=category, published=published.get(category, 0), is_chosen=category in (chosen or ())
            )
            for category in sorted({*published, *(chosen or ())})
        ],
        may_operate=may_operate,
    )


def _choose(request: HttpRequest, agent: Agent) -> None:
    scope = request.POST.get("scope", "")
    chosen = None if scope == _ALL else request.POST.getlist("category")
    try:
        if scope not in {_ALL, _CHOSEN}:
            raise Invalid(f"the scope must be {_ALL} or {_CHOSEN}, got {scope[:60]!r}")
        with transaction.atomic(using=APP):
            found = set_categories(agent_id=agent.id, categories=chosen, actor=actor_of(request))
    except ArborError as refusal:
        messages.error(request, f"Nothing was changed: {refusal}.")
        return
    messages.success(request, f"{agent.name} finds {describe_categories(found)}.")
