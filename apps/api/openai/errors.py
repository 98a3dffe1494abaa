"""Errors in the shape of OpenAI's protocol."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import structlog
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError
from ninja.errors import ValidationError as RequestInvalid
from psycopg.errors import QueryCanceled

from apps.api.problems import refusal_text, status_of
from apps.api.requests import request_id_of
from apps.api.threads import DATABASE_AWAY, TOO_SLOW, UNSTORABLE
from arbor import errors

log = structlog.get_logger(__name__)

_TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}
_CODES = {
    HTTPStatus.UNAUTHORIZED: "invalid_api_key",
    HTTPStatus.NOT_FOUND: "model_not_found",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_exceeded",
}
#: The operations of the protocol that Arbor serves.
_SERVED = (
    "agents answer POST /v1/chat/completions, GET /v1/models lists them, and POST /v1/embeddings embeds texts"
)


def error_body(
    message: str, *, status: int, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """Return an error as the protocol writes it; `code` replaces the code of the status."""
    known = HTTPStatus(status)
    kind = "server_error" if known.is_server_error else "invalid_request_error"
    return {
        "error": {
            "message": message.replace("\0", ""),
            "type": _TYPES.get(known, kind),
            "param": param,
            "code": code or _CODES.get(known),
        }
    }


def error_response(
    message: str, *, status: int, param: str | None = None, code: str | None = None
) -> JsonResponse:
    """Return an error as a response."""
    response = JsonResponse(error_body(message, status=status, param=param, code=code), status=status)
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="Arbor"'
    # OpenAI's own clients would send the request again, and each request would be another turn.
    response["x-should-retry"] = "false"
    return response


def unknown_operation(request: HttpRequest, *, status: int) -> JsonResponse:
    """Answer a request below /v1 for a path or method of OpenAI's API that Arbor does not serve."""
    if status == HTTPStatus.NOT_FOUND:
        message = f"{request.path} is not served; {_SERVED}"
    elif status == HTTPStatus.METHOD_NOT_ALLOWED:
        message = f"{request.path} has no method {request.method}; {_SERVED}"
    else:
        return error_response("the request cannot be answered", status=status)
    return error_response(message, status=status, code="unknown_url")


def status_of_failure(reason: str) -> HTTPStatus:
    """Return the HTTP status of a turn without an answer, from its reason: `ModelTimeout: …`."""
    kind = getattr(errors, reason.partition(":")[0], None)
    if isinstance(kind, type) and issubclass(
        kind, errors.ModelError | errors.EmbeddingFailed | errors.NotFound
    ):
        return status_of(kind())
    return HTTPStatus.BAD_GATEWAY


def handle_openai_errors(api: NinjaAPI) -> None:
    """Register the handlers with which the API answers every error in the protocol's shape."""
    handlers: dict[type[Exception], Any] = {
        errors.ArborError: _arbor_error,
        RequestInvalid: _invalid,
        AuthenticationError: _unauthenticated,
        DataError: lambda _request, _error: error_response(UNSTORABLE, status=HTTPStatus.BAD_REQUEST),
        OperationalError: _database_away,
        InterfaceError: _database_away,
        HttpError: lambda _request, error: error_response(refusal_text(error), status=error.status_code),
        Exception: _failed,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def _arbor_error(request: HttpRequest, error: errors.ArborError) -> JsonResponse:
    status = status_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _failed(request, error)
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        status = HTTPStatus.BAD_REQUEST
    response = error_response(str(error), status=status)
    if isinstance(error, errors.RateLimited):
        response["Retry-After"] = str(error.retry_after_s)
        response["x-should-retry"] = "true"
    return response


def _invalid(_request: HttpRequest, error: RequestInvalid) -> JsonResponse:
    faults = [(".".join(map(str, fault["loc"][2:])), fault["msg"]) for fault in error.errors]
    message = "; ".join(f"{place}: {text}" if place else text for place, text in faults[:5])
    return error_response(message, status=HTTPStatus.BAD_REQUEST, param=faults[0][0] or None)


def _unauthenticated(_request: HttpRequest, _error: Exception) -> JsonResponse:
    message = "the API key must be a token of Arbor; `arbor token create` makes one"
    return error_response(message, status=HTTPStatus.UNAUTHORIZED)


def _database_away(request: HttpRequest, error: Exception) -> JsonResponse:
    if isinstance(error.__cause__, QueryCanceled):
        return error_response(TOO_SLOW, status=HTTPStatus.SERVICE_UNAVAILABLE)
    log.error("database_failed", request_id=request_id_of(request), path=request.path, exc_info=error)
    return error_response(DATABASE_AWAY, status=HTTPStatus.SERVICE_UNAVAILABLE)


def _failed(request: HttpRequest, error: Exception) -> JsonResponse:
    log.error("request_failed", request_id=request_id_of(request), path=request.path, exc_info=error)
    message = (
        f"Arbor failed to answer; the log has the reason under the request's id {request_id_of(request)}"
    )
    return error_response(message, status=HTTPStatus.INTERNAL_SERVER_ERROR)
