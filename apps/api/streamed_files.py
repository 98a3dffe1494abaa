"""Files as responses, sent in parts, and files in the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

FILE_TYPE = "application/octet-stream"
_BINARY = {"content": {FILE_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
#: Parts of the OpenAPI document for operations that return or read a file.
ANSWERS_FILE = {"responses": {200: {"description": "The file.", **_BINARY}}}
READS_FILE = {"requestBody": {"required": True, **_BINARY}}
#: Bytes of a file that are sent at once.
_PART = 256 * 1024


def streamed_file(request: HttpRequest, file: BinaryIO, *, name: str) -> StreamingHttpResponse:
    """Return a file as a response in parts; under ASGI, the parts are read without blocking other requests."""
    file.seek(0)
    parts = _AsyncParts(file) if isinstance(request, ASGIRequest) else _Parts(file)
    response = StreamingHttpResponse(parts, content_type=FILE_TYPE)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


class _FileParts:
    """The parts of a file. The file is closed after the last part, or by the response if no part was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Parts(_FileParts):
    """Parts for WSGI."""

    def __iter__(self) -> Iterator[bytes]:
        with self._file:
            while part := self._file.read(_PART):
                yield part


class _AsyncParts(_FileParts):
    """Parts for ASGI."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._file:
            while part := await asyncio.to_thread(self._file.read, _PART):
                yield part
