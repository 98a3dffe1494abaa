"""The fork server over real processes: forks, restarts, and their end with the supervisor."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from config.supervisor.fork_server import ForkServer
from config.supervisor.launch import Launch
from config.supervisor.managed_process import ManagedProcess
from config.supervisor.run_folder import find_orphans

ROOT = Path(__file__).parents[3]


class ForkServerPart:
    """A fork server as a part of a supervisor, in a process of its own."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.fork_server = ForkServer(env)

    def managed_process(self) -> ManagedProcess:
        return ManagedProcess(
            name="fork-server",
            launch=lambda: Launch(
                argv=(
                    sys.executable,
                    "-m",
                    "config.cli.installation.fork_server",
                    str(self.fork_server.descriptor),
                ),
                env=self.env,
                cwd=ROOT,
                inherited=(self.fork_server.descriptor,),
            ),
            prepare=self.fork_server.prepare,
            ready=self.fork_server.is_ready,
            essential=True,
        )


FORK_SERVER_SCRIPT = """
import os, sys
from pathlib import Path
from config.supervisor.launch import Launch
from config.supervisor.log import Log, Mask
from config.supervisor.managed_process import ManagedProcess
from config.supervisor.run_folder import mark
from config.supervisor.supervisor import Supervisor
from tests.integration.processes.test_fork_server import ForkServerPart
folder = Path(sys.argv[1])
env = {**os.environ, "ONLY_BEFORE": "yes", **mark(folder)}
fork_server_part = ForkServerPart(env)
arguments = tuple(sys.argv[2:])
launch = Launch(
    argv=("/bin/false",),
    arbor_arguments=arguments,
    env={**{name: value for name, value in env.items() if name != "ONLY_BEFORE"}, "ONLY_AFTER": "yes"},
    cwd=folder,
)
parts = [fork_server_part.managed_process(), ManagedProcess(name="part", launch=lambda: launch, needs=("fork-server",))]
reported = []

def report_changes(states):
    part = {state["name"]: state for state in states}["part"]
    if part["restarts"] == 1 and not reported:
        reported.append(1)
        print("restarted", flush=True)

Supervisor(
    parts,
    log=Log(["fork-server", "part"], mask=Mask()),
    on_change=report_changes,
    fork_server=fork_server_part.fork_server,
).run()
"""


@pytest.fixture
def start_forked(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts a supervisor whose part is a forked `arbor` command."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", FORK_SERVER_SCRIPT, str(tmp_path), *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    output = ""
    while text not in output:
        line = process.stdout.readline()
        assert line, f"the process ended without printing {text!r}:\n{output}"
        output += line
    return output


def pid_of_part(supervisor: subprocess.Popen[str]) -> int:
    """Return the process id of the supervisor's child that is not the fork server."""
    children = psutil.Process(supervisor.pid).children()
    return next(
        child.pid
        for child in children
        if "config.cli.installation.fork_server" not in " ".join(child.cmdline())
    )


@pytest.mark.skipif(not ForkServer.is_possible(), reason="only Linux lets a supervisor adopt a process")
class TestForkServer:
    UP = "import time; print('up', flush=True); time.sleep(60)"

    def test_a_killed_fork_is_restarted_as_the_supervisors_child(
        self, start_forked: Callable[..., subprocess.Popen[str]]
    ) -> None:
        supervisor = start_forked("manage", "shell", "-c", self.UP)
        read_until(supervisor, "part        | up")
        part = pid_of_part(supervisor)
        assert os.getsid(part) == part
        os.kill(part, signal.SIGKILL)
        assert "by signal SIGKILL" in read_until(supervisor, "restarted")

    def test_a_fork_has_its_own_environment_folder_and_title(
        self, start_forked: Callable[..., subprocess.Popen[str]], tmp_path: Path
    ) -> None:
        code = (
            "import os, sys, time; print(os.environ.get('ONLY_BEFORE'), os.environ.get('ONLY_AFTER'), os.getcwd());"
            "print(open('/proc/self/cmdline').read().replace(chr(0), ' ')); print('end of report', flush=True); time.sleep(60)"
        )
        output = read_until(start_forked("manage", "shell", "-c", code), "| end of report")
        assert f"None yes {tmp_path}" in output
        assert "arbor manage shell" in output

    def test_the_exit_code_of_a_fork_is_logged(
        self, start_forked: Callable[..., subprocess.Popen[str]]
    ) -> None:
        output = read_until(start_forked("manage", "shell", "-c", "raise SystemExit(7)"), "restarted")
        assert "with code 7" in output

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_all_processes_end_with_the_supervisor(
        self, start_forked: Callable[..., subprocess.Popen[str]], tmp_path: Path, number: signal.Signals
    ) -> None:
        supervisor = start_forked("manage", "shell", "-c", self.UP)
        read_until(supervisor, "part        | up")
        running = find_orphans(tmp_path)
        assert len(running) == 2
        supervisor.send_signal(number)
        assert psutil.wait_procs(running, timeout=10)[1] == []


FAILING_SCRIPT = """
from arbor.errors import ServerError
from config.supervisor.fork_server import ForkServer
from config.supervisor.launch import Launch
from config.supervisor.log import Log, Mask
from config.supervisor.managed_process import ManagedProcess
from config.supervisor.supervisor import Supervisor
server = ForkServer({})
part = ManagedProcess(
    name="fork-server",
    launch=lambda: Launch(argv=("/bin/false",)),
    prepare=server.prepare,
    ready=server.is_ready,
    essential=True,
)
try:
    Supervisor([part], log=Log(["fork-server"], mask=Mask()), fork_server=server).run()
except ServerError as error:
    print(error)
"""


def test_a_fork_server_that_cannot_start_is_named() -> None:
    command = [sys.executable, "-c", FAILING_SCRIPT]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.fullmatch(r"fork-server ended after \d+ s with code 1\n", ran.stdout)
    assert ran.stderr == ""


LATE_SCRIPT = """
import json, os, signal, socket, time
from config.cli.installation.fork_server import serve
from config.supervisor.fork_server import READY, ForkServer

class LeftChannel(socket.socket):
    def send(self, data):
        if data != READY:
            raise BrokenPipeError("the supervisor does not wait any longer")
        return super().send(data)

ForkServer({}).adopt_orphans()
own, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
# A signal that is ignored, so that the fork does not end because this process, its parent, ends.
request = {"parent": os.getpid(), "orphan_signal": signal.SIGURG}
socket.send_fds(own, [json.dumps(request).encode()], [1])
serve(LeftChannel(fileno=server.detach()))
time.sleep(1)
print("the part runs twice")
"""


def test_a_fork_that_comes_too_late_ends() -> None:
    command = [sys.executable, "-c", LATE_SCRIPT]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
