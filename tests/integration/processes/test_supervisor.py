"""The supervisor over real processes: order, restarts, crash loops, and an end that leaves no process."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from arbor.errors import ServerError
from config.supervisor import managed_process
from config.supervisor.launch import Launch
from config.supervisor.log import Log, Mask
from config.supervisor.managed_process import ManagedProcess, PartStatus
from config.supervisor.run_folder import end_orphans, find_orphans, mark
from config.supervisor.supervisor import Supervisor

ROOT = Path(__file__).parents[3]
PATH = {"PATH": os.defpath}

#: The state of each part, by its name.
type Parts = dict[str, dict[str, Any]]


def shell(script: str, **env: str) -> Callable[[], Launch]:
    return lambda: Launch(argv=("/bin/sh", "-c", script), env={**PATH, **env})


def sleeping(name: str, *, script: str = "sleep 60", **changes: Any) -> ManagedProcess:
    return ManagedProcess(name=name, launch=shell(f"exec {script}"), **changes)


class Run:
    """A supervisor that has run until `until` returned true, with each of its changes recorded."""

    def __init__(self, *parts: ManagedProcess, until: Callable[[Parts], bool]) -> None:
        self.output = io.StringIO()
        self.changes: list[Parts] = []
        self.ready_calls = 0
        self._until = until
        names = [part.name for part in parts]
        self.supervisor = Supervisor(
            parts,
            log=Log(names, mask=Mask(["a-known-secret"]), stream=self.output),
            on_change=self._record_change,
            on_ready=self._count_ready,
        )
        started = time.monotonic()
        try:
            self.supervisor.run()
        finally:
            self.lasted = time.monotonic() - started

    def _record_change(self, parts: list[dict[str, Any]]) -> None:
        self.changes.append({part["name"]: part for part in parts})
        if self._until(self.changes[-1]):
            self.supervisor.request_stop()

    def _count_ready(self) -> None:
        self.ready_calls += 1

    @property
    def log(self) -> str:
        return self.output.getvalue()


def assert_gone(*seconds: str) -> None:
    """Assert that no `sleep` of these seconds runs any more; a killed process needs a moment to end."""
    left = [p for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[:1] == ["sleep"]]
    left = [p for p in left if p.info["cmdline"][1] in seconds]
    assert psutil.wait_procs(left, timeout=5)[1] == []


def ready(*names: str) -> Callable[[Parts], bool]:
    return lambda parts: all(parts[name]["status"] == PartStatus.READY for name in names)


def restarted(name: str, times: int) -> Callable[[Parts], bool]:
    return lambda parts: bool(parts[name]["restarts"] >= times)


def test_a_part_starts_when_the_parts_it_needs_are_ready(tmp_path: Path) -> None:
    answered = tmp_path / "answers"
    server = ManagedProcess(
        name="server", launch=shell(f"sleep 0.3; touch {answered}; exec sleep 60"), ready=answered.exists
    )
    run = Run(server, sleeping("web", needs=("server",)), until=ready("server", "web"))
    for change in run.changes:
        if change["server"]["status"] == PartStatus.STARTING:
            assert change["web"]["status"] == PartStatus.WAITING
    assert run.ready_calls == 1


@pytest.mark.parametrize(("awaited", "calls"), [(False, 1), (True, 0)])
def test_only_awaited_parts_delay_readiness(awaited: bool, calls: int) -> None:
    late = sleeping("api", ready=lambda: False, awaited=awaited)
    # Readiness is reported after a change, so the run ends with a change that follows the one of `web`.
    ended = sleeping("short", script="sleep 0.5")
    run = Run(sleeping("web"), late, ended, until=restarted("short", 1))
    assert run.ready_calls == calls


def test_a_full_disk_does_not_end_the_parts() -> None:
    class FullDisk(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    attempts: list[Parts] = []

    def fail(parts: list[dict[str, Any]]) -> None:
        attempts.append({part["name"]: part for part in parts})
        if ready("web")(attempts[-1]):
            supervisor.request_stop()
        raise OSError(errno.ENOSPC, "No space left on device")

    log = Log(["web"], mask=Mask(), stream=FullDisk())
    supervisor = Supervisor([sleeping("web", script="sleep 61.5")], log=log, on_change=fail)
    supervisor.run()
    assert attempts[-1]["web"]["status"] == PartStatus.STOPPED
    assert_gone("61.5")


def test_a_terminal_without_utf_8_shows_other_characters() -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Log(["web"], mask=Mask(), stream=terminal).write("web", "café → 1")
    terminal.seek(0)
    assert "web | caf? ? 1" in terminal.read()


def test_parts_start_after_the_steps_they_need_succeeded() -> None:
    step = ManagedProcess(name="prepare", launch=shell("echo prepared"), once=True)
    run = Run(step, sleeping("web", needs=("prepare",)), until=ready("web"))
    assert run.changes[-1]["prepare"]["status"] == PartStatus.DONE
    assert re.search(r"prepare \| prepared\n", run.log)


def test_a_failed_step_ends_everything_and_shows_its_last_lines() -> None:
    step = ManagedProcess(name="prepare", launch=shell("echo no such table; exit 3"), once=True)
    before = set(psutil.Process().children())
    with pytest.raises(ServerError, match=r"(?s)prepare ended after \d+ s with code 3.*no such table"):
        Run(sleeping("server"), step, sleeping("web", needs=("prepare",)), until=ready("web"))
    assert set(psutil.Process().children()) == before


def test_a_part_that_ended_restarts_while_the_others_run_on() -> None:
    run = Run(
        sleeping("web"),
        ManagedProcess(name="scheduler", launch=shell("exit 7")),
        until=restarted("scheduler", 2),
    )
    assert len({change["web"]["pid"] for change in run.changes} - {None}) == 1
    assert "with code 7; starting again in 0.5 s" in run.log
    assert "with code 7; starting again in 1 s" in run.log


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (signal.SIGKILL, "SIGKILL"),
        pytest.param(
            getattr(signal, "SIGRTMIN", 0) + 1,
            str(getattr(signal, "SIGRTMIN", 0) + 1),
            marks=pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="no real-time signals"),
        ),
    ],
)
def test_a_killed_part_restarts(number: int, name: str) -> None:
    def kill_once(parts: Parts) -> bool:
        web = parts["web"]
        if web["status"] == PartStatus.READY and web["restarts"] == 0:
            os.kill(web["pid"], number)
        return bool(web["status"] == PartStatus.READY and web["restarts"] == 1)

    assert f"by signal {name};" in Run(sleeping("web"), until=kill_once).log


def test_a_part_that_keeps_ending_is_in_a_crash_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_process, "FIRST_DELAY_S", 0.001)
    run = Run(ManagedProcess(name="scheduler", launch=shell("exit 1")), until=restarted("scheduler", 6))
    assert any(change["scheduler"]["status"] == PartStatus.CRASH_LOOP for change in run.changes)
    assert "(5 times in a row)" in run.log


def test_a_part_whose_preparation_failed_is_prepared_again() -> None:
    attempts = []

    def prepare() -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise ServerError("the port is still in use")

    run = Run(sleeping("web", prepare=prepare), until=ready("web"))
    assert "cannot start: the port is still in use" in run.log


def test_an_essential_part_that_never_starts_ends_everything() -> None:
    with pytest.raises(ServerError, match=r"server ended after \d+ s with code 1"):
        Run(
            ManagedProcess(name="server", launch=shell("exit 1"), essential=True, ready=lambda: False),
            until=lambda _parts: False,
        )


def test_parts_end_in_the_reverse_order_of_their_start(tmp_path: Path) -> None:
    order = tmp_path / "order"
    script = "trap 'echo {0} >> {1}; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    server = ManagedProcess(name="server", launch=shell(script.format("server", order)))
    step = ManagedProcess(name="prepare", launch=shell("true"), needs=("server",), once=True)
    web = ManagedProcess(name="web", launch=shell(script.format("web", order)), needs=("prepare",))

    def both_trap(parts: Parts) -> bool:
        time.sleep(0.3)  # no status shows when a shell has set its trap
        return ready("server", "web")(parts)

    Run(server, step, web, until=both_trap)
    assert order.read_text().split() == ["web", "server"]


@pytest.mark.bar
def test_a_process_that_ignores_signals_is_killed_with_its_children() -> None:
    stubborn = ManagedProcess(
        name="stubborn",
        launch=shell("trap '' TERM; sleep 61 & sleep 62 & echo up; wait; sleep 63"),
        stop_within_s=0.3,
    )
    run = Run(stubborn, until=ready("stubborn"))
    assert run.lasted < 5
    assert_gone("61", "62", "63")


def test_children_of_a_part_are_killed_when_the_part_ends() -> None:
    run = Run(ManagedProcess(name="leaver", launch=shell("sleep 64 & exit 0")), until=restarted("leaver", 1))
    assert "with code 0" in run.log
    assert_gone("64")


def test_parts_that_need_each_other_are_refused() -> None:
    log = Log([], mask=Mask(), stream=io.StringIO())
    with pytest.raises(ServerError, match="circle"):
        Supervisor([sleeping("one", needs=("two",)), sleeping("two", needs=("one",))], log=log)
    with pytest.raises(ServerError, match="do not exist: nobody"):
        Supervisor([sleeping("one", needs=("nobody",))], log=log)


def test_the_log_hides_secrets_and_noise_and_control_codes() -> None:
    script = (
        "echo token a-known-secret; echo redis://:pass-word@localhost:1/0; echo dull line;"
        "printf 'red\\033[31mtext\\n'; printf 'no end of line'; exec sleep 60"
    )
    part = ManagedProcess(name="web", launch=shell(script), noise=re.compile("^dull"), stop_within_s=1)

    def has_printed(parts: Parts) -> bool:
        time.sleep(0.3)  # the output arrives after the status
        return ready("web")(parts)

    log = Run(part, until=has_printed).log
    assert "a-known-secret" not in log
    assert "pass-word" not in log
    assert "dull" not in log
    assert "redtext" in log
    assert "no end of line" in log


SCRIPT = """
import sys
from config.supervisor.launch import Launch
from config.supervisor.log import Log, Mask
from config.supervisor.managed_process import ManagedProcess
from config.supervisor.run_folder import mark
from config.supervisor.supervisor import Supervisor
from pathlib import Path
launch = Launch(argv=("/bin/sh", "-c", sys.argv[2]), env={"PATH": "/bin:/usr/bin", **mark(Path(sys.argv[1]))})
Supervisor(
    [ManagedProcess(name="part", launch=lambda: launch)],
    log=Log(["part"], mask=Mask()),
    on_ready=lambda: print("ready", flush=True),
).run()
"""


def start_supervisor(folder: Path, script: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SCRIPT, str(folder), script]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    while b"ready" not in process.stdout.readline():
        assert process.poll() is None
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_ends_everything(tmp_path: Path, number: signal.Signals) -> None:
    with start_supervisor(tmp_path, "exec sleep 60") as supervisor:
        assert len(find_orphans(tmp_path)) == 1
        supervisor.send_signal(number)
        assert supervisor.wait(10) == 0
    assert find_orphans(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a child whose parent has died")
def test_a_killed_supervisor_leaves_no_part(tmp_path: Path) -> None:
    with start_supervisor(tmp_path, "exec sleep 60") as supervisor:
        orphans = find_orphans(tmp_path)
        supervisor.kill()
    assert psutil.wait_procs(orphans, timeout=5)[1] == []


def test_orphans_of_a_killed_supervisor_are_found_and_ended(tmp_path: Path) -> None:
    # The shell ends with its parent; a child in a session of its own does not.
    with start_supervisor(tmp_path, "setsid sleep 60 & wait") as supervisor:
        supervisor.kill()
    orphans = find_orphans(tmp_path)
    assert orphans
    end_orphans(orphans)
    assert find_orphans(tmp_path) == []


def test_orphans_of_another_installation_are_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "60"], env=mark(tmp_path / "other")) as process:
        assert [orphan.pid for orphan in find_orphans(tmp_path / "other")] == [process.pid]
        assert find_orphans(tmp_path / "mine") == []
        process.kill()
