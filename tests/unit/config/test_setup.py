"""`scripts/setup.sh` with fake interpreters and a fake uv, in a folder whose name has a space."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: A stub that creates virtual environments of this Python and logs the requested interpreter.
UV = """#!/bin/sh
printf '%s\\n' "$*" >> "{folder}/uv.log"
case "$1 $2" in
    "--version ") echo "uv {version}" ;;
    "python list") cat "{folder}/listed" 2>/dev/null; exit 0 ;;
    "python find") exit 1 ;;
    "venv "*) {before_venv}; for last; do :; done; exec "{python}" -m venv --without-pip "$last" ;;
esac
"""
#: A Python with scripted answers to `config/interpreter.py`.
PYTHON = """#!/bin/sh
case "$*" in
    *config/interpreter.py) printf '{minor}\\t{grade}\\t{summary}\\t%s\\n' "$0" ;;
    *) exit 1 ;;
esac
"""
#: A Python that can only install uv: too old to be chosen, with pip or without. Its pip installs the stub above.
BOOTSTRAP = """#!/bin/sh
case "$*" in
    -c*) exit 0 ;;
    "-m pip --version") {pip} ;;
    "-m pip install "*"--target"*) printf '%s\n' "$PYTHONPATH" > "{folder}/pythonpath"; {install} ;;
    *) exit 1 ;;
