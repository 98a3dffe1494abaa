"""Wheels of the locked packages, for each platform that the documentation names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Texts of the messages of uv when no registry answers.
NO_NETWORK = ("Failed to fetch", "error sending request", "Network connectivity is disabled")


def resolve(lock: str, platform: str, target: Path) -> subprocess.CompletedProcess[str]:
    """Resolve a lock file for another platform, wheels only; nothing is installed."""
    uv = shutil.which("uv", path=f"{ROOT / '.tools/uv/bin'}") or shutil.which("uv")
    if uv is None:
        pytest.skip("uv is neither in .tools/ nor on the PATH")
    options = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.13"]
    command = [uv, "pip", "install", "--dry-run", *options, "--python-platform", platform]
    return subprocess.run(
        [*command, "--target", str(target), "-r", str(ROOT / lock)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "platform", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"]
)
def test_the_runtime_lock_has_wheels_for_each_platform(platform: str, tmp_path: Path) -> None:
    resolved = resolve("requirements-runtime.lock", platform, tmp_path)
    if resolved.returncode and any(text in resolved.stderr for text in NO_NETWORK):
        pytest.skip(f"no package registry answers: {resolved.stderr.splitlines()[-1]}")
    assert resolved.returncode == 0, resolved.stderr


def test_a_package_without_a_wheel_is_detected(tmp_path: Path) -> None:
    lock = tmp_path / "sources.lock"
    lock.write_text("wordllama==0.4.0.post1\n")
    resolved = resolve(str(lock), "aarch64-unknown-linux-gnu", tmp_path / "target")
    if any(text in resolved.stderr for text in NO_NETWORK):
        pytest.skip("no package registry answers")
    assert resolved.returncode != 0
    assert "no usable wheels" in resolved.stderr
