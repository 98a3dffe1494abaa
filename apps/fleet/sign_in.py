"""Slow down guessing of passwords, and audit who signs in (decision 0018).

Failures within `ARBOR_SIGN_IN_WINDOW_S` are counted by account and address together, by address, and by account.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from ipaddress import IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.tenants.models import SignInFailure, User
from apps.tenants.scope import ACCOUNTS
from arbor.errors import LimitReached
from arbor.models.json_text import is_storable
from arbor.quotations import counted

_ADDRESS_LENGTH = 64
#: The network of one internet connection, which may use any address in it.
_IPV6_PREFIX = 64


def require_sign_in_allowed(*, username: str, address: str) -> None:
    """Raise LimitReached where too many sign-ins to the account, or from the address, failed lately."""
    name, address = hash_name(username), counted_address(address)
    failures = SignInFailure.objects.filter(at__gt=timezone.now() - settings.ARBOR_SIGN_IN_WINDOW)
    limit = settings.ARBOR_SIGN_IN_FAILURES
    # Failures from other addresses block a person's own address only at ten times the limit.
    reached = (
        failures.filter(name_hash=name, address=address).count() >= limit
        or failures.filter(address=address).count() >= 5 * limit
        or failures.filter(name_hash=name).count() >= 10 * limit
    )
    if reached:
        raise LimitReached(
            f"too many sign-ins failed; try again in {counted(_minutes(settings.ARBOR_SIGN_IN_WINDOW), 'minute')}"
        )


def record_failed_sign_in(*, username: str, address: str) -> None:
    """Count and audit a failed sign-in, and delete the failures that no longer count."""
    name, address = hash_name(username), address[:_ADDRESS_LENGTH]
    counted = counted_address(address)
    now = timezone.now()
    SignInFailure.objects.filter(at__lt=now - settings.ARBOR_SIGN_IN_WINDOW).delete()
    SignInFailure.objects.create(at=now, name_hash=name, address=counted)
    known = _account_exists(username)
    # A person may have typed the password as the name, so a name without an account is not stored.
    shown = username if known else "an account that does not exist"
    record_platform(
        using=ACCOUNTS,
        action=AuditAction.SIGN_IN_FAILED,
        actor="anonymous",
        message=f"failed to sign in as {shown}",
        detail={"user": username if known else None, "address": address},
    )
    try:
        require_sign_in_allowed(username=username, address=address)
    except LimitReached:
        record_platform(
            using=ACCOUNTS,
            action=AuditAction.SIGN_IN_BLOCKED,
            actor="anonymous",
            message=f"sign-ins as {shown} from {address or 'an unknown address'} are blocked for a while",
            detail={"address": address, "minutes": _minutes(settings.ARBOR_SIGN_IN_WINDOW)},
        )


def record_sign_in(*, user: User, address: str) -> None:
    """Audit a sign-in, and delete the failures of the account from this address."""
    address = address[:_ADDRESS_LENGTH]
    SignInFailure.objects.filter(
        name_hash=hash_name(user.username), address=counted_address(address)
    ).delete()
    record_platform(
        using=ACCOUNTS,
        action=AuditAction.SIGNED_IN,
        actor=f"user:{user.username}",
        message=f"{user.username} signed in",
        detail={"user": user.username, "address": address},
    )


def counted_address(address: str) -> str:
    """Return the address that failures are counted by: an IPv4 address, or the /64 network of an IPv6 address.

    Some proxies write a port behind the address, another one for each connection; the port is left out.
    """
    has_port = address.startswith("[") or address.count(":") == 1
    try:
        host = (urlsplit(f"//{address}").hostname or "") if has_port else address
        parsed = ip_address(host.partition("%")[0])
    except ValueError:
        return address[:_ADDRESS_LENGTH]
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or IPv6Network((parsed, _IPV6_PREFIX), strict=False))
    return str(parsed)


def hash_name(username: str) -> str:
    """Return the hash by which failures of an account are counted, whether the account exists or not."""
    return hashlib.sha256(username.casefold().encode("utf-8", "replace")).hexdigest()


def _account_exists(username: str) -> bool:
    return is_storable(username) and User.objects.filter(username=username).exists()


def _minutes(duration: timedelta) -> int:
    return max(1, round(duration / timedelta(minutes=1)))
