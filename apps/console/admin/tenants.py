"""Pages of tenants, members and users."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from apps.agents.services.energy import energy_terms
from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.console import cells, columns
from apps.console.access import Right, actor_of, has_right, is_platform_operator
from apps.console.account_views import current_session
from apps.console.add_pages import AddPageAdmin
from apps.console.listing import ConsoleAdmin, PageAdmin, PlatformAdmin
from apps.console.views import console_page
from apps.fleet.accounts import create_account, open_sessions
from apps.tenants.models import Membership, Role, Tenant, User
from apps.tenants.scope import OPS
from arbor.agents.energy import EnergyTerms
from arbor.errors import AlreadyExists, Invalid


class NewAccountForm(forms.Form):
    """The form of a new account, without memberships."""

    username = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget())
    password = forms.CharField(
        max_length=1000,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="At least 8 characters, and not a common password.",
    )
    superuser = forms.BooleanField(
        label="Runs the installation as a whole", required=False, widget=UnfoldBooleanWidget()
    )

    def create(self, *, actor: str) -> User | None:
        """Create the account; None, with the reason in the form's errors, if the service refuses."""
        try:
            return create_account(actor=actor, **self.cleaned_data)
        except (AlreadyExists, Invalid) as refusal:
            self.add_error(None, str(refusal))
            return None


# Roles in tenants decide about rights; Django's groups, which the import of GroupAdmin registers, are not used.
assert admin.site.get_model_admin(Group).__class__ is GroupAdmin
admin.site.unregister(Group)


@admin.register(Tenant)
class TenantAdmin(PlatformAdmin):
    """List the tenants of the installation. To see the data of a tenant, a superuser visits the tenant and gives a reason."""

    list_display = ("name", "slug", "status_badge", "created_at")
    search_fields = ("slug", "name")
    ordering = ("slug",)
    fields = (
        "name",
        "slug",
        "status_badge",
        "daily_heartbeat_limit",
        "daily_token_limit",
        "daily_cost",
        "energy_terms",
        "created_at",
    )
    list_before_template = "console/parts/visit.html"
    change_form_outer_before_template = "console/parts/visit.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        """Read as the operations role: the serving role sees one tenant only."""
        return Tenant.objects.using(OPS).order_by("slug")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """List all tenants; the view is audited."""
        _record_list_of_tenants(request)
        response: HttpResponse = super().changelist_view(request, extra_context)
        return response

    def export_view(self, request: HttpRequest, kind: str) -> HttpResponseBase:
        """Export all tenants; the export is audited as their list is."""
        _record_list_of_tenants(request)
        return super().export_view(request, kind)

    status_badge = columns.badge("status", "status")
    daily_heartbeat_limit = columns.number("daily_heartbeats", "daily heartbeats", empty="unlimited")
    daily_token_limit = columns.number("daily_tokens", "daily tokens", empty="unlimited")
    daily_cost = columns.dollars("daily_usd", "daily cost", empty="unlimited")
    energy_terms = columns.cell(
        "energy of its agents",
        lambda tenant: (energy_terms(tenant=tenant.energy, agent=None) or EnergyTerms()).describe(),
    )


def _record_list_of_tenants(request: HttpRequest) -> None:
    if is_platform_operator(request):
        record_platform(
            action=AuditAction.CROSS_TENANT_VIEW,
            actor=actor_of(request),
            message="listed the tenants of the installation",
        )


@admin.register(Membership)
class MembershipAdmin(ConsoleAdmin):
    """List the members of the tenant with their roles."""

    list_display = ("person", "role_badge", "created_at")
    search_fields = ("user__username",)
    ordering = ("user__username",)
    sortable_by = ()
    fields = ("user", "role", "created_at")
    list_before_template = "console/parts/member_new.html"
    change_form_outer_before_template = "console/parts/member_acts.html"

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """List the members; owners may add members here."""
        response: HttpResponse = super().changelist_view(request, _for_owners(request, extra_context))
        return response

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a member; owners may change the role, end the sessions and end the membership here."""
        context = _for_owners(request, extra_context)
        member = self.get_object(request, object_id) if context["may_own"] else None
        if member is not None:
            context["member_sessions"] = open_sessions(member.user)
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        """Read the tenant's members; their manager raises an error without a tenant."""
        members: QuerySet[Membership] = Membership.objects.select_related("user").order_by("user__username")
        # The serving role may read only the name of an account.
        return members.only("tenant", "user", "role", "created_at", "user__username")

    person = columns.cell("person", lambda membership: membership.user.get_username())
    role_badge = columns.cell("role", lambda membership: cells.badge(membership.role, "calm"))


def _for_owners(request: HttpRequest, context: dict[str, Any] | None) -> dict[str, Any]:
    return {**(context or {}), "may_own": has_right(request, Right.OWN), "roles": Role.values}


@admin.register(User)
class UserAdmin(AddPageAdmin, PageAdmin, PlatformAdmin):
    """List all accounts; superusers create, disable and sign out accounts here."""

    page_template = "console/user.html"

    list_display = ("username", "full_name", "active", "installation", "last_login", "date_joined")
    search_fields = ("username", "email")
    ordering = ("username",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Defer the password hashes."""
        return User.objects.defer("password").order_by("username")

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Allow superusers to create accounts."""
        return is_platform_operator(request)

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Create an account."""
        form = NewAccountForm(request.POST if request.method == "POST" else None)
        account = form.create(actor=actor_of(request)) if form.is_valid() else None
        if account is not None:
            messages.success(request, f"Created account {account.username}.")
            return HttpResponseRedirect(reverse("admin:tenants_user_change", args=[account.pk]))
        return console_page(request, "console/user_new.html", title="New account", opts=self.opts, form=form)

    def page_context(self, request: HttpRequest, row: User) -> dict[str, Any]:
        """Add the sessions and memberships of the account."""
        return {
            **super().page_context(request, row),
            "sessions": open_sessions(row),
            "current": current_session(request),
            "page_url": reverse("admin:user-act", args=[row.pk]),
            "memberships": Membership.own.using(OPS)
            .filter(user_id=row.pk)
            .select_related("tenant")
            .order_by("tenant__slug"),
        }

    full_name = columns.cell("name", lambda user: user.get_full_name() or "–")

    @admin.display(description="signs in", boolean=True)
    def active(self, user: User) -> bool:
        """Show whether the person may sign in."""
        return user.is_active

    @admin.display(description="runs the installation", boolean=True)
    def installation(self, user: User) -> bool:
        """Show whether the person is a superuser, who runs the installation."""
        return user.is_superuser
