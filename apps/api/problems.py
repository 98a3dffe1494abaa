"""Errors as problem details (RFC 9457), and the HTTP status of each domain error."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import DisallowedHost, SuspiciousOperation
from django.db import DataError, IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError
from ninja.errors import ValidationError as RequestInvalid
from psycopg.errors import ForeignKeyViolation, QueryCanceled
from pydantic import Field

from apps.api.requests import request_id_of
from apps.api.threads import DATABASE_AWAY, TOO_SLOW, UNSTORABLE
from arbor import errors

log = structlog.get_logger(__name__)

NO_TOKEN = "the request needs a token: Authorization: Bearer arbor_…; `arbor token create` makes one"  # noqa: S105 (a message)
_FAILED = "Arbor failed to answer; the log has the reason under the request's id"
#: The end of the name of a foreign key to an agent.
_OF_AGENT = "_agent_id_in_tenant"
CONTENT_TYPE = "application/problem+json"
#: The status of an error is that of its closest base class here.
STATUS_OF: dict[type[errors.ArborError], HTTPStatus] = {
    errors.ArborError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.TransitionIllegal: HTTPStatus.CONFLICT,
    errors.LimitReached: HTTPStatus.CONFLICT,
    errors.ConfigurationInvalid: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.AlreadyExists: HTTPStatus.CONFLICT,
    errors.PermissionDenied: HTTPStatus.FORBIDDEN,
    errors.IdentityRefused: HTTPStatus.FORBIDDEN,
    errors.CapabilityDenied: HTTPStatus.FORBIDDEN,
    errors.TokenRefused: HTTPStatus.UNAUTHORIZED,
    errors.SignatureRefused: HTTPStatus.UNAUTHORIZED,
    errors.RequestUnderway: HTTPStatus.CONFLICT,
    errors.RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    errors.PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    errors.ModelUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ModelTimeout: HTTPStatus.GATEWAY_TIMEOUT,
    errors.ModelError: HTTPStatus.BAD_GATEWAY,
    errors.ReplyInvalid: HTTPStatus.BAD_GATEWAY,
    errors.EmbeddingFailed: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.WebFailed: HTTPStatus.BAD_GATEWAY,
    errors.ToolFailed: HTTPStatus.BAD_GATEWAY,
    errors.DeliveryFailed: HTTPStatus.BAD_GATEWAY,
    errors.StaleLease: HTTPStatus.CONFLICT,
    errors.ApprovalLost: HTTPStatus.CONFLICT,
    errors.ServerError: HTTPStatus.SERVICE_UNAVAILABLE,
}


class ProblemField(Schema):
    """A part of the request that is not valid."""

    field: str = Field(description="Its place in the request.", examples=["body.name"])
    message: str = Field(description="What is wrong with it.")


class Problem(Schema):
    """An error, as RFC 9457 describes it."""

    type: str = Field(description="The kind of the error.", examples=["urn:arbor:problem:not-found"])
    title: str = Field(description="The kind in words.", examples=["Not Found"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(description="What is wrong, and what would be right.")
    instance: str = Field(description="The path of the request.")
    request_id: str = Field(description="The id of the request in the logs.")
    errors: list[ProblemField] = Field(default=[], description="The parts of the request that are not valid.")


def status_of(error: errors.ArborError) -> HTTPStatus:
    """Return the HTTP status of a domain error."""
    return next(STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)


def problem(
    request: HttpRequest,
    *,
    status: int,
    detail: str,
    kind: str = "",
    fields: list[ProblemField] | None = None,
) -> JsonResponse:
    """Return an error as the response of a request."""
    phrase = HTTPStatus(status).phrase
    found = Problem(
        type=f"urn:arbor:problem:{kind or phrase.lower().replace(' ', '-')}",
        title=phrase,
        status=status,
        detail=detail.replace("\0", ""),
        instance=request.path,
        request_id=request_id_of(request),
        errors=fields or [],
    )
    response = JsonResponse(
        found.model_dump(exclude={"errors"} if not found.errors else None),
        status=status,
        content_type=CONTENT_TYPE,
    )
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="Arbor"'
    return response


def problem_of(request: HttpRequest, error: errors.ArborError) -> JsonResponse:
    """Return a domain error as the response of a request. The text of a fault of Arbor goes to the log only."""
    status = status_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return _failed(request, error)
    response = problem(request, status=status, detail=str(error), kind=kind_of(type(error)))
    if isinstance(error, errors.RateLimited):
        response["Retry-After"] = str(error.retry_after_s)
    return response


def handle_errors(api: NinjaAPI) -> None:
    """Register the handlers with which the API answers every error with a problem."""
    handlers: dict[type[Exception], Any] = {
        errors.ArborError: problem_of,
        RequestInvalid: _invalid,
        AuthenticationError: _unauthenticated,
        HttpError: _refused,
        Http404: lambda request, _error: unknown_path(request),
        SuspiciousOperation: _suspicious,
        DataError: _unstorable,
        IntegrityError: _conflicting,
        OperationalError: _database_away,
        InterfaceError: _database_away,
        Exception: _failed,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def unknown_path(request: HttpRequest, **_: Exception) -> JsonResponse:
    """Answer a request to a path that does not exist."""
    return problem(request, status=HTTPStatus.NOT_FOUND, detail="there is nothing here")


def server_failed(request: HttpRequest) -> JsonResponse:
    """Answer a request whose failure Django has logged."""
    return problem(request, status=HTTPStatus.INTERNAL_SERVER_ERROR, detail=_FAILED, kind="failed")


def kind_of(error: type[Exception]) -> str:
    """Return the name of a class of errors as the last part of a problem's type."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


