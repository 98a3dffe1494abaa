"""Views of sessions, and of the forms on the pages of accounts and members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.console.access import Right, access_of, actor_of, has_right, is_platform_operator
from apps.console.views import console_page, refuse
from apps.fleet.accounts import (
    account_by_name,
    change_password,
    disable_account,
    enable_account,
    end_sessions,
    open_sessions,
)
from apps.fleet.members import dismiss_member, set_member_role, username_of_member
from apps.tenants.models import Role, User
from apps.tenants.sessions import public_id_of
from arbor.errors import Invalid, NotFound, PermissionDenied
from arbor.ids import read_id
from arbor.quotations import counted


def current_session(request: HttpRequest) -> UUID | None:
    """Return the id that names the session of the request."""
    key = request.session.session_key
    return public_id_of(key) if key else None


@require_http_methods(["GET", "HEAD", "POST"])
def own_sessions(request: HttpRequest) -> HttpResponse:
    """Show the sessions of the signed-in person; end one of them, or all others."""
    user = request.user
    assert isinstance(user, User)
    if request.method == "POST":
        _end_posted_sessions(request, user, exclude=current_session(request))
        return HttpResponseRedirect(reverse("admin:own-sessions"))
    return console_page(
        request,
        "console/sessions.html",
        title="Your sessions",
        sessions=open_sessions(user),
        current=current_session(request),
        page_url=reverse("admin:own-sessions"),
    )


def _end_posted_sessions(request: HttpRequest, user: User, *, exclude: UUID | None) -> None:
    """End the session that the form names, or without a name all sessions except `exclude`."""
    named = request.POST.get("session", "")
    session_id = read_id(named)
    try:
        if named and session_id is None:
            raise NotFound(f"{user.username} has no such session")
        ended = end_sessions(user=user, actor=actor_of(request), session_id=session_id, exclude=exclude)
    except NotFound:
        messages.info(request, "That session has ended already.")
    else:
        messages.success(request, f"Ended {counted(ended, 'session')}.")


def _disable(request: HttpRequest, user: User) -> str:
    if user.pk == request.user.pk:
        raise Invalid("nobody disables their own account; ask another superuser")
    disable_account(username=user.username, actor=actor_of(request))
    return f"{user.username} is disabled and signed out."


def _enable(request: HttpRequest, user: User) -> str:
    enable_account(username=user.username, actor=actor_of(request))
    return f"{user.username} may sign in again."


def _set_password(request: HttpRequest, user: User) -> str:
    change_password(
        username=user.username, password=request.POST.get("password", ""), actor=actor_of(request)
    )
    return f"{user.username} has a new password and is signed out everywhere."


def _end_sessions(request: HttpRequest, user: User) -> str:
    _end_posted_sessions(request, user, exclude=None)
    return ""


USER_ACTS: Mapping[str, Callable[[HttpRequest, User], str]] = MappingProxyType(
    {"disable": _disable, "enable": _enable, "password": _set_password, "end": _end_sessions}
)


@require_POST
def act_on_user(request: HttpRequest, user_id: int) -> HttpResponse:
    """Apply the posted act to an account, and redirect to its page with the result."""
    if not is_platform_operator(request):
        raise PermissionDenied("only those who run the installation change accounts")
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        raise NotFound(f"there is no account {user_id}")
    act = USER_ACTS.get(request.POST.get("act", ""))
    if act is None:
        raise NotFound(f"the act must be one of {', '.join(USER_ACTS)}")
    try:
        done = act(request, user)
    except Invalid as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
    else:
        if done:
            messages.success(request, done)
    return HttpResponseRedirect(reverse("admin:tenants_user_change", args=[user_id]))


@require_POST
def add_member(request: HttpRequest) -> HttpResponse:
    """Make an account a member of the owner's tenant."""
    access = access_of(request)
    if access is None or not has_right(request, Right.OWN):
        return refuse(request, attempted="add a member", right=Right.OWN)
    try:
        user = account_by_name(request.POST.get("username", "").strip())
        role = _posted_role(request)
        set_member_role(slug=access.slug, username=user.username, role=role, actor=actor_of(request))
    except (Invalid, NotFound) as refusal:
        messages.error(request, f"Nobody was added: {refusal}.")
    else:
        messages.success(request, f"{user.username} is {role} now.")
    return HttpResponseRedirect(reverse("admin:tenants_membership_changelist"))


@require_POST
def act_on_member(request: HttpRequest, membership_id: UUID) -> HttpResponse:
    """Change the role of a member of the owner's tenant, or end the membership."""
    access = access_of(request)
    if access is None or not has_right(request, Right.OWN):
        return refuse(request, attempted=f"change member {membership_id}", right=Right.OWN)
    username = username_of_member(slug=access.slug, membership_id=membership_id)
    act = MEMBER_ACTS.get(request.POST.get("act", "role"))
    if act is None:
        raise NotFound(f"the act must be one of {', '.join(MEMBER_ACTS)}")
    try:
        done = act(request, access.slug, username)
    except Invalid as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
    else:
        messages.success(request, done)
    return HttpResponseRedirect(reverse("admin:tenants_membership_changelist"))


def _change_role(request: HttpRequest, slug: str, username: str) -> str:
    role = _posted_role(request)
    set_member_role(slug=slug, username=username, role=role, actor=actor_of(request))
    return f"{username} is {role} now."


def _remove_member(request: HttpRequest, slug: str, username: str) -> str:
    dismiss_member(slug=slug, username=username, actor=actor_of(request))
    return f"{username} is no longer a member."


def _end_member_sessions(request: HttpRequest, _slug: str, username: str) -> str:
    """End the sessions of a member, except the request's own."""
    ended = end_sessions(
        user=account_by_name(username), actor=actor_of(request), exclude=current_session(request)
    )
    return f"Ended {counted(ended, 'session')} of {username}."


def _end_access(request: HttpRequest, slug: str, username: str) -> str:
    removed = _remove_member(request, slug, username)
    return f"{removed} {_end_member_sessions(request, slug, username)}"


MEMBER_ACTS: Mapping[str, Callable[[HttpRequest, str, str], str]] = MappingProxyType(
    {
        "role": _change_role,
        "remove": _remove_member,
        "sessions": _end_member_sessions,
        "end": _end_access,
    }
)


def _posted_role(request: HttpRequest) -> Role:
    role = request.POST.get("role", "")
    if role not in Role.values:
        raise Invalid(f"the role must be one of {', '.join(Role.values)}")
    return Role(role)
