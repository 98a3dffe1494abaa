"""Receivers on this machine: a web server and a mail server that record requests and answer as configured."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(kw_only=True)
class Request:
    """A received request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(kw_only=True)
class WebReceiver:
    """A receiver of webhooks, which answers with the statuses in order, then with 204."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)


@contextmanager
def run_web_receiver() -> Iterator[WebReceiver]:
    """Run a web server that records its requests."""
    receiver = WebReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append(Request(path=self.path, headers=dict(self.headers), body=body))
            status = receiver.statuses.pop(0) if receiver.statuses else 204
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            self.send_header("Set-Cookie", "tenant=acme; Path=/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield receiver
        server.shutdown()


@dataclass(kw_only=True)
class MailReceiver:
    """A mail server; `refuses` is its answer to each recipient, if set."""

    port: int = 0
    refuses: bytes = b""
    mails: list[EmailMessage] = field(default_factory=list)


@contextmanager
def run_mail_receiver() -> Iterator[MailReceiver]:
    """Run a mail server that records its mails."""
    receiver = MailReceiver()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._answer(b"220 receiver")
            while line := self.rfile.readline():
                verb = line[:4].upper()
                if verb == b"QUIT":
                    self._answer(b"221 bye")
                    return
                if verb == b"RCPT" and receiver.refuses:
                    self._answer(receiver.refuses)
                elif verb == b"DATA":
                    self._answer(b"354 go on")
                    self._record_mail()
                    self._answer(b"250 accepted")
                else:
                    self._answer(b"250 fine")

        def _record_mail(self) -> None:
            lines = []
            while (line := self.rfile.readline()).rstrip() != b".":
                lines.append(line)
            mail = message_from_bytes(b"".join(lines), policy=policy.default)
            receiver.mails.append(mail)

        def _answer(self, line: bytes) -> None:
            self.wfile.write(line + b"\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield receiver
        server.shutdown()
