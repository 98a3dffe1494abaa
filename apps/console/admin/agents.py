"""Pages of agents: a list with acts, and a page for each agent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString

from apps.agents.models import Agent
from apps.agents.services.energy import energy_terms_of
from apps.console import cells, columns
from apps.console.access import Right, actor_of, has_right
from apps.console.acts import carry_out
from apps.console.add_pages import AddPageAdmin
from apps.console.forms import DestroyAgentForm, NewAgentForm
from apps.console.listing import PageAdmin, filters, is_list
from apps.console.pages.agent import read_agent, read_agent_overview
from apps.console.views import console_page
from apps.tenants.scope import APP
from arbor.errors import IdentityRefused, Invalid, NotFound
from arbor.quotations import counted

#: The most agents that one act changes; the page Operations and `agent pause-all`, `resume-all` change all.
MAX_SELECTED = 200
#: Reasons of refusals that an act shows, and names of agents with each.
_REASONS_SHOWN, _NAMES_SHOWN = 5, 3


def _act_of(verb: str, label: str) -> Any:
    """Return the admin action that performs an act on the selected agents."""

    @admin.action(description=label, permissions=["operate"])
    def act(model_admin: AgentAdmin, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        model_admin.act_on_selected(request, queryset, verb)

    return act


@admin.register(Agent)
class AgentAdmin(AddPageAdmin, PageAdmin):
    """List agents with acts on them, and show each on its page."""

    list_display = (
        "name_and_id",
        "status_badge",
        "template",
        "energy",
        "heartbeats",
        "last_heartbeat",
        "next_heartbeat",
        "model_shown",
    )
    list_display_links = ("name_and_id",)
    list_filter = filters("status")
    search_fields = ("name", "public_id__startswith")
    search_help_text = "A name, or the beginning of a public id"
    # Only names have an index, and Django would sort by the relation that a column is named after.
    sortable_by = ("name_and_id",)
    ordering = ("name",)
    page_template = "console/agent.html"
    live_template = "console/parts/live_agent.html"
    read_parts = staticmethod(read_agent_overview)
    actions = ("run_now_selected", "start_selected", "pause_selected", "resume_selected", "stop_selected")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """Read what the list shows, or one agent's page, in one query."""
        agents: QuerySet[Agent] = (
            super().get_queryset(request).select_related("state", "schedule", "policy", "tenant")
        )
        if not is_list(request):
            return agents
        return agents.defer("character", "genome", "pipeline", "state__working_memory")

    def has_operate_permission(self, request: HttpRequest, _object_id: Any = None) -> bool:
        """Allow acts to operators."""
        return has_right(request, Right.OPERATE)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Allow owners to destroy agents."""
        return has_right(request, Right.OWN)

    # --- Pages -----------------------------------------------------------------------------------------

    def page_context(self, request: HttpRequest, row: Agent) -> dict[str, Any]:
        """Return the agent's page, and whether the person may destroy the agent."""
        page = read_agent(
            row,
            may_operate=self.has_operate_permission(request),
            may_approve=has_right(request, Right.APPROVE),
            may_own=has_right(request, Right.OWN),
        )
        return {"title": row.name, "page": page, "may_destroy": self.has_delete_permission(request)}

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Create an agent from a form."""
        form = NewAgentForm(request.POST if request.method == "POST" else None)
        if form.is_valid() and (agent := form.create(actor=actor_of(request))):
            messages.success(request, f"{agent.name} is {agent.status}.")
            return HttpResponseRedirect(cells.page_of("agents_agent", agent.id))
        return console_page(request, "console/agent_new.html", title="New agent", opts=self.opts, form=form)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Destroy an agent after its name was typed."""
        if not self.has_delete_permission(request):
            raise PermissionDenied
        agent = self.get_object(request, object_id)
        if agent is None:
            missing: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
            return missing
        form = DestroyAgentForm(request.POST if request.method == "POST" else None)
        if form.is_valid() and form.destroy(agent=agent, actor=actor_of(request)) is not None:
            messages.success(request, f"{agent.name} is destroyed, and all that was its own.")
            return HttpResponseRedirect(reverse("admin:agents_agent_changelist"))
        return console_page(
            request, "console/agent_destroy.html", title="Destroy", opts=self.opts, original=agent, form=form
        )

    # --- Columns ---------------------------------------------------------------------------------------

    @admin.display(description="agent", ordering="name")
    def name_and_id(self, agent: Agent) -> SafeString:
        """Show name and id."""
        return cells.titled(agent.name, cells.mono(agent.public_id, shown=18))

    @admin.display(description="status")
    def status_badge(self, agent: Agent) -> SafeString:
        """Show the status."""
        return cells.badge(agent.status)

    template = columns.cell("template", lambda agent: f"{agent.template_name} {agent.template_version}")

    @admin.display(description="energy")
    def energy(self, agent: Agent) -> SafeString | str:
        """Show the agent's energy."""
        state = _related(agent, "state")
        return cells.meter(state.energy, energy_terms_of(agent).maximum) if state else "–"

    @admin.display(description="heartbeats")
    def heartbeats(self, agent: Agent) -> str:
        """Show the number of heartbeats."""
        state = _related(agent, "state")
        return f"{state.heartbeats:,}" if state else "–"

    @admin.display(description="last heartbeat")
    def last_heartbeat(self, agent: Agent) -> SafeString | str:
        """Show the time of the last heartbeat."""
        state = _related(agent, "state")
        return cells.when(state.last_heartbeat_at) if state else "–"

    @admin.display(description="next heartbeat")
    def next_heartbeat(self, agent: Agent) -> SafeString | str:
        """Show the time of the next heartbeat."""
        schedule = _related(agent, "schedule")
        if schedule is None:
            return "–"
        return cells.due(schedule.due_at) if schedule.state == "idle" else cells.badge(schedule.state)

    model_shown = columns.cell("model", lambda agent: agent.model or "the default")

    # --- Acts ------------------------------------------------------------------------------------------

    run_now_selected = _act_of("run", "Run now")
    start_selected = _act_of("start", "Start")
    pause_selected = _act_of("pause", "Pause")
    resume_selected = _act_of("resume", "Resume")
    stop_selected = _act_of("stop", "Stop")

    def act_on_selected(self, request: HttpRequest, queryset: QuerySet[Agent], verb: str) -> None:
        """Perform an act on the selected agents, each in a savepoint of its own; a refusal does not stop the acts on the others."""
        agents = list(queryset.order_by("id")[: MAX_SELECTED + 1])
        if len(agents) > MAX_SELECTED:
            messages.error(
                request,
                f"Nothing was done: choose at most {MAX_SELECTED} agents at a time; the page Operations pauses and resumes all.",
            )
            return
        done = 0
        refused: dict[str, list[str]] = {}
        for agent in agents:
            try:
                with transaction.atomic(using=APP):
                    carry_out(verb=verb, agent_id=agent.id, actor=actor_of(request))
                done += 1
            except (Invalid, IdentityRefused, NotFound) as refusal:
                refused.setdefault(str(refusal).removeprefix(f"{agent.name} "), []).append(agent.name)
        for reason, names in islice(refused.items(), _REASONS_SHOWN):
            messages.warning(request, f"{_first_of(names)}: {reason}.")
        if len(refused) > _REASONS_SHOWN:
            others = sum(map(len, islice(refused.values(), _REASONS_SHOWN, None)))
            messages.warning(request, f"Refused for other reasons: {others} more.")
        if done:
            messages.success(request, f"Done for {counted(done, 'agent')}.")


def _first_of(names: Sequence[str]) -> str:
    """Return the first names of a list, and the number of the others."""
    shown = ", ".join(names[:_NAMES_SHOWN])
    return f"{shown} and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else shown


def _related(agent: Agent, name: str) -> Any:
    """Return an agent's joined row, or None."""
    return agent._state.fields_cache.get(name)