def _refused(request: HttpRequest, error: HttpError) -> JsonResponse:
    """Answer a request that the framework refused, such as one with a body that is not JSON."""
    return problem(request, status=error.status_code, detail=refusal_text(error))


def refusal_text(error: HttpError) -> str:
    """Return the reason why the framework refused a request; of a body that is not JSON, with the place."""
    fault = error.__cause__
    return f"the body must be JSON: {fault}" if isinstance(fault, ValueError) else str(error)


def _suspicious(request: HttpRequest, error: SuspiciousOperation) -> JsonResponse:
    detail = (
        "the header Host names no address at which Arbor answers (ALLOWED_HOSTS)"
        if isinstance(error, DisallowedHost)
        else "the request has too many parameters, or parts that cannot be read"
    )
    return problem(request, status=HTTPStatus.BAD_REQUEST, detail=detail)


def _invalid(request: HttpRequest, error: RequestInvalid) -> JsonResponse:
    fields = [
        ProblemField(field=".".join(map(str, fault["loc"])), message=fault["msg"]) for fault in error.errors
    ]
    detail = "; ".join(f"{fault.field}: {fault.message}" for fault in fields[:5])
    return problem(
        request, status=HTTPStatus.UNPROCESSABLE_ENTITY, detail=detail, kind="invalid", fields=fields
    )


def _unauthenticated(request: HttpRequest, _error: Exception) -> JsonResponse:
    return problem(request, status=HTTPStatus.UNAUTHORIZED, detail=NO_TOKEN, kind="token-refused")


def _unstorable(request: HttpRequest, _error: Exception) -> JsonResponse:
    return problem(request, status=HTTPStatus.UNPROCESSABLE_ENTITY, detail=UNSTORABLE, kind="invalid")


def _conflicting(request: HttpRequest, error: IntegrityError) -> JsonResponse:
    # The database itself refuses rows for an agent of another tenant, or for one that is destroyed meanwhile.
    cause = error.__cause__
    if isinstance(cause, ForeignKeyViolation) and (cause.diag.constraint_name or "").endswith(_OF_AGENT):
        detail = "there is no such agent in this tenant"
        return problem(request, status=HTTPStatus.NOT_FOUND, detail=detail, kind="not-found")
    return _failed(request, error)


def _database_away(request: HttpRequest, error: Exception) -> JsonResponse:
    if isinstance(error.__cause__, QueryCanceled):
        return _failed(request, error)
    log.error("database_failed", request_id=request_id_of(request), path=request.path, exc_info=error)
    return problem(request, status=HTTPStatus.SERVICE_UNAVAILABLE, detail=DATABASE_AWAY, kind="database-away")


def _failed(request: HttpRequest, error: Exception) -> JsonResponse:
    if isinstance(error.__cause__, QueryCanceled):
        return problem(request, status=HTTPStatus.SERVICE_UNAVAILABLE, detail=TOO_SLOW, kind="too-slow")
    log.error("request_failed", request_id=request_id_of(request), path=request.path, exc_info=error)
    return server_failed(request)
