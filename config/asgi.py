"""The ASGI application for uvicorn: the API, and MCP beside it."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

import django
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries

from config.body_limit import BodyLimit, Message, Receive, Send
from config.upload_limit import UploadLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.api_settings")
# Creates the Celery application by which the API enqueues tasks (`apps.queues`).
importlib.import_module("workers.app")
django.setup(set_prefix=False)
# These receivers would need a thread at each request to close connections; `apps.api.threads` closes those of its threads itself.
for receiver in (reset_queries, close_old_connections):
    request_started.disconnect(receiver)

# These modules load models, which Django must be set up for.
_mcp_http: Any = importlib.import_module("apps.mcp_server.http")
_authentication: Any = importlib.import_module("apps.api.authentication")
_api: Any = importlib.import_module("apps.api.api")
_embedders: Any = importlib.import_module("apps.memories.services.embedding.embedders")


class ApiHandler(ASGIHandler):
    """Django's handler without a thread per request, which a stream would occupy; `apps.api.threads` has the threads."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        await self.handle(scope, receive, send)


class Application:
    """Answers HTTP requests, and the messages of a server's start and end."""

    def __init__(self) -> None:
        handler = ApiHandler()
        self._http = BodyLimit(handler, most_bytes=settings.ARBOR_API_BODY_BYTES)
        #: The operations that read files, by their paths.
        self._uploads = {
            f"{_api.PATH}/{name}": UploadLimit(
                handler, others=self._http, may_upload=may_upload, most_bytes=megabytes * 2**20
            )
            for name, may_upload, megabytes in (
                ("seeds", _authentication.may_upload_seeds, settings.ARBOR_SEED_MAX_MB),
                ("documents", _authentication.may_upload_documents, settings.ARBOR_DOCUMENT_MB),
            )
        }
        self._mcp_endpoint = _mcp_http.McpEndpoint()
        self._mcp = BodyLimit(self._mcp_endpoint, most_bytes=settings.ARBOR_API_BODY_BYTES)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer by the kind of the connection; a further protocol is a further case here."""
        if scope["type"] == "lifespan":
            # In a thread, because the embedding server may be slow to answer, and nothing here needs the result.
            threading.Thread(
                target=_embedders.report_unusable_embedder, kwargs={"process": "api"}, daemon=True
            ).start()
            async with self._mcp_endpoint.running():
                await _answer_lifespan(receive, send)
        elif scope["type"] == "http" and scope["path"].rstrip("/") == _mcp_http.PATH:
            await self._mcp(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in self._uploads:
            await self._uploads[scope["path"]](scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})


async def _answer_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


application = Application()
