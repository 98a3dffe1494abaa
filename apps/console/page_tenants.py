"""Refuse forms and updates of a page that was opened in another tenant than the one its person works in now."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from apps.console.access import access_of

#: The tenant of the page, as its scripts send it: a header of its updates, and a field of its forms.
HEADER, FIELD = "X-Page-Tenant", "page_tenant"
#: The URL names of forms that are about no tenant, or choose another one.
_OF_NO_TENANT = frozenset(
    {
        "tenant-choose",
        "tenant-visit",
        "tenant-leave",
        "tenant-create",
        "logout",
        "password_change",
        "own-sessions",
        "user-act",
        "tenants_user_add",
    }
)

type View = Callable[..., HttpResponseBase]


def within_page_tenant(view: View) -> View:
    """Answer 409 to a form or an update of a page of another tenant: it would change or show the rows of the wrong one."""

    @wraps(view)
    def checked(request: HttpRequest, *arguments: object, **named: object) -> HttpResponseBase:
        access = access_of(request)
        page_tenant = _page_tenant(request)
        if page_tenant and page_tenant != str(access.tenant_id if access else ""):
            now = f"you work in {access.name} now" if access else "you work in no tenant now"
            message = f"Nothing was done: this page is of another tenant, and {now}. Reload the page."
            return render(request, "console/refused.html", {"message": message}, status=409)
        return view(request, *arguments, **named)

    return checked


def _page_tenant(request: HttpRequest) -> str:
    """Return the id of the tenant in which the page of the request was opened; empty where that does not matter, or is not known."""
    match = request.resolver_match
    if match is not None and match.url_name in _OF_NO_TENANT:
        return ""
    posted: str = request.POST.get(FIELD, "") if request.method == "POST" else ""
    return posted or request.headers.get(HEADER, "")
