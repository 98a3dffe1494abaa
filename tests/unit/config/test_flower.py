"""Flower behind its password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from celery import Celery
from django.utils.asyncio import async_unsafe
from flower.urls import handlers
from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import url

from config.cli.installation.flower import make_server

#: Public pages: the health check, static files, and forms of other ways to sign in.
OPEN = ("/healthcheck", "/static/", "/login", "/logout")


def protected_paths() -> list[str]:
    """Return a path for each page that needs the password."""
    patterns = [handler.regex.pattern if isinstance(handler, url) else handler[0] for handler in handlers]
    paths = [pattern.rstrip("$").replace("(.+)", "x").replace("(.*)", "x") for pattern in patterns]
    return [path for path in paths if path.startswith("/") and not path.startswith(OPEN)]


@async_unsafe("A query is refused in the thread of an event loop.")
def is_operator(name: str, password: str, _address: str) -> bool:
    return (name, password) == ("operator", "secret")


def ask(paths: Iterable[str], **credentials: str) -> dict[str, tuple[int, str]]:
    async def fetch() -> dict[str, tuple[int, str]]:
        server = HTTPServer(make_server(Celery(broker="memory://"), is_operator))
        (socket,) = bind_sockets(0, "127.0.0.1")
        server.add_sockets([socket])
        answers = {}
        for path in paths:
            answer = await AsyncHTTPClient().fetch(
                f"http://127.0.0.1:{socket.getsockname()[1]}{path}", raise_error=False, **credentials
            )
            answers[path] = (answer.code, answer.body.decode())
        server.stop()
        return answers

    return asyncio.run(fetch())


def test_no_page_is_served_without_the_password() -> None:
    answers = ask(protected_paths())
    assert "/metrics" in answers
    assert "/workers" in answers
    # 404 and 405: there is nothing to read.
    assert {path: code for path, (code, _) in answers.items() if code not in {401, 404, 405}} == {}


def test_the_health_check_reveals_nothing_else() -> None:
    assert ask(["/healthcheck"]) == {"/healthcheck": (200, "OK")}


def test_the_password_gives_access() -> None:
    answers = ask(["/workers"], auth_username="operator", auth_password="secret")
    assert answers["/workers"][0] == 200
    assert ask(["/workers"], auth_username="operator", auth_password="wrong")["/workers"][0] == 401
