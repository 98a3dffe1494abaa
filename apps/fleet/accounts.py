"""Administer the accounts of the installation and their sessions, each act audited."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.fleet.sign_in import hash_name
from apps.tenants.models import ConsoleSession, SignInFailure, User
from apps.tenants.scope import ACCOUNTS
from arbor.errors import AlreadyExists, Invalid, NotFound, TransitionIllegal
from arbor.models.json_text import is_storable
from arbor.quotations import counted


def create_account(*, username: str, password: str, actor: str, superuser: bool = False) -> User:
    """Create an account that may sign in to the console; its memberships decide its rights in tenants.

    A superuser runs the installation as a whole. Raises Invalid for the name or a password that is too easy to guess,
    AlreadyExists.
    """
    username = User.normalize_username(username)
    if not username.strip():
        raise Invalid("an account needs a name to sign in with; this one is empty")
    user = User(username=username, is_staff=True, is_superuser=superuser)
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise Invalid(" ".join(error.messages)) from error
    _require_good_password(password, user)
    taken = f"there is an account {username!r} already"
    if User.objects.filter(username__iexact=username).exists():
        raise AlreadyExists(taken)
    user.set_password(password)
    with transaction.atomic(using=ACCOUNTS):
        try:
            with transaction.atomic(using=ACCOUNTS):
                user.save(using=ACCOUNTS, force_insert=True)
        except IntegrityError as error:
            # Somebody has created the account since the look-up.
            raise AlreadyExists(taken) from error
        record_platform(
            using=ACCOUNTS,
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=f"created account {username}",
            detail={"user": username, "superuser": superuser},
        )
    return user


def account_by_name(username: str) -> User:
    """Return the account of a name, in the form that the sign-in gives names too, or else exactly. Raises NotFound."""
    names = (User.normalize_username(username), username)
    found = {user.username: user for user in User.objects.filter(username__in=filter(is_storable, names))}
    user = found.get(names[0]) or found.get(names[1])
    if user is None:
        shown = username[:150]
        raise NotFound(f"there is no account {shown!r}; create it with `arbor tenant user create {shown}`")
    return user


def disable_account(*, username: str, actor: str) -> User:
    """Lock an account out and end its sessions. Raises NotFound, TransitionIllegal for the last superuser."""
    with transaction.atomic(using=ACCOUNTS):
        user = account_by_name(username)
        if user.is_superuser:
            _require_another_superuser(user)
        User.objects.filter(pk=user.pk).update(is_active=False)
        ended = _sessions_of(user).delete()[0]
        record_platform(
            using=ACCOUNTS,
            action=AuditAction.ACCOUNT_DISABLED,
            actor=actor,
            message=f"disabled account {user.username}",
            detail={"user": user.username, "sessions": ended},
        )
    user.is_active = False
    return user


def enable_account(*, username: str, actor: str) -> User:
    """Enable an account, and delete the record of its failed sign-ins. Raises NotFound."""
    with transaction.atomic(using=ACCOUNTS):
        user = account_by_name(username)
        User.objects.filter(pk=user.pk).update(is_active=True)
        forgotten = SignInFailure.objects.filter(name_hash=hash_name(user.username)).delete()[0]
        record_platform(
            using=ACCOUNTS,
            action=AuditAction.ACCOUNT_ENABLED,
            actor=actor,
            message=f"enabled account {user.username}",
            detail={"user": user.username, "failures_forgotten": forgotten},
        )
    user.is_active = True
    return user


def change_password(*, username: str, password: str, actor: str) -> User:
    """Set a new password and end the sessions of the account. Raises NotFound, Invalid for an easily guessed password."""
    with transaction.atomic(using=ACCOUNTS):
        user = account_by_name(username)
        _require_good_password(password, user)
        user.set_password(password)
        User.objects.filter(pk=user.pk).update(password=user.password)
        ended = _sessions_of(user).delete()[0]
        _record_password_change(username=user.username, actor=actor, sessions_ended=ended)
    return user


def end_other_sessions(*, user: User, actor: str, current: UUID | None) -> None:
    """End all sessions of a person who changed the password, except the current one, and audit the change."""
    with transaction.atomic(using=ACCOUNTS):
        sessions = _sessions_of(user)
        ended = (sessions if current is None else sessions.exclude(public_id=current)).delete()[0]
        _record_password_change(username=user.username, actor=actor, sessions_ended=ended)


def _record_password_change(*, username: str, actor: str, sessions_ended: int) -> None:
    record_platform(
        using=ACCOUNTS,
        action=AuditAction.PASSWORD_CHANGED,
        actor=actor,
        message=f"changed the password of {username}",
        detail={"user": username, "sessions": sessions_ended},
    )


def open_sessions(user: User) -> list[ConsoleSession]:
    """Return the sessions of an account that have not expired, the last used first."""
    return list(
        _sessions_of(user).filter(expire_date__gt=timezone.now()).defer("session_data").order_by("-seen_at")
    )


def end_sessions(
    *, user: User, actor: str, session_id: UUID | None = None, exclude: UUID | None = None
) -> int:
    """End the session `session_id` of an account, or all except `exclude`, and return their number.

    Raises NotFound for `session_id`.
    """
    with transaction.atomic(using=ACCOUNTS):
        sessions = _sessions_of(user)
        if session_id is not None:
            sessions = sessions.filter(public_id=session_id)
        if exclude is not None:
            sessions = sessions.exclude(public_id=exclude)
        ended = sessions.delete()[0]
        if session_id is not None and not ended:
            raise NotFound(f"{user.username} has no session {session_id}")
        record_platform(
            using=ACCOUNTS,
            action=AuditAction.SESSIONS_ENDED,
            actor=actor,
            message=f"ended {counted(ended, 'session')} of {user.username}",
            detail={"user": user.username, "sessions": ended},
        )
    return ended


def _sessions_of(user: User) -> QuerySet[ConsoleSession]:
    return ConsoleSession.objects.filter(user_id=user.pk)


def _require_good_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages)) from error


def _require_another_superuser(user: User) -> None:
    rows = User.objects.select_for_update().filter(is_superuser=True, is_active=True)
    if list(rows.order_by("id").values_list("pk", flat=True)) == [user.pk]:
        raise TransitionIllegal(
            f"{user.username} is the last account that runs the installation; create another superuser first"
        )
