"""Redirects and headers of hostile servers: errors of Arbor, whatever they contain."""

from __future__ import annotations

import httpx
import pytest

from arbor.adapters import web_fetch, webhook
from arbor.adapters.exchange import ApiEndpoint, post_json
from arbor.adapters.web_fetch import WebFetch
from arbor.adapters.web_search import SearxngSearch
from arbor.adapters.webhook import Webhook
from arbor.errors import (
    ConfigurationInvalid,
    DeliveryFailed,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    WebFailed,
)
from arbor.web.addresses import AllowList

#: Addresses of redirects that `httpx` cannot read: names that cannot be decoded, and a path without a slash.
NO_ADDRESSES = ("http://xn--a/", "//xn--ls8h/", "http://xn--/", "data:x")


def answering(status: int, **headers: str) -> httpx.Client:
    """Return a client whose requests get this answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = httpx.Response(status, headers=named, stream=httpx.ByteStream(b"The tide."))
    return httpx.Client(transport=httpx.MockTransport(lambda _: answer))


def fetch_with(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the text of a page that the client reads."""
    monkeypatch.setattr(web_fetch, "web_client", lambda **_: client)
    fetch = WebFetch(allow=AllowList(everywhere=True), page_bytes=1_000)
    return fetch.fetch("http://tides.example/", deadline_s=5).text


@pytest.mark.parametrize("location", NO_ADDRESSES)
def test_a_redirect_to_no_address_fails_as_such(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WebFailed, match="redirects to no address"):
        fetch_with(answering(302, location=location), monkeypatch)
    monkeypatch.setattr(webhook, "_client", lambda _: answering(302, location=location))
    with pytest.raises(DeliveryFailed, match="a redirect to no address"):
        Webhook().post("https://tides.example/hook", body=b"{}", headers={})


def failing(error: type[httpx.TimeoutException]) -> httpx.Client:
    """Return a client whose requests fail at once with this error."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise error("in a test", request=request)

    return httpx.Client(transport=httpx.MockTransport(fail))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpx.PoolTimeout, "was not asked: all connections of this process are in use"),
        (httpx.ConnectTimeout, "did not accept a connection in time"),
        (httpx.ReadTimeout, "did not answer within"),
    ],
)
def test_a_time_out_names_what_was_waited_for(
    error: type[httpx.TimeoutException], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WebFailed, match=reason):
        fetch_with(failing(error), monkeypatch)
    monkeypatch.setattr(webhook, "_client", lambda _: failing(error))
    with pytest.raises(DeliveryFailed, match=reason):
        Webhook().post("https://tides.example/hook", body=b"{}", headers={})


def test_a_server_that_takes_no_request_is_unavailable() -> None:
    endpoint = ApiEndpoint(provider="tides", url="https://tides.example/v1")
    with pytest.raises(ModelUnavailable, match="tides did not take the request in time"):
        post_json(failing(httpx.WriteTimeout), endpoint, {}, deadline_s=5)
    with pytest.raises(ModelTimeout, match=r"tides did not answer within 0\.0 s"):
        post_json(failing(httpx.WriteTimeout), endpoint, {}, deadline_s=0)


@pytest.mark.parametrize("location", NO_ADDRESSES)
def test_a_model_that_redirects_to_no_address_cannot_be_asked(location: str) -> None:
    endpoint = ApiEndpoint(provider="tides", url="https://name:secret@tides.example/v1")
    with pytest.raises(ModelRejected, match=r"tides cannot be asked at https://tides\.example/v1"):
        post_json(answering(302, location=location), endpoint, {}, deadline_s=5)


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "text/plain; charset*=us-ascii''%00"},
        {"content_type": "text/plain", "content_length": "9" * 5_000},
    ],
)
def test_a_page_with_odd_headers_is_read(headers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch_with(answering(200, **headers), monkeypatch) == "The tide."


def test_a_search_at_a_name_that_cannot_be_decoded_is_refused() -> None:
    with pytest.raises(ConfigurationInvalid, match="ARBOR_SEARCH_URL"):
        SearxngSearch("http://xn--a/")
