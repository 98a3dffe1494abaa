"""Run each operation in a transaction of its token's tenant, once for each idempotency key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Schema, Status

from apps.access.idempotency import (
    RequestKey,
    StoredResponse,
    begin_request,
    forget_request,
    store_response,
    stored_response,
)
from apps.api.requests import access_of
from apps.api.versions import require_match, try_lock
from apps.tenants.encoding import to_json_bytes
from apps.tenants.scope import tenant_transaction
from arbor.errors import RequestUnderway

_OWN_TRANSACTIONS, _SECRET, _FILE = "own_transactions", "answers_secret", "reads_file"
_KEY = "Idempotency-Key"


def own_transactions[F: Callable[..., Any]](operation: F) -> F:
    """Mark an operation that opens its own transactions, because it calls another server, reads or writes a file, or reads for long."""
    setattr(operation, _OWN_TRANSACTIONS, True)
    return operation


def reads_file[F: Callable[..., Any]](operation: F) -> F:
    """Mark an operation that reads a file from the request. It is idempotent, so its idempotency key is ignored."""
    setattr(operation, _FILE, True)
    return own_transactions(operation)


def answers_secret[F: Callable[..., Any]](operation: F) -> F:
    """Mark an operation whose response has a secret: the response is not stored for repeated requests."""
    setattr(operation, _SECRET, True)
    return operation


def in_tenant(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Run an operation in one transaction of the request's tenant; an error rolls it back.

    An operation marked with `own_transactions`, an asynchronous one and one without a token open their own.
    """
    if iscoroutinefunction(operation):
        return operation
    opens_transactions = getattr(operation, _OWN_TRANSACTIONS, False)

    @wraps(operation)
    def run(request: HttpRequest, *args: Any, **named: Any) -> Any:
        if not hasattr(request, "auth"):
            return operation(request, *args, **named)
        key = None if getattr(operation, _FILE, False) else _request_key(request)

        def execute() -> Any:
            # After the look-up of the key: a repeated request would find the version that it has made itself.
            if not opens_transactions:
                require_match(request)
            elif "If-Match" in request.headers:
                with _transaction_of(request):
                    require_match(request)
            return operation(request, *args, **named)

        if opens_transactions:
            return execute() if key is None else _execute_once_by_row(request, key, operation, execute)
        with _transaction_of(request):
            return execute() if key is None else _execute_once_by_lock(request, key, operation, execute)

    return run


def _transaction_of(request: HttpRequest) -> AbstractContextManager[None]:
    """Return a transaction of the request's tenant, whose statements have the time limit of pages."""
    return tenant_transaction(access_of(request).tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT)


def _execute_once_by_lock(
    request: HttpRequest, key: RequestKey, operation: Callable[..., Any], execute: Callable[[], Any]
) -> Any:
    """Execute a request once for its key; the response is stored in the transaction of the operation."""
    if not try_lock(request, f"request:{key.token_id}:{key.key}"):
        raise RequestUnderway
    known = stored_response(key)
    if known is not None:
        return _replay_response(known)
    result = execute()
    store_response(key, response=_response_of(operation, result))
    return result


def _execute_once_by_row(
    request: HttpRequest, key: RequestKey, operation: Callable[..., Any], execute: Callable[[], Any]
) -> Any:
    """Execute a request that opens its own transactions once for its key."""
    tenant_id = access_of(request).tenant_id
    with tenant_transaction(tenant_id):
        known = stored_response(key)
        if known is None and not begin_request(key):
            raise RequestUnderway
    if known is not None:
        return _replay_response(known)
    try:
        result = execute()
    except BaseException:
        with tenant_transaction(tenant_id):
            forget_request(key)
        raise
    with tenant_transaction(tenant_id):
        store_response(key, response=_response_of(operation, result))
    return result


def _request_key(request: HttpRequest) -> RequestKey | None:
    """Return the idempotency key of a POST request; None without one."""
    if request.method != "POST" or _KEY not in request.headers:
        return None
    content = f"{request.method} {request.get_full_path()}\n".encode() + request.body
    return RequestKey(
        token_id=access_of(request).token_id,
        key=request.headers[_KEY],
        request_hash=hashlib.sha256(content).digest(),
    )


def _response_of(operation: Callable[..., Any], result: Any) -> StoredResponse:
    status, value = (result.status_code, result.value) if isinstance(result, Status) else (200, result)
    if getattr(operation, _SECRET, False):
        return StoredResponse(status=status, body=b"")
    shown = value.model_dump() if isinstance(value, Schema) else value
    return StoredResponse(status=status, body=to_json_bytes(shown))


def _replay_response(known: StoredResponse) -> HttpResponse:
    response = HttpResponse(known.body, status=known.status, content_type="application/json")
    response["Idempotent-Replayed"] = "true"
    return response
