"""Versions of resources: ETags of what is read, and their check before a change."""

from __future__ import annotations

import copy
import hashlib
from http import HTTPStatus

from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.utils.http import parse_etags

from apps.api.requests import access_of
from apps.tenants.scope import APP
from arbor.errors import Invalid, PreconditionFailed


def etag_of(content: bytes) -> str:
    """Return the version of a representation."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def lock(request: HttpRequest, name: str) -> bool:
    """Take a lock of the request's tenant until the transaction ends, unless another transaction has it."""
    text = f"{access_of(request).tenant_id}:{name}"
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)
    with connections[APP].cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        return bool(cursor.fetchone()[0])


def require_match(request: HttpRequest) -> None:
    """Compare `If-Match` with the resource as it is now, in the transaction of the change.

    Raises PreconditionFailed for another version, and Invalid for a resource without one.
    """
    if request.method == "GET":
        return
    wanted = parse_etags(request.headers.get("If-Match", ""))
    if not wanted:
        return
    # Changes with a version wait for no other one: the second of two has an old version anyway.
    if not lock(request, f"version:{request.path}"):
        raise PreconditionFailed("somebody else is changing it; read it again")
    match = request.resolver_match
    assert match is not None, "the request has an operation"
    reading = copy.copy(request)
    reading.method = "GET"
    response: HttpResponse = match.func(reading, *match.args, **match.kwargs)
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        raise Invalid("If-Match is for resources that can be read; this path has no GET")
    if "*" in wanted and response.status_code == HTTPStatus.OK:
        return
    if response.status_code != HTTPStatus.OK or etag_of(response.content) not in wanted:
        raise PreconditionFailed("it has changed since it was read; read it again")
