"""Pages of tenants, members and users."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.console import cells, columns
from apps.console.access import actor_of, is_platform_operator
from apps.console.listing import ConsoleAdmin, PlatformAdmin
from apps.tenants.models import Membership, Tenant, User
from apps.tenants.scope import OPS

# Roles in tenants decide about rights; Django's groups are not used.
assert admin.site.get_model_admin(Group).__class__ is GroupAdmin
admin.site.unregister(Group)


@admin.register(Tenant)
class TenantAdmin(PlatformAdmin):
    """List the tenants of the installation. Their data can only be seen by a visit, with a reason."""

    list_display = ("name", "slug", "status_badge", "created_at")
    search_fields = ("slug", "name")
    ordering = ("slug",)
    fields = ("name", "slug", "status", "daily_beats", "daily_tokens", "daily_usd", "created_at")
    list_before_template = "console/parts/visit.html"
    change_form_outer_before_template = "console/parts/visit.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        """Read as the operations role: the serving role sees one tenant only."""
        return Tenant.objects.using(OPS).order_by("slug")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """List all tenants; the view is audited."""
        if is_platform_operator(request):
            record_platform(
                action=AuditAction.CROSS_TENANT_VIEW,
                actor=actor_of(request),
                message="listed the tenants of the installation",
            )
        response: HttpResponse = super().changelist_view(request, extra_context)
        return response

    status_badge = columns.badge("status", "status")


@admin.register(Membership)
class MembershipAdmin(ConsoleAdmin):
    """List the members of the tenant with their roles."""

    list_display = ("person", "role_badge", "created_at")
    search_fields = ("user__username",)
    ordering = ("user__username",)
    sortable_by = ()
    fields = ("user", "role", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        """Read the tenant's members, whose manager raises without a tenant."""
        members: QuerySet[Membership] = Membership.objects.select_related("user").order_by("user__username")
        return members

    person = columns.cell("person", lambda membership: membership.user.get_username())
    role_badge = columns.cell("role", lambda membership: cells.badge(membership.role, "calm"))


@admin.register(User)
class UserAdmin(PlatformAdmin):
    """List the people who may sign in."""

    list_display = ("username", "full_name", "active", "installation", "last_login", "date_joined")
    search_fields = ("username", "email")
    ordering = ("username",)
    fields = (
        "username",
        "first_name",
        "last_name",
        "email",
        "is_active",
        "is_staff",
        "is_superuser",
        "last_login",
        "date_joined",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Defer the password hashes."""
        return User.objects.defer("password").order_by("username")

    full_name = columns.cell("name", lambda user: user.get_full_name() or "–")

    @admin.display(description="signs in", boolean=True)
    def active(self, user: User) -> bool:
        """Show whether the person may sign in."""
        return user.is_active

    @admin.display(description="runs the installation", boolean=True)
    def installation(self, user: User) -> bool:
        """Show whether the person is a superuser, who runs the installation."""
        return user.is_superuser
