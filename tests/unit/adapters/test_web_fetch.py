"""Fetching from a real server: addresses, types, sizes and deadlines."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from arbor.adapters.web_fetch import WebFetch
from arbor.errors import WebFailed
from arbor.web.addresses import AllowList
from tests.unit.adapters.web_server import PUBLIC, Server, server

__all__ = ["server"]

HTML = (
    b"<html><head><title>The reef</title></head><body><nav><ul><li><a href='/'>Home</a></li></ul></nav><article>"
    b"<h1>The reef</h1><p>The reef is eleven fathoms deep at its northern end, as it was sounded in the year 1842.</p>"
    b"<p>It was sounded again when the harbour was built, by the same hands, and found to be as deep as before.</p>"
    b"</article><footer>Imprint</footer><script>alert('x')</script></body></html>"
)


def web_fetch(
    *allowed: str, page_bytes: int = 100_000, permits: Callable[[str], bool] | None = None
) -> WebFetch:
    """Return a fetch that may read these domains, at the one address that counts as public."""
    client = WebFetch(
        allow=AllowList.of(allowed or ("*",)),
        page_bytes=page_bytes,
        permits=permits or (lambda ip: ip == PUBLIC),
    )
    return closed_afterwards(client)


_opened: list[WebFetch] = []


def closed_afterwards(client: WebFetch) -> WebFetch:
    """Register a client to be closed after the test."""
    _opened.append(client)
    return client


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the clients of the test."""
    yield
    while _opened:
        _opened.pop().close()


def assert_refused(url: str, message: str, by: WebFetch | None = None, *, deadline_s: float = 5) -> None:
    """Fail unless an address is refused with this message."""
    with pytest.raises(WebFailed, match=message):
        (by or web_fetch()).fetch(url, deadline_s=deadline_s)


def test_a_page_is_read_as_title_and_text_without_cookies(server: Server) -> None:
    url = server.serve("/reef", HTML, Set_Cookie="seen=1; Path=/")
    reader = web_fetch()

    page = reader.fetch(f"{url}?q=1#part", deadline_s=5)
    reader.fetch(url, deadline_s=5)

    assert (page.url, page.title) == (f"{url}?q=1", "The reef")
    assert "eleven fathoms" in page.text
    assert "alert" not in page.text
    assert "Home" not in page.text
    for _, headers in server.requests:
        assert headers["User-Agent"].startswith("Arbor/")
        assert "Cookie" not in headers


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain; charset=latin-1", "Tiefe: fünf".encode("latin-1"), "Tiefe: fünf"),
        ("text/plain; charset=no-such", b"deep", "deep"),
        ("text/plain; charset=idna", b"deep", "deep"),
        ("text/plain; charset=punycode", b"deep-blue", "deep-blue"),
        ("text/plain; charset=undefined", b"deep", "deep"),
        ("application/json", b'{"deep": 11}', '{"deep": 11}'),
        ("application/feed+json", b"[]", "[]"),
        ("application/atom+xml", b"<a>deep</a>", "<a>deep</a>"),
        ("text/plain", b"a\0b", "a\ufffdb"),
    ],
)
def test_plain_types_are_read_as_they_are(server: Server, kind: str, body: bytes, text: str) -> None:
    url = server.serve("/x", body, Content_Type=kind)
    assert web_fetch().fetch(url, deadline_s=5).text == text


def test_an_unknown_charset_of_the_server_leaves_that_of_the_page(server: Server) -> None:
    page = HTML.replace(b"<title>", b'<meta charset="iso-8859-1"><title>').replace(b"eleven", b"f\xfcnf")
    url = server.serve("/page", page, Content_Type="text/html; charset=no-such")
    assert "f\u00fcnf fathoms" in web_fetch().fetch(url, deadline_s=5).text


@pytest.mark.parametrize("kind", ["application/pdf", "image/png", "application/octet-stream", "text/css", ""])
def test_other_types_are_not_read(server: Server, kind: str) -> None:
    assert_refused(server.serve("/x", b"x", Content_Type=kind), "which is not read as text")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.org/x", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("//example.org", "only http and https"),
        ("http://", "only http and https"),
        ("", "only http and https"),
        ("http://user:secret@example.org/", "with a user and password"),
        ("http://exa mple.org\0/", "no address|only http"),
        ("http://[::1", "no address"),
        ("http://xn--a/", "no address"),
    ],
)
def test_an_invalid_page_address_is_refused(url: str, message: str) -> None:
    assert_refused(url, message)


def test_a_domain_not_allowed_is_refused_before_its_lookup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("it was looked up"))
    assert_refused("https://example.net/", "not among the domains", web_fetch("example.org"))
    assert_refused(
        "https://example.org/",
        "not among the domains",
        closed_afterwards(WebFetch(allow=AllowList.of([]), page_bytes=1)),
    )


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.3.4",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[fe80::1]",
        "[fd00::1]",
        "[ff02::1]",
    ],
)
def test_private_addresses_are_refused_in_every_notation(host: str) -> None:
    real = closed_afterwards(WebFetch(allow=AllowList.of(["*"]), page_bytes=1_000))
    assert_refused(f"http://{host}:9/latest/meta-data", "may not be read: .* not permitted", real)