esac
"""
#: The parts of the script that find the interpreters of the real machine.
SYSTEM = (":/usr/bin:/usr/local/bin", "/usr/bin/python3 /usr/local/bin/python3 ")
TOOLS = [
    "awk",
    "cat",
    "chmod",
    "cksum",
    "dirname",
    "ln",
    "mkdir",
    "readlink",
    "rm",
    "sed",
    "sh",
    "sleep",
    "touch",
    "uname",
]
SUMMARIES = {0: "the fastest", 1: "with PGO", 2: "the slowest"}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A clone of the project, a home, and a PATH of its own."""

    clone: Path
    home: Path
    bin: Path

    def start(self) -> subprocess.Popen[str]:
        """Start setup."""
        return subprocess.Popen(
            ["sh", "scripts/setup.sh"],
            cwd=self.clone,
            env={"HOME": str(self.home), "PATH": str(self.bin)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self) -> str:
        """Run setup; return its output."""
        ran = self.start()
        output, errors = ran.communicate()
        assert ran.returncode == 0, output + errors
        assert errors == ""
        return output

    def fail(self) -> str:
        """Run setup, which must fail; return the last line of its errors."""
        ran = self.start()
        output, errors = ran.communicate()
        assert ran.returncode == 1, output + errors
        assert not (self.clone / ".tools/setup.lock").is_symlink()
        return errors.splitlines()[-1]

    def chosen(self) -> list[str]:
        """Return the interpreters of the created environments, in order."""
        log = (self.clone.parent / "uv.log").read_text().splitlines()
        arguments = [line.partition(" --python ")[2] for line in log if line.startswith("venv ")]
        return [line.removesuffix(f" {self.clone}/.venv") for line in arguments]

    def change_lock(self) -> None:
        """Change the lock file, so that setup has work."""
        with (self.clone / "requirements.lock").open("a") as lock:
            lock.write("#\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    folder = tmp_path / "a folder"
    new = Machine(clone=folder / "the clone", home=folder / "home", bin=folder / "bin")
    for path in (new.clone / "scripts", new.clone / "config", new.home, new.bin):
        path.mkdir(parents=True)
    # Interpreters of the real machine must not be found.
    script = (ROOT / "scripts" / "setup.sh").read_text()
    for part in SYSTEM:
        assert script.count(part) == 1
        script = script.replace(part, "")
    (new.clone / "scripts" / "setup.sh").write_text(script)
    for tool in TOOLS:
        (new.bin / tool).symlink_to(shutil.which(tool) or tool)
    shutil.copy(ROOT / "config" / "interpreter.py", new.clone / "config")
    for package in ("arbor", "apps", "workers", "bench"):
        (new.clone / package).mkdir()
    (new.clone / "requirements.lock").touch()
    write(new.bin / "uv", stub_uv(folder))
    return new


def stub_uv(folder: Path, *, version: str = "0.13.9", before_venv: str = ":") -> str:
    return UV.format(folder=folder, python=sys.executable, version=version, before_venv=before_venv)


def bootstrap(machine: Machine, *, pip: bool, install: str | None = None) -> Path:
    """Write a Python without venv; its pip installs the stub of uv by default."""
    folder = machine.clone.parent
    stub = write(folder / "stub-uv", stub_uv(folder))
    installed = f'.tools/uv/bin && cp "{stub}" .tools/uv/bin/uv'
    (machine.bin / "cp").symlink_to(shutil.which("cp") or "cp")
    text = BOOTSTRAP.format(
        folder=folder, pip="exit 0" if pip else "exit 1", install=install or f"mkdir -p {installed}"
    )
    return write(machine.bin / "python3", text)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def python(path: Path, grade: int, *, minor: str = "3.13") -> Path:
    return write(path, PYTHON.format(minor=minor, grade=grade, summary=SUMMARIES[grade]))


def on_path(machine: Machine, grade: int) -> Path:
    return python(machine.bin / "python3.13", grade)


def of_pyenv(machine: Machine, grade: int) -> Path:
    return python(machine.home / ".pyenv/versions/3.13.9/bin/python3.13", grade)


def of_uv(machine: Machine, grade: int) -> Path:
    interpreter = python(machine.home / "uv's own/cpython-3.13.9/bin/python3.13", grade)
    alias = f"cpython-3.13-linux    {machine.home}/absent -> elsewhere\n"
    (machine.clone.parent / "listed").write_text(f"cpython-3.13.9-linux    {interpreter}\n{alias}")
    return interpreter


@pytest.mark.parametrize("best", [of_uv, on_path, of_pyenv])
def test_the_fastest_build_is_chosen_in_any_location(
    machine: Machine, best: Callable[[Machine, int], Path]
) -> None:
    for install in (of_uv, on_path, of_pyenv):
        install(machine, 2)
    for grade in (1, 0):
        shutil.rmtree(machine.clone / ".venv", ignore_errors=True)
        path = best(machine, grade)
        assert f"making .venv with {path}: {SUMMARIES[grade]}" in machine.run()
        assert machine.chosen()[-1] == str(path)


def test_of_equal_builds_the_first_is_chosen(machine: Machine) -> None:
    first = of_uv(machine, 1)
    on_path(machine, 1)
    of_pyenv(machine, 1)
    machine.run()
    assert machine.chosen() == [str(first)]


def test_a_slow_build_is_chosen_if_it_is_the_only_one(machine: Machine) -> None:
    only = of_pyenv(machine, 2)
    output = machine.run().splitlines()
    assert [line for line in output if "making" in line] == [
        f"\033[2m· making .venv with {only}: the slowest\033[0m"
    ]
    assert machine.chosen() == [str(only)]


def test_other_versions_and_failing_shims_are_ignored(machine: Machine) -> None:
    python(machine.bin / "python3", 0, minor="3.12")
    write(machine.bin / "python3.13", "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n")
    wanted = of_pyenv(machine, 2)
    machine.run()
    assert machine.chosen() == [str(wanted)]


def test_uv_downloads_a_missing_python(machine: Machine) -> None:
    assert "Python 3.13 that uv downloads" in machine.run()
    assert machine.chosen() == ["3.13"]


def test_a_second_run_does_nothing(machine: Machine) -> None:
    on_path(machine, 0)
    machine.run()
    log = (machine.clone.parent / "uv.log").read_text()
    assert machine.run() == ""
    assert (machine.clone.parent / "uv.log").read_text() == log


def test_an_existing_environment_stays_and_a_faster_build_is_named(machine: Machine) -> None:
    on_path(machine, 1)
    machine.run()
    own = machine.clone / ".venv/bin/python"
    real = own.rename(own.with_name("real"))
    write(
        own, PYTHON.format(minor="3.13", grade=1, summary="with PGO").replace("exit 1", f'exec "{real}" "$@"')
    )
    mark = machine.clone / ".venv/mark"
    mark.touch()
    machine.change_lock()
    assert "faster" not in machine.run()
    faster = of_pyenv(machine, 0)
    machine.change_lock()
    assert f"{faster} is a faster build than that of .venv" in machine.run()
    assert mark.exists()
    assert len(machine.chosen()) == 1


def test_an_environment_of_another_version_is_recreated(machine: Machine) -> None:
    wanted = on_path(machine, 2)
    machine.run()
    (machine.clone / ".venv/bin/python").unlink()
    python(machine.clone / ".venv/bin/python", 0, minor="3.12")
    machine.change_lock()
    assert "making .venv" in machine.run()
    assert machine.chosen() == [str(wanted), str(wanted)]
    assert os.access(machine.clone / ".venv/bin/arbor", os.X_OK)


@pytest.mark.parametrize("old", ["0.6.17", "does not run"])
def test_an_old_uv_on_the_path_is_ignored(machine: Machine, old: str) -> None:
    of_pyenv(machine, 0)
    bootstrap(machine, pip=True)
    write(machine.bin / "uv", f"#!/bin/sh\necho 'uv {old}'\n")
    output = machine.run()
    assert "installing uv into .tools/" in output
    assert "ready" in output
    machine.change_lock()
    assert "installing uv" not in machine.run()


def test_a_python_without_pip_uses_the_pip_of_debian(machine: Machine) -> None:
    of_pyenv(machine, 0)
    (machine.bin / "uv").unlink()
    bootstrap(machine, pip=False)
    write(
        machine.bin / "apt-get",
        "#!/bin/sh\n[ \"$*\" = '-qq download python3-pip-whl' ] && : > python3-pip-whl_1.deb\n",
    )
    write(
        machine.bin / "dpkg-deb",
        "#!/bin/sh\nmkdir -p usr/share/python-wheels\n: > usr/share/python-wheels/pip-1.whl\n",
    )
    assert "ready" in machine.run()
    wheel = f"{machine.clone}/.tools/pip/usr/share/python-wheels/pip-1.whl"
    assert (machine.clone.parent / "pythonpath").read_text().strip() == wheel


def test_without_any_python_setup_explains_how_to_install_one(machine: Machine) -> None:
    (machine.bin / "uv").unlink()
    output = machine.fail()
    assert "no Python from 3.9 on was found" in output
    assert "apt-get install python3 python3-venv" in output


def test_without_pip_setup_explains_how_to_install_it(machine: Machine) -> None:
    (machine.bin / "uv").unlink()
    interpreter = bootstrap(machine, pip=False)
    output = machine.fail()
    assert f"{interpreter} has neither venv nor pip" in output
    assert "apt-get install python3-venv" in output


def test_a_pip_that_fails_is_reported(machine: Machine) -> None:
    (machine.bin / "uv").unlink()
    bootstrap(machine, pip=True, install="echo 'no network' >&2; exit 1")
    output = machine.fail()
    assert "pip could not install uv: see the lines above" in output
    assert "install uv, and run this again" in output


def test_without_a_suitable_python_setup_names_what_to_install(machine: Machine) -> None:
    write(
        machine.bin / "uv",
        stub_uv(machine.clone.parent).replace('"venv "*)', '"venv "*) exit 2 ;; "never "*)'),
    )
    assert "no Python 3.13 was found, and none could be downloaded. Install one" in machine.fail()


def test_a_failed_install_is_reported_with_supported_platforms(machine: Machine) -> None:
    on_path(machine, 0)
    write(machine.bin / "uv", stub_uv(machine.clone.parent).replace("esac", '"pip sync") exit 2 ;;\nesac'))
    output = machine.fail()
    assert "the packages could not be installed" in output
    assert "macOS on Apple silicon" in output
    assert not (machine.clone / ".venv/.arbor-setup").exists()


def test_a_tools_folder_that_cannot_be_written_is_named(machine: Machine) -> None:
    (machine.clone / ".tools").touch()
    assert f"{machine.clone}/.tools is no folder that this user may write to" in machine.fail()


def test_concurrent_runs_of_setup_are_serialized(machine: Machine) -> None:
    on_path(machine, 0)
    signal = machine.clone.parent / "go on"
    wait = f'until [ -e "{signal}" ]; do sleep 0.05; done'
    write(machine.bin / "uv", stub_uv(machine.clone.parent, before_venv=wait))
    with machine.start() as first:
        assert first.stdout is not None
        assert "making .venv" in first.stdout.readline()
        with machine.start() as second:
            assert second.stdout is not None
            assert "is setting up: waiting for it" in second.stdout.readline()
            signal.touch()
            assert "ready" in first.stdout.read()
            assert "ready" not in second.stdout.read()
    assert (first.returncode, second.returncode) == (0, 0)
    assert len(machine.chosen()) == 1


def test_a_dead_lock_that_another_run_has_replaced_stays(machine: Machine) -> None:
    on_path(machine, 0)
    lock, ended = machine.clone / ".tools/setup.lock", subprocess.Popen(["true"])
    ended.wait()
    lock.parent.mkdir()
    lock.symlink_to(str(ended.pid))
    # After the first reading, another run replaces the lock; that run has ended after the third.
    readings, real = machine.clone.parent / "readings", (machine.bin / "readlink").resolve()
    (machine.bin / "readlink").unlink()
    script = (
        f'"{real}" "$1"; printf . >> "{readings}"; case $(cat "{readings}") in'
        f' .) rm "$1"; ln -s {os.getpid()} "$1" ;; ...) rm "$1" ;; esac'
    )
    write(machine.bin / "readlink", f"#!/bin/sh\n{script}\n")
    (machine.bin / "sleep").unlink()
    write(machine.bin / "sleep", "#!/bin/sh\n")
    assert f"process {os.getpid()} is setting up: waiting for it" in machine.run()


def test_the_lock_of_a_killed_run_is_reclaimed(machine: Machine) -> None:
    on_path(machine, 0)
    (machine.clone / ".tools").mkdir()
    ended = subprocess.Popen(["true"])
    ended.wait()
    (machine.clone / ".tools/setup.lock").symlink_to(str(ended.pid))
    assert "waiting" not in machine.run()
    assert not (machine.clone / ".tools/setup.lock").is_symlink()
