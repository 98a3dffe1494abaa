"""The middleware of the API: request ids, threads, headers, problems instead of pages, and the access log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags

from apps.api.openai.errors import unknown_operation
from apps.api.problems import CONTENT_TYPE, problem
from apps.api.requests import REQUEST_ID, access_of, give_request_id, rate_of, request_id_of
from apps.api.threads import in_thread
from apps.api.versions import etag_of

log = structlog.get_logger(__name__)

#: Operations of OpenAI's protocol answer errors in the shape of the protocol.
_OPENAI_PATH, _OPENAI_CONTENT_TYPE = "/v1/", "application/json"
_DETAILS = {404: "there is nothing here", 405: "the path has no such method"}


class ApiMiddleware:
    """Gives each request an id, headers and a line in the log. Under ASGI, operations that block run in the API's threads."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._asynchronous = iscoroutinefunction(get_response)
        if self._asynchronous:
            markcoroutinefunction(self)
            self.process_view = self._run_in_thread

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer the request."""
        give_request_id(request)
        if self._asynchronous:
            return self._answer(request)
        started = time.perf_counter()
        response = _finish(request, self.get_response(request))
        _log_answer(request, response, _ms_since(started))
        return response

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        response = _finish(request, await self.get_response(request))
        # After the response is sent.
        asyncio.get_running_loop().call_soon(_log_answer, request, response, _ms_since(started))
        return response

    async def _run_in_thread(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, named: dict[str, Any]
    ) -> HttpResponseBase | None:
        """Answer by a view that blocks; None leaves an asynchronous view to the handler."""
        if iscoroutinefunction(view):
            return None
        response: HttpResponseBase = await in_thread(view, request, *args, **named)
        return response


def _finish(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        response = _shape_error(request, response)
    if (
        request.method == "GET"
        and response.status_code == HTTPStatus.OK
        and isinstance(response, HttpResponse)
    ):
        response = _add_etag(request, response)
    rate = rate_of(request)
    if rate is not None:
        for name, value in rate.headers().items():
            response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-cache, private")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers[REQUEST_ID] = request_id_of(request)
    return response


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 1)


def _log_answer(request: HttpRequest, response: HttpResponseBase, ms: float) -> None:
    match = request.resolver_match
    access = access_of(request) if hasattr(request, "auth") else None
    log.info(
        "request_answered",
        method=request.method,
        # The pattern: the path itself has texts of the client.
        route=match.route if match is not None else "",
        status=response.status_code,
        ms=ms,
        request_id=request_id_of(request),
        tenant=access.tenant_slug if access is not None else None,
        token_id=str(access.token_id) if access is not None else None,
    )


def _add_etag(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Add the ETag to a response; return 304 without a body if the client has this version."""
    tag = etag_of(response.content)
    # A proxy that compresses responses marks their tags as weak.
    if tag in [sent.removeprefix("W/") for sent in parse_etags(request.headers.get("If-None-Match", ""))]:
        known = response
        response = HttpResponseNotModified()
        # The client caches what it has for as long as a whole response would be cached.
        if "Cache-Control" in known.headers:
            response.headers["Cache-Control"] = known.headers["Cache-Control"]
    response.headers["ETag"] = tag
    return response


def _shape_error(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return an error in the shape of the protocol of its path, also if Django itself answered, such as for an unknown path."""
    status, content_type = response.status_code, response.headers.get("Content-Type", "")
    if content_type == _OPENAI_CONTENT_TYPE:
        return response
    if request.path.startswith(_OPENAI_PATH):
        answer = unknown_operation(request, status=status)
    elif content_type == CONTENT_TYPE:
        return response
    else:
        answer = problem(
            request, status=status, detail=_DETAILS.get(status, "the request cannot be answered")
        )
    if "Allow" in response.headers:
        answer["Allow"] = response.headers["Allow"]
    return answer