def test_a_private_address_is_refused_before_any_byte_is_sent(server: Server) -> None:
    real = closed_afterwards(WebFetch(allow=AllowList.of(["*"]), page_bytes=1_000))
    assert_refused(server.serve("/secret", HTML), "that is not permitted", real)
    assert server.requests == []


def test_redirects_are_followed_by_hand_and_each_is_checked(server: Server) -> None:
    server.serve("/end", HTML)
    url = server.serve("/start", status=302, Location="/end")
    assert web_fetch().fetch(url, deadline_s=5).url == f"{server.url}/end"

    inner = f"http://127.0.0.2:{server.server_port}/end"
    assert_refused(server.serve("/in", status=301, Location=inner), "an address that is not permitted")
    assert_refused(
        server.serve("/meta", status=307, Location="http://169.254.169.254/"), "that is not permitted"
    )
    assert_refused(server.serve("/file", status=302, Location="file:///etc/passwd"), "only http and https")
    assert_refused(
        server.serve("/away", status=302, Location="https://example.net/"),
        "example.net is not among the domains",
        web_fetch(PUBLIC),
    )


def test_redirects_that_use_up_the_deadline_are_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.serve("/slow", b"x")

    def redirect_slowly(*_: object, **__: object) -> str:
        time.sleep(0.2)
        return url

    monkeypatch.setattr(WebFetch, "_fetch_once", redirect_slowly)
    assert_refused(url, r"/slow did not answer within 0\.1 s", deadline_s=0.1)


def test_at_most_five_redirects_are_followed(server: Server) -> None:
    for number in range(7):
        server.serve(f"/{number}", status=302, Location=f"/{number + 1}")
    assert_refused(f"{server.url}/0", "more than 5 redirects")
    assert len(server.requests) == 6


def resolve_names_to(monkeypatch: pytest.MonkeyPatch, addresses: Callable[[], list[str]]) -> None:
    """Resolve names to these addresses, and addresses to themselves."""
    real = socket.getaddrinfo

    def resolve(host: str, port: int, *rest: Any, **named: Any) -> list[Any]:
        if not host.endswith(".example"):
            return list(real(host, port, *rest, **named))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in addresses()]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_dns_rebinding_to_a_private_address_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the checked address is the one of the connection."""
    resolutions = iter([[PUBLIC], ["127.0.0.2"], ["127.0.0.2"]])
    resolve_names_to(monkeypatch, lambda: next(resolutions))
    port = server.server_port
    server.serve("/", status=302, Location=f"http://rebind.example:{port}/secret", Connection="close")
    server.serve("/secret", HTML)

    assert_refused(f"http://rebind.example:{port}/", "an address that is not permitted")
    assert [path for path, _ in server.requests] == ["/"]


def test_a_name_with_mixed_addresses_is_read_at_the_public_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_names_to(monkeypatch, lambda: ["10.0.0.1", PUBLIC])
    server.serve("/", HTML)
    page = web_fetch().fetch(f"http://two.example:{server.server_port}/", deadline_s=5)
    assert "eleven fathoms" in page.text


@pytest.mark.parametrize("host", ["münchen.example", "xn--mnchen-3ya.example", "www.münchen.example"])
def test_an_international_domain_is_allowed_in_ascii(
    host: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_names_to(monkeypatch, lambda: [PUBLIC])
    server.serve("/", HTML)
    reader = web_fetch("xn--mnchen-3ya.example")
    page = reader.fetch(f"http://{host}:{server.server_port}/", deadline_s=5)
    assert "eleven fathoms" in page.text


def test_a_page_over_the_size_limit_is_refused(server: Server) -> None:
    small = web_fetch(page_bytes=100)
    assert_refused(server.serve("/announced", b"x" * 101), "is larger than 100 bytes", small)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for _ in range(100):
            handler.wfile.write(b"x" * 10)

    server.routes["/endless"] = endless
    assert_refused(f"{server.url}/endless", "is larger than 100 bytes", small)


def test_a_compressed_page_is_refused(server: Server) -> None:
    assert_refused(server.serve("/bomb", b"x", Content_Encoding="gzip"), "compressed")


@pytest.mark.bar
def test_a_slow_server_is_cut_off_at_the_deadline(server: Server) -> None:
    over = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.close_connection = True
        while not over.wait(0.05):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    server.routes["/slow"] = drip
    started = time.monotonic()
    try:
        assert_refused(
            f"{server.url}/slow?token=secret", r"/slow did not answer within 0\.3 s", deadline_s=0.3
        )
    finally:
        over.set()
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("status", [204, 400, 404, 500, 304])
def test_another_status_is_reported(server: Server, status: int) -> None:
    server.serve("/x", status=status)
    with pytest.raises(WebFailed) as failure:
        web_fetch().fetch(f"{server.url}/x?key=secret", deadline_s=5)
    assert f"answered {status}" in str(failure.value)
    assert "secret" not in str(failure.value)
