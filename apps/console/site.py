"""The operator's console: Django's admin with Unfold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
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
from apps.console.live import REFRESH_S, live_parts
from apps.console.navigation import section_tabs
from apps.console.operator.agent_documents import show_agent_documents
from apps.console.operator.approvals import decide_approval
from apps.console.operator.audit_chain import export_audit_log, show_chain, verify_seals
from apps.console.operator.capabilities import show_capabilities
from apps.console.operator.documents import act_on_document, download_document
from apps.console.operator.explorers import explore_graph, explore_recall, search_all
from apps.console.operator.first_steps import create_tenant, show_first_steps
from apps.console.operator.hooks import act_on_delivery, act_on_hook, edit_hook, rotate_hook, rotate_webhook
from apps.console.operator.ledger import show_ledger
from apps.console.operator.memory_quotas import act_on_memory, show_quotas
from apps.console.operator.models import act_on_models, show_models
from apps.console.operator.operations import act_on_operations, show_operations
from apps.console.operator.proposals import decide_posted
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
from apps.console.page_tenants import within_page_tenant
from apps.console.pages.fleet import read_fleet
from apps.console.pages.onboarding import read_first_steps, read_onboarding
from apps.console.signal_views import show_signals
from apps.console.views import act_on_agent, choose_tenant, leave_tenant, visit_tenant
from apps.fleet.accounts import end_other_sessions
from apps.fleet.sign_in import record_failed_sign_in, record_sign_in, require_sign_in_allowed
from apps.memories.services.jobs.health import read_health
from apps.tenants.models import User
from apps.tenants.scope import ACCOUNTS
from apps.tenants.sessions import is_live_request, store_sign_in
from arbor.errors import LimitReached

#: The error code of a sign-in that was refused without checking the password.
BLOCKED = "blocked"
#: The URLs of the console's own pages and forms: route, view and name.
_URLS: tuple[tuple[str, Callable[..., HttpResponseBase], str], ...] = (
    ("tenant/choose/", choose_tenant, "tenant-choose"),
    ("first-steps/", show_first_steps, "first-steps"),
    ("tenant/create/", create_tenant, "tenant-create"),
    ("tenant/visit/", visit_tenant, "tenant-visit"),
    ("tenant/leave/", leave_tenant, "tenant-leave"),
    ("agents/agent/<uuid:agent_id>/chat/", chat_with_agent, "agent-chat"),
    ("agents/agent/<uuid:agent_id>/capabilities/", show_capabilities, "agent-capabilities"),
    ("agents/agent/<uuid:agent_id>/trust/", show_trust, "agent-trust"),
    ("agents/agent/<uuid:agent_id>/act/", act_on_agent, "agent-act"),
    ("sessions/", own_sessions, "own-sessions"),
    ("tenants/user/<int:user_id>/act/", act_on_user, "user-act"),
    ("tenants/membership/new/", add_member, "member-add"),
    ("tenants/membership/<uuid:membership_id>/act/", act_on_member, "member-act"),
    ("signals/", show_signals, "signals"),
    ("contacts/inbox/", show_inbox, "inbox"),
    ("contacts/outboxmessage/<uuid:message_id>/act/", act_on_message, "message-act"),
    ("contacts/channel/<uuid:channel_id>/act/", act_on_channel, "channel-act"),
    ("tools/toolserver/<uuid:server_id>/act/", act_on_server, "tool-server-act"),
    ("tools/tool/<uuid:tool_id>/act/", act_on_tool, "tool-act"),
    ("contacts/signalwebhook/<uuid:webhook_id>/act/", act_on_webhook, "webhook-act"),
    ("contacts/hook/<uuid:hook_id>/act/", act_on_hook, "hook-act"),
    ("contacts/hook/<uuid:hook_id>/edit/", edit_hook, "hook-edit"),
    ("contacts/hook/<uuid:hook_id>/rotate/", rotate_hook, "hook-rotate"),
    ("contacts/hookdelivery/<uuid:delivery_id>/act/", act_on_delivery, "delivery-act"),
    ("contacts/signalwebhook/<uuid:webhook_id>/rotate/", rotate_webhook, "webhook-rotate"),
    ("memories/recall/", explore_recall, "recall"),
    ("memories/search/", search_all, "search-sources"),
    ("memories/quotas/", show_quotas, "memory-quotas"),
    ("memories/memory/<uuid:memory_id>/act/", act_on_memory, "memory-act"),
    ("calls/models/", show_models, "models"),
    ("calls/models/act/", act_on_models, "models-act"),
    ("calls/usage/", show_ledger, "model-usage"),
    ("fleet/savedseed/make/", make_seed, "seed-make"),
    ("fleet/savedseed/<uuid:seed_id>/act/", act_on_seed, "seed-act"),
    ("fleet/savedseed/<uuid:seed_id>/file/", download_seed, "seed-file"),
    ("memories/graph/", explore_graph, "graph"),
    ("agents/template/edit/", edit_template, "template-edit"),
    ("knowledge/document/<uuid:document_id>/act/", act_on_document, "document-act"),
    ("knowledge/document/<uuid:document_id>/file/<int:number>/", download_document, "document-download"),
    ("knowledge/skills/", show_skills, "skills"),
    ("knowledge/skills/edit/", edit_skill, "skill-edit"),
    ("agents/agent/<uuid:agent_id>/subscriptions/", show_subscriptions, "agent-subscriptions"),
    ("agents/agent/<uuid:agent_id>/skills/", show_agent_skills, "agent-skills"),
    ("agents/agent/<uuid:agent_id>/documents/", show_agent_documents, "agent-documents"),
    ("operations/", show_operations, "operations"),
    ("operations/act/", act_on_operations, "operations-act"),
    ("audit/chain/", show_chain, "audit-chain"),
    ("audit/verification/", verify_seals, "audit-verification"),
    ("audit/lines/", export_audit_log, "audit-lines"),
    ("selves/versions/", show_self_versions, "self-versions"),
    ("selves/rollback/", roll_back_posted, "self-rollback"),
    ("selves/proposal/decide/", decide_posted, "proposal-decide"),
    ("authority/approvals/decide/", decide_approval, "approval-decide"),
    ("workflows/workflow/<uuid:workflow_id>/edit/", edit_workflow, "workflow-edit"),
    ("workflows/workflow/<uuid:workflow_id>/act/", act_on_workflow, "workflow-act"),
    ("workflows/workflowrun/<uuid:run_id>/cancel/", cancel_workflow_run, "workflow-cancel"),
    ("workflows/workflowstep/<uuid:step_id>/decide/", decide_workflow_step, "workflow-decide"),
)


class SignInForm(AuthenticationForm):  # type: ignore[misc]
    """Checks a name and a password, unless too many attempts have failed lately."""

    def clean(self) -> dict[str, Any]:
        """Authenticate the person, and audit the result."""
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

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        # Agents are destroyed one at a time, each confirmed by its name.
        self.disable_action("delete_selected")

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Add the URLs of the console's own pages and forms."""
        urls = [path(route, self.admin_view(view), name=name) for route, view, name in _URLS]
        return [*urls, *super().get_urls()]

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """Return a view for people who may sign in, which refuses forms and updates of pages of another tenant."""
        wrapped: Callable[..., Any] = super().admin_view(within_page_tenant(view), cacheable)
        return wrapped

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the user's tenant and role, and the tenants to choose from."""
        return {
            **super().each_context(request),
            # Unfold would write colors into an inline style; `console/colors.css` has them.
            "colors": {},
            "access": access_of(request),
            "tenants": tenants_of_request(request),
            "suspended": suspended_of(request),
            "runs_installation": is_platform_operator(request),
            "section_tabs": section_tabs(request),
            "templates": {"navigation": "console/parts/navigation.html"},
        }

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the models of one app, for its page; for all apps none, because the console has its own navigation."""
        listed: list[Any] = super().get_app_list(request, app_label) if app_label else []
        return listed

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the fleet of the chosen tenant, or the tenants to choose from."""
        request.current_app = self.name
        fleet = read_fleet() if access_of(request) else None
        alarms = alarms_of(fleet, now=timezone.now()) if fleet else []
        if fleet and is_platform_operator(request):
            alarms += alarms_of_maintenance(read_health())
        if fleet and is_live_request(request):
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
        """Sign a person in, and store address and browser in the session; 429 while sign-ins are blocked."""
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
        # One transaction, so that no password changes without its audit record.
        with transaction.atomic(using=ACCOUNTS):
            response: HttpResponse = super().password_change(request, extra_context)
            if request.method == "POST" and response.status_code == 302:
                assert isinstance(request.user, User)
                end_other_sessions(
                    user=request.user, actor=actor_of(request), current=current_session(request)
                )
        return response
