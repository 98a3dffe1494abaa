"""The child process that reads files of documents, one after another: `python -m arbor.adapters.document_child`.

The child has no secrets and writes no file, and its memory and computing time are limited. A frame on standard input or output
is a length in four bytes and the content. A request is two frames, a JSON object and a file; an answer is one, a JSON object, whose
field `ends` says that the child ends after it.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import warnings
from typing import Any, BinaryIO

from arbor.adapters.document_formats import FormatLimits, read_document
from arbor.errors import DocumentUnreadable
from arbor.knowledge.blocks import ParsedDocument
from arbor.knowledge.values import DocumentKind

LENGTH = struct.Struct(">I")
_MAX_OPEN_FILES = 64


def main() -> None:
    """Answer requests until standard input ends, or a file has used up the memory or the stack."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    # Output of libraries must not get between the answers.
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    limited = False
    while (header := read_frame(requests)) is not None:
        wanted = json.loads(header)
        content = read_frame(requests) or b""
        if not limited:
            limit_process(memory_bytes=wanted["memory_bytes"])
            limited = True
        limit_time(wanted["seconds"])
        answer, continues = _answer(wanted, content)
        write_frame(answers, json.dumps({**answer, "ends": not continues}).encode())
        if not continues:
            return


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return the next frame; None at the end."""
    length = stream.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return None
    return stream.read(LENGTH.unpack(length)[0])


def write_frame(stream: BinaryIO, content: bytes) -> None:
    """Write a frame."""
    stream.write(LENGTH.pack(len(content)) + content)
    stream.flush()


def _answer(wanted: dict[str, Any], content: bytes) -> tuple[dict[str, Any], bool]:
    """Return the answer, and whether this process can continue."""
    try:
        limits = FormatLimits(**wanted["limits"])
        return encode(read_document(DocumentKind(wanted["kind"]), content, limits)), True
    except DocumentUnreadable as error:
        return {"error": str(error)}, True
    except MemoryError:
        return {"error": f"reading it takes more than {wanted['memory_bytes'] // 2**20:,} MB"}, False
    except RecursionError:
        return {"error": "its parts are nested too deeply"}, False


def encode(document: ParsedDocument) -> dict[str, Any]:
    """Return a document as JSON values."""
    blocks = [[block.kind.value, block.level, block.page, block.text] for block in document.blocks]
    return {"title": document.title, "pages": document.pages, "blocks": blocks}


def limit_process(*, memory_bytes: int) -> None:
    """Limit this process's memory and open files, and forbid it to write files. Does nothing on systems without such limits."""
    with contextlib.suppress(ImportError):
        # Only POSIX has this module.
        import resource  # noqa: PLC0415

        _limit(resource.RLIMIT_FSIZE, 0)
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
        _limit(resource.RLIMIT_AS, memory_bytes)


def limit_time(seconds: float) -> None:
    """Limit the computing time from now on; the process is killed at its end."""
    with contextlib.suppress(ImportError):
        import resource  # noqa: PLC0415

        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + seconds) + 1)


def _limit(kind: int, most: int) -> None:
    import resource  # noqa: PLC0415

    _, hard = resource.getrlimit(kind)
    bounded = most if hard == resource.RLIM_INFINITY else min(most, hard)
    # macOS knows the limit of memory, and refuses to set it.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (bounded, hard))


if __name__ == "__main__":
    main()
