"""The stub model server in a process of its own, which ends with its parent."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.support.stub_model import Mode


class RunningStub:
    """A stub in a process of its own."""

    def __init__(self, base_url: str, process: subprocess.Popen[str]) -> None:
        #: For OPENAI_BASE_URL.
        self.base_url = base_url
        self.pid = process.pid

    def stats(self) -> dict[str, Any]:
        """Return the counts since the start."""
        with urllib.request.urlopen(self.base_url.removesuffix("/v1") + "/stats", timeout=10) as answer:
            counts: dict[str, Any] = json.load(answer)
            return counts


@contextmanager
def stub_model(*, latency_s: float = 0.0, mode: Mode = Mode.OK) -> Iterator[RunningStub]:
    """Run a stub beside this process for the length of the block."""
    command = [sys.executable, "-m", "bench.support.stub_model", "--port", "0", "--latency", str(latency_s)]
    command += ["--mode", mode]
    # The stub ends when the pipe to its standard input is closed, however this process ends.
    with subprocess.Popen(
        [*command, "--leash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            base_url = process.stdout.readline().strip()
            if not base_url:
                raise RuntimeError(f"the stub model did not start: exit code {process.wait()}")
            yield RunningStub(base_url, process)
        finally:
            process.terminate()
