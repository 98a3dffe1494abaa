"""The operator's console: Django's admin with the Unfold theme."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from unfold.forms import AuthenticationForm
from unfold.sites import UnfoldAdminSite

from apps.console.access import (
    access_of,
    actor_of,
    address_of,
    is_platform_operator,
    suspended_of,
    tenants_of_request,
)
from apps.console.account_views import act_on_member, act_on_user, add_member, current_session, own_sessions
from apps.console.alarms import alarms_of, alarms_of_maintenance
from apps.console.chat_views import chat_with_agent
from apps.console.contact_views import act_on_channel, act_on_message, act_on_webhook, show_inbox
from apps.console.live import REFRESH_S, is_own_request, live_parts
from apps.console.navigation import section_tabs
from apps.console.operator.agent_documents import show_agent_documents
from apps.console.operator.approvals import decide_approval
from apps.console.operator.audit_chain import export_lines, show_chain, verify_seals
from apps.console.operator.capabilities import show_capabilities
from apps.console.operator.documents import act_on_document, download_document
from apps.console.operator.first_steps import create_tenant, show_first_steps
from apps.console.operator.graph import explore_graph
from apps.console.operator.hooks import act_on_delivery, act_on_hook, edit_hook, rotate_hook, rotate_webhook
from apps.console.operator.knowledge import act_on_memory, show_quotas
from apps.console.operator.ledger import show_ledger
from apps.console.operator.models import act_on_models, show_models
from apps.console.operator.operations import act_on_operations, show_operations
from apps.console.operator.proposals import decide_posted
from apps.console.operator.recall import explore_recall
from apps.console.operator.search import search_all
from apps.console.operator.seeds import act_on_seed, download_seed, make_seed
from apps.console.operator.self_versions import roll_back_posted, show_self_versions
from apps.console.operator.skills import edit_skill, show_agent_skills, show_skills
from apps.console.operator.subscriptions import show_subscriptions
from apps.console.operator.templates import edit_template
from apps.console.operator.tools import act_on_server, act_on_tool
from apps.console.operator.trust import show_trust
from apps.console.operator.workflows import (
    act_on_workflow,
    cancel_workflow_run,
    decide_workflow_step,
    edit_workflow,
)
from apps.console.pages.fleet import read_fleet
from apps.console.pages.onboarding import read_first_steps, read_onboarding
from apps.console.signal_views import show_signals
from apps.console.views import act_on_agent, choose_tenant, leave_tenant, visit_tenant
from apps.fleet.accounts import end_other_sessions
from apps.fleet.sign_in import record_failed_sign_in, record_sign_in, require_sign_in_allowed
from apps.memories.services.jobs.health import read_health
from apps.tenants.models import User
from apps.tenants.sessions import store_sign_in
from arbor.errors import LimitReached

#: The code of the error of a sign-in that was not tried.
BLOCKED = "blocked"


class SignInForm(AuthenticationForm):  # type: ignore[misc]
    """Checks a name and a password, unless too many were wrong lately."""

    def clean(self) -> dict[str, Any]:
        """Authenticate, and audit the result."""
        username, address = self.cleaned_data.get("username"), address_of(self.request)
        if not username or not self.cleaned_data.get("password"):
            return dict(self.cleaned_data)
        try:
            require_sign_in_allowed(username=username, address=address)
        except LimitReached as error:
            raise ValidationError(str(error), code=BLOCKED) from error
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError:
            record_failed_sign_in(username=username, address=address)
            raise
        user = self.get_user()
        assert isinstance(user, User)
        record_sign_in(user=user, address=address)
        return cleaned


class ConsoleSite(UnfoldAdminSite):  # type: ignore[misc]
    """The admin of an installation."""

    site_title = "Arbor"
    site_header = "Arbor"
    index_title = "Fleet"
    index_template = "console/index.html"
    login_template = "console/login.html"
    login_form = SignInForm
    enable_nav_sidebar = True

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        # Agents are destroyed one at a time, each confirmed by its name.
        self.disable_action("delete_selected")

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Add the URLs of the console's own pages and forms."""
        urls = [
            path("tenant/choose/", self.admin_view(choose_tenant), name="tenant-choose"),
            path("first-steps/", self.admin_view(show_first_steps), name="first-steps"),
            path("tenant/create/", self.admin_view(create_tenant), name="tenant-create"),
            path("tenant/visit/", self.admin_view(visit_tenant), name="tenant-visit"),
            path("tenant/leave/", self.admin_view(leave_tenant), name="tenant-leave"),
            path("agents/agent/<uuid:agent_id>/chat/", self.admin_view(chat_with_agent), name="agent-chat"),
            path(
                "agents/agent/<uuid:agent_id>/capabilities/",
                self.admin_view(show_capabilities),
                name="agent-capabilities",
            ),
            path("agents/agent/<uuid:agent_id>/trust/", self.admin_view(show_trust), name="agent-trust"),
            path("agents/agent/<uuid:agent_id>/act/", self.admin_view(act_on_agent), name="agent-act"),
        ]
        urls += [
            path("sessions/", self.admin_view(own_sessions), name="own-sessions"),
            path("tenants/user/<int:user_id>/act/", self.admin_view(act_on_user), name="user-act"),
            path("tenants/membership/new/", self.admin_view(add_member), name="member-add"),
            path(
                "tenants/membership/<uuid:membership_id>/act/",
                self.admin_view(act_on_member),
                name="member-act",
            ),
        ]
        urls += [
            path("signals/", self.admin_view(show_signals), name="signals"),
            path("contacts/inbox/", self.admin_view(show_inbox), name="inbox"),
            path(
                "contacts/outboxmessage/<uuid:message_id>/act/",
                self.admin_view(act_on_message),
                name="message-act",
            ),
            path(
                "contacts/channel/<uuid:channel_id>/act/", self.admin_view(act_on_channel), name="channel-act"
            ),
            path(
                "tools/toolserver/<uuid:server_id>/act/",
                self.admin_view(act_on_server),
                name="tool-server-act",
            ),
            path("tools/tool/<uuid:tool_id>/act/", self.admin_view(act_on_tool), name="tool-act"),
            path(
                "contacts/signalwebhook/<uuid:webhook_id>/act/",
                self.admin_view(act_on_webhook),
                name="webhook-act",
            ),
        ]
        urls += [
            path("contacts/hook/<uuid:hook_id>/act/", self.admin_view(act_on_hook), name="hook-act"),
            path("contacts/hook/<uuid:hook_id>/edit/", self.admin_view(edit_hook), name="hook-edit"),
            path("contacts/hook/<uuid:hook_id>/rotate/", self.admin_view(rotate_hook), name="hook-rotate"),
            path(
                "contacts/hookdelivery/<uuid:delivery_id>/act/",
                self.admin_view(act_on_delivery),
                name="delivery-act",
            ),
            path(
                "contacts/signalwebhook/<uuid:webhook_id>/rotate/",
                self.admin_view(rotate_webhook),
                name="webhook-rotate",
            ),
        ]
        urls += [
            path("memories/recall/", self.admin_view(explore_recall), name="recall"),
            path("memories/search/", self.admin_view(search_all), name="search-sources"),
            path("memories/quotas/", self.admin_view(show_quotas), name="memory-quotas"),
            path("memories/memory/<uuid:memory_id>/act/", self.admin_view(act_on_memory), name="memory-act"),
            path("calls/models/", self.admin_view(show_models), name="models"),
            path("calls/models/act/", self.admin_view(act_on_models), name="models-act"),
            path("calls/usage/", self.admin_view(show_ledger), name="model-usage"),
            path("fleet/savedseed/make/", self.admin_view(make_seed), name="seed-make"),
            path("fleet/savedseed/<uuid:seed_id>/act/", self.admin_view(act_on_seed), name="seed-act"),
            path("fleet/savedseed/<uuid:seed_id>/file/", self.admin_view(download_seed), name="seed-file"),
            path("memories/graph/", self.admin_view(explore_graph), name="graph"),
            path("agents/template/edit/", self.admin_view(edit_template), name="template-edit"),
            path(
                "knowledge/document/<uuid:document_id>/act/",
                self.admin_view(act_on_document),
                name="document-act",
            ),
            path(
                "knowledge/document/<uuid:document_id>/file/<int:number>/",
                self.admin_view(download_document),
                name="document-download",
            ),
            path("knowledge/skills/", self.admin_view(show_skills), name="skills"),
            path("knowledge/skills/edit/", self.admin_view(edit_skill), name="skill-edit"),
            path(
                "agents/agent/<uuid:agent_id>/subscriptions/",
                self.admin_view(show_subscriptions),
                name="agent-subscriptions",
            ),
            path(
                "agents/agent/<uuid:agent_id>/skills/",
                self.admin_view(show_agent_skills),
                name="agent-skills",
            ),
            path(
                "agents/agent/<uuid:agent_id>/documents/",
                self.admin_view(show_agent_documents),
                name="agent-documents",
            ),
            path("operations/", self.admin_view(show_operations), name="operations"),
            path("operations/act/", self.admin_view(act_on_operations), name="operations-act"),
            path("audit/chain/", self.admin_view(show_chain), name="audit-chain"),
            path("audit/verification/", self.admin_view(verify_seals), name="audit-verification"),
            path("audit/lines/", self.admin_view(export_lines), name="audit-lines"),
            path("selves/versions/", self.admin_view(show_self_versions), name="self-versions"),
            path("selves/rollback/", self.admin_view(roll_back_posted), name="self-rollback"),
            path("selves/proposal/decide/", self.admin_view(decide_posted), name="proposal-decide"),
            path("authority/approvals/decide/", self.admin_view(decide_approval), name="approval-decide"),
            path(
                "workflows/workflow/<uuid:workflow_id>/edit/",
                self.admin_view(edit_workflow),
                name="workflow-edit",
            ),
            path(
                "workflows/workflow/<uuid:workflow_id>/act/",
                self.admin_view(act_on_workflow),
                name="workflow-act",
            ),
            path(
                "workflows/workflowrun/<uuid:run_id>/cancel/",
                self.admin_view(cancel_workflow_run),
                name="workflow-cancel",
            ),
            path(
                "workflows/workflowstep/<uuid:step_id>/decide/",
                self.admin_view(decide_workflow_step),
                name="workflow-decide",
            ),
        ]
        return [*urls, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the user's tenant and role, and the tenants to choose from."""
        return {
            **super().each_context(request),
            # The theme would write its colors as an inline style; `console/colors.css` has them.
            "colors": {},
            "access": access_of(request),
            "tenants": tenants_of_request(request),
            "suspended": suspended_of(request),
            "runs_installation": is_platform_operator(request),
            "section_tabs": section_tabs(request),
            "templates": {"navigation": "console/parts/navigation.html"},
        }

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the models of one app, for its page; the console has a navigation of its own instead of all apps."""
        listed: list[Any] = super().get_app_list(request, app_label) if app_label else []
        return listed

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the fleet of the chosen tenant, or the tenants to choose from."""
        request.current_app = self.name
        fleet = read_fleet() if access_of(request) else None
        alarms = alarms_of(fleet, now=timezone.now()) if fleet else []
        if fleet and is_platform_operator(request):
            alarms += alarms_of_maintenance(read_health())
        if fleet and is_own_request(request):
            return live_parts(
                request,
                "console/parts/live_fleet.html",
                fleet=fleet,
                alarms=alarms,
                access=access_of(request),
            )
        context = {
            **self.each_context(request),
            "title": self.index_title,
            "subtitle": None,
            "index": True,
            "live_s": REFRESH_S,
            "fleet": fleet,
            "alarms": alarms,
            "steps": read_onboarding(fleet) if fleet else read_first_steps(None),
            **(extra_context or {}),
        }
        return TemplateResponse(request, self.index_template, context)

    @method_decorator(never_cache)
    @login_not_required
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Sign a person in, and store in the session from where; 429 while sign-ins are blocked."""
        response: HttpResponse = super().login(request, extra_context)
        if request.method == "POST" and response.status_code == 302 and request.user.is_authenticated:
            store_sign_in(
                request.session,
                address=address_of(request),
                browser=request.headers.get("User-Agent", ""),
            )
        form = (getattr(response, "context_data", None) or {}).get("form")
        if form is not None and form.is_bound and form.has_error(NON_FIELD_ERRORS, code=BLOCKED):
            response.status_code = 429
        return response

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Change one's own password; every other session of the account ends, and the change is audited."""
        response: HttpResponse = super().password_change(request, extra_context)
        if request.method == "POST" and response.status_code == 302:
            assert isinstance(request.user, User)
            end_other_sessions(user=request.user, actor=actor_of(request), current=current_session(request))
        return response
