"""Pages of errors: in the console's look, without a script, without a query, and naming a way out."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver, reverse

from apps.console import site
from apps.console.error_views import answer_server_error
from apps.tenants import middleware

PAGES = ("400", "403", "403_csrf", "404", "500", "503")


@pytest.mark.parametrize("page", PAGES)
def test_an_error_page_needs_no_script_and_no_row(database: None, page: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        text = render_to_string(f"{page}.html")
    assert len(queries) == 0
    assert "<script" not in text
    assert "style=" not in text
    assert "console/console.css" in text
    assert "<a href=" in text
    assert '<html lang="en">' in text


def test_an_unknown_page_and_an_invalid_value_have_pages(viewer: Client) -> None:
    missing = viewer.get("/admin/nowhere/")
    assert missing.status_code == 404
    assert "There is nothing here" in missing.content.decode()
    refused = viewer.get(reverse("admin:memories_memory_export", args=["csv"]), {"type__exact": "\0"})
    assert refused.status_code == 400
    assert "ar-alone" in refused.content.decode()


def test_an_error_and_a_lost_database_have_different_pages(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer.raise_request_exception = False
    for fault, status, words in (
        (ValueError("broken"), 500, "Something broke"),
        (OperationalError("connection refused"), 503, "The database does not answer"),
    ):

        def fail(*_arguments: object, fault: Exception = fault) -> HttpResponse:
            raise fault

        for owner, name in ((middleware, "tenants_of"), (site, "read_fleet")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, fail)
                response = viewer.get(reverse("admin:index"))
            assert response.status_code == status, name
            assert words in response.content.decode()
            assert "refused" not in response.content.decode()
            assert ("Retry-After" in response) == (status == 503)


def test_the_handler_of_server_errors_is_registered() -> None:
    assert get_resolver("config.urls").resolve_error_handler(500) is answer_server_error
    assert answer_server_error(RequestFactory().get("/")).status_code == 500
