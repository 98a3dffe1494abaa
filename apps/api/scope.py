"""Run each operation in a transaction of its token's tenant."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from apps.api.requests import access_of
from apps.tenants.scope import tenant_transaction

_MARK = "own_transactions"


def own_transactions[F: Callable[..., Any]](operation: F) -> F:
    """Mark an operation that opens its own transactions: it calls an embedder, a model or an asynchronous service."""
    setattr(operation, _MARK, True)
    return operation


def in_tenant(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Run an operation in one transaction of the request's tenant; an error rolls it back.

    An operation marked with `own_transactions`, an asynchronous one and one without a token open their own.
    """
    if getattr(operation, _MARK, False) or iscoroutinefunction(operation):
        return operation

    @wraps(operation)
    def run(request: HttpRequest, *args: Any, **named: Any) -> Any:
        if not hasattr(request, "auth"):
            return operation(request, *args, **named)
        with tenant_transaction(access_of(request).tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT):
            return operation(request, *args, **named)

    return run
