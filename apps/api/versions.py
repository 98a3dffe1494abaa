"""Versions of resources: ETags of responses, and their check before a change."""

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
    """Return the ETag of the body of a response."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def try_lock(request: HttpRequest, name: str) -> bool:
    """Lock a name within the request's tenant until the transaction ends; return False if another transaction has the lock."""
    text = f"{access_of(request).tenant_id}:{name}"
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)
    with connections[APP].cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        return bool(cursor.fetchone()[0])


def require_match(request: HttpRequest) -> None:
    """Compare `If-Match` with the current version of the resource, in the transaction of the change, or in one right before it.

    Raises PreconditionFailed for another version, and Invalid for an unreadable version or a resource that cannot be read.
    """
    if request.method == "GET" or "If-Match" not in request.headers:
        return
    wanted = parse_etags(request.headers["If-Match"])
    if not wanted:
        raise Invalid(
            'If-Match must be the ETag of the resource with its quotation marks, such as "0a1b", or *'
        )
    # A change does not wait for another change of the resource, after which the version in `If-Match` would be old.
    if not try_lock(request, f"version:{request.path}"):
        raise PreconditionFailed("another request is changing the resource; read the resource again")
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
        raise PreconditionFailed("the resource has changed since it was read; read it again")
