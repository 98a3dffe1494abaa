"""Views of the first steps, and of the form that creates a tenant."""

from __future__ import annotations

from secrets import token_hex

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import slugify
from django.views.decorators.http import require_POST, require_safe

from apps.console.access import access_of, actor_of, is_platform_operator
from apps.console.pages.fleet import read_fleet
from apps.console.pages.onboarding import read_first_steps
from apps.console.views import console_page, end_visit
from apps.fleet.administration import open_tenant
from apps.fleet.members import set_member_role
from apps.tenants.middleware import SESSION_KEY
from apps.tenants.models import SLUG_LENGTH, Role
from arbor.errors import AlreadyExists, Invalid, PermissionDenied


@require_safe
def show_first_steps(request: HttpRequest) -> HttpResponse:
    """Show the first steps, done or not."""
    steps = read_first_steps(read_fleet() if access_of(request) else None)
    return console_page(request, "console/first_steps.html", title="First steps", steps=steps)


@require_POST
def create_tenant(request: HttpRequest) -> HttpResponse:
    """Create a tenant, make the superuser its owner, and switch to it."""
    if not is_platform_operator(request):
        raise PermissionDenied("only superusers create tenants")
    name = " ".join(request.POST.get("name", "").split())
    # A name in another script has no letters for a slug.
    slug = slugify(name)[:SLUG_LENGTH] or f"tenant-{token_hex(3)}"
    try:
        tenant = open_tenant(slug=slug, name=name, actor=actor_of(request))
        set_member_role(
            slug=slug, username=request.user.get_username(), role=Role.OWNER, actor=actor_of(request)
        )
    except (Invalid, AlreadyExists) as refusal:
        messages.error(request, f"No tenant was created: {refusal}.")
        return HttpResponseRedirect(reverse("admin:index"))
    end_visit(session=request.session)
    request.session[SESSION_KEY] = str(tenant.id)
    messages.success(request, f"Created tenant {tenant.name}. You are its owner.")
    return HttpResponseRedirect(reverse("admin:index"))
