"""A provider of models on this machine, with OpenAI's protocol: it knows one key, lists models and answers by a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-newcomer-0123456789abcdef"
MODELS = ("small-chat", "large-chat", "text-embedding-3")
#: The reply to a heartbeat: a decision to rest.
REST = {"thinking": "Nothing is urgent.", "actions": [{"action": "rest", "params": {}}]}


class ProviderServer(ThreadingHTTPServer):
    """A server that records its requests; it answers a turn of a conversation with `reply`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = KEY
        #: Whether the server lists its models.
        self.lists = True
        #: Decides a heartbeat by the text of its prompt.
        self.decide: Callable[[str], dict[str, Any]] = lambda _prompt: REST
        self.reply = "I am awake, and I have a voice of my own."
        #: [(path, Authorization, body)]
        self.requests: list[tuple[str, str, dict[str, Any]]] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def asked(self, path: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the headers and bodies of the requests of a path."""
        return [(header, body) for asked, header, body in self.requests if asked == path]


class _Handler(BaseHTTPRequestHandler):
    server: ProviderServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self._refused({}):
            return
        if self.path == "/v1/models" and self.server.lists:
            self._answer(200, {"object": "list", "data": [{"id": name} for name in MODELS]})
        else:
            self._answer(404, {"error": {"message": "not here"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._refused(body):
            return
        schema = body.get("response_format", {}).get("json_schema", {}).get("name", "")
        prompt = str([message["content"] for message in body["messages"]])
        is_chat = schema == "answer"
        value = {"thinking": "", "reply": self.server.reply} if is_chat else self.server.decide(prompt)
        text = json.dumps(value)
        if not body.get("stream"):
            message = {"role": "assistant", "content": text}
            self._answer(
                200, {"model": body["model"], "choices": [{"message": message, "finish_reason": "stop"}]}
            )
            return
        chunk = {"model": body["model"], "choices": [{"index": 0, "delta": {"content": text}}]}
        end = {"model": body["model"], "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        lines = "".join(f"data: {json.dumps(part)}\n\n" for part in (chunk, end)) + "data: [DONE]\n\n"
        self._send(200, "text/event-stream", lines.encode())

    def _refused(self, body: dict[str, Any]) -> bool:
        header = self.headers.get("Authorization", "")
        self.server.requests.append((self.path, header, body))
        if header == f"Bearer {self.server.key}":
            return False
        self._answer(401, {"error": {"message": f"Incorrect API key provided: {header}"}})
        return True

    def _answer(self, status: int, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def provider_server() -> Iterator[ProviderServer]:
    """Serve while the block runs."""
    server = ProviderServer()
    thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
