"""Read files of documents in a child process with limits, so that no file can take the worker down."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import arbor
from arbor.adapters.document_child import LENGTH, write_frame
from arbor.adapters.document_formats import FormatLimits
from arbor.errors import DocumentUnreadable, ReaderKilled
from arbor.knowledge.blocks import Block, BlockKind, ParsedDocument
from arbor.knowledge.values import DocumentKind

#: The most documents that one child reads, because libraries may leak memory.
_READS_PER_CHILD = 200
#: The variables of the environment that a Python process may need; no other is handed to the child.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "LD_LIBRARY_PATH")
_PIPE_BYTES = 1 << 16
#: Signals that are sent at a shutdown or when the machine has no memory left. The child's own limits end it by other signals.
_OUTSIDE_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGKILL})


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingLimits:
    """The limits of reading one file."""

    seconds: float = 30.0
    memory_bytes: int = 1 << 30
    formats: FormatLimits = field(default_factory=FormatLimits)


class DocumentReader:
    """Reads files, one at a time, in a child that it starts when it is needed."""

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        #: The process that started the child.
        self._owner = 0
        self._reads = 0

    def read(self, *, kind: DocumentKind, content: bytes) -> ParsedDocument:
        """Read a file. Raises DocumentUnreadable, also for one that exceeds a limit, and ReaderKilled."""
        with self._lock:
            try:
                child = self._running()
                answer = self._ask(child, kind, content)
            except BaseException:
                self._end()
                raise
            self._reads += 1
            if self._reads >= _READS_PER_CHILD or answer["ends"]:
                # A child that is about to end would not answer the next file.
                self._end()
        if "error" in answer:
            raise DocumentUnreadable(answer["error"])
        return _decode(answer)

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and (self._owner != os.getpid() or self._child.poll() is not None):
            # A forked process shares the pipes of its parent's child, and must not use them.
            self._end()
        if self._child is None:
            self._child = _start()
            self._owner = os.getpid()
            self._reads = 0
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if self._owner == os.getpid():
            child.kill()
            child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _ask(self, child: subprocess.Popen[bytes], kind: DocumentKind, content: bytes) -> dict[str, Any]:
        assert child.stdin is not None
        assert child.stdout is not None
        header = {
            "kind": kind.value,
            "seconds": self._limits.seconds,
            "memory_bytes": self._limits.memory_bytes,
            "limits": asdict(self._limits.formats),
        }
        deadline = time.monotonic() + self._limits.seconds
        # The child reads all of a request before it parses anything, so that writing cannot wait for long.
        with contextlib.suppress(BrokenPipeError):
            write_frame(child.stdin, json.dumps(header).encode())  # type: ignore[arg-type]
            write_frame(child.stdin, content)  # type: ignore[arg-type]
        answer = self._receive(child.stdout, deadline)
        if answer is None:
            child.wait(timeout=5)
            if -child.returncode in _OUTSIDE_SIGNALS:
                name = signal.Signals(-child.returncode).name
                raise ReaderKilled(
                    f"its reader was killed from outside ({name}), as at a shutdown or when the machine has no memory left"
                )
            raise DocumentUnreadable(
                f"its reader was stopped (exit code {child.returncode}): reading it takes more than"
                f" {self._limits.seconds:g} s of computing, or more memory than it may have"
            )
        decoded: dict[str, Any] = json.loads(answer)
        return decoded

    def _receive(self, stream: IO[bytes], deadline: float) -> bytes | None:
        """Return a frame; None if the child has ended. Raises DocumentUnreadable after the deadline."""
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while (wanted := _missing(received)) > 0:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise DocumentUnreadable(f"reading it takes more than {self._limits.seconds:g} s")
                part = os.read(stream.fileno(), min(wanted, _PIPE_BYTES))
                if not part:
                    return None
                received += part
        return bytes(received[LENGTH.size :])


def _missing(received: bytearray) -> int:
    """Return the missing bytes of a frame; of its length first, as long as that is not known."""
    if len(received) < LENGTH.size:
        return LENGTH.size - len(received)
    return int(LENGTH.size + LENGTH.unpack_from(received)[0]) - len(received)


def _start() -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment["PYTHONPATH"] = str(Path(arbor.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "arbor.adapters.document_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def _decode(answer: dict[str, Any]) -> ParsedDocument:
    return ParsedDocument(
        blocks=tuple(
            Block(kind=BlockKind(kind), level=level, page=page, text=text)
            for kind, level, page, text in answer["blocks"]
        ),
        title=answer["title"],
        pages=answer["pages"],
    )
