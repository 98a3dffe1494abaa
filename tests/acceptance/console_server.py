"""The console on a port of its own, in the process of the tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from wsgiref.types import WSGIApplication

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

from tests.acceptance.browser import Browser
from tests.factories.users import PASSWORD


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        """Write nothing: the test reports errors."""


@contextmanager
def served(application: WSGIApplication) -> Iterator[str]:
    """Serve the application; yield its address."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Silent)
    server.set_app(application)
    # Closing the server then waits for its threads, which close their connections to the database.
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sign_in(browser: Browser, address: str) -> None:
    """Sign in as `ann` by the form."""
    browser.open(f"{address}/admin/")
    browser.fill("#id_username", "ann")
    browser.fill("#id_password", PASSWORD)
    browser.click("#login-form button[type=submit]")
