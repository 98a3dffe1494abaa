"""The run folder of an installation: its lock, its state file and its permissions."""

from __future__ import annotations

import os
import stat
import sys
from importlib import import_module
from pathlib import Path

import psutil
import pytest

from arbor.errors import AlreadyRunning, ConfigurationInvalid
from config.supervisor.run_folder import RunFolder, write_private


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    folder.make()
    return folder


def test_a_folder_is_locked_by_one_supervisor_at_a_time(tmp_path: Path) -> None:
    second = RunFolder(tmp_path).lock()
    with RunFolder(tmp_path).lock(), pytest.raises(AlreadyRunning, match="already runs"):
        second.__enter__()
    with RunFolder(tmp_path).lock():
        pass


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    run = RunFolder(file)
    assert run.supervisor() is None
    with pytest.raises(
        ConfigurationInvalid, match=f"the data folder {file} cannot be made: .*ARBOR_DATA_DIR"
    ):
        run.make()


def test_the_supervisor_that_wrote_the_state_is_found(run: RunFolder) -> None:
    assert run.supervisor() is None
    run.write_state(parts=[])
    supervisor = run.supervisor()
    assert supervisor is not None
    assert supervisor.pid == os.getpid()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the clock tells processes apart")
def test_the_supervisor_is_found_after_the_clock_was_set(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write_state(parts=[])
    booted = psutil.boot_time()
    # A system whose clock is set moves the time of its boot.
    monkeypatch.setattr(import_module("psutil._pslinux"), "boot_time", lambda: booted + 3600)
    supervisor = run.supervisor()
    assert supervisor is not None
    assert supervisor.pid == os.getpid()


def test_another_process_with_the_same_number_is_not_the_supervisor(run: RunFolder) -> None:
    run.write_state(parts=[])
    write_private(run.state_file, {"pid": os.getpid(), "created": run.state()["created"] - 60})
    assert run.supervisor() is None


def test_the_state_of_an_ended_process_is_ignored(run: RunFolder) -> None:
    write_private(run.state_file, {"pid": 2**22 + 1, "created": 0.0})
    assert run.supervisor() is None


def test_run_files_are_accessible_to_the_owner_only(run: RunFolder) -> None:
    write_private(run.servers_file, {"database_url": "postgresql://owner:secret@localhost/arbor"})
    assert stat.S_IMODE(run.servers_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o700
    assert [file.name for file in run.path.iterdir()] == ["servers.json"]


def test_clearing_removes_all_files_of_a_running_installation(run: RunFolder) -> None:
    run.write_state(parts=[])
    write_private(run.servers_file, {})
    run.ready_file("web").touch()
    run.clear()
    assert list(run.path.iterdir()) == []
    assert run.state() == {}
