"""Pages of errors, which read no row, because they are shown also when the database does not answer."""

from __future__ import annotations

import sys
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

#: Seconds after which a client may try again.
_RETRY_AFTER_S = 10


def answer_server_error(_request: HttpRequest) -> HttpResponse:
    """Answer an exception that no view has handled: 503 if the database does not answer, else 500."""
    if isinstance(sys.exception(), OperationalError | InterfaceError):
        response = HttpResponse(render_to_string("503.html"), status=HTTPStatus.SERVICE_UNAVAILABLE)
        response["Retry-After"] = str(_RETRY_AFTER_S)
        return response
    return HttpResponse(render_to_string("500.html"), status=HTTPStatus.INTERNAL_SERVER_ERROR)
