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
#: It makes real virtual environments of this Python, whichever interpreter it is asked for, and notes which that was.
UV = """#!/bin/sh
printf '%s\\n' "$*" >> "{folder}/uv.log"
case "$1 $2" in
    "python list") cat "{folder}/listed" 2>/dev/null; exit 0 ;;
    "python find") exit 1 ;;
    "venv "*) for last; do :; done; exec "{python}" -m venv --without-pip "$last" ;;
esac
"""
#: A Python that answers `config/interpreter.py` as it is made to, and nothing else.
PYTHON = """#!/bin/sh
case "$*" in
    *config/interpreter.py) printf '{minor}\\t{grade}\\t{summary}\\t%s\\n' "$0" ;;
    *) exit 1 ;;
esac
"""
SYSTEM = ":/usr/bin:/usr/local/bin"
TOOLS = ("awk", "cat", "chmod", "cksum", "dirname", "rm", "sed", "sh", "touch")
SUMMARIES = {0: "the fastest", 1: "with PGO", 2: "the slowest"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A clone of the project, a home, and a PATH of its own."""

    clone: Path
    home: Path
    bin: Path

    def run(self) -> str:
        """Run set-up; return what it said."""
        ran = subprocess.run(
            ["sh", "scripts/setup.sh"],
            cwd=self.clone,
            env={"HOME": str(self.home), "PATH": str(self.bin)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ran.stderr == ""
        return ran.stdout

    def chosen(self) -> list[str]:
        """Return the interpreters that environments were made with, in order."""
        log = (self.clone.parent / "uv.log").read_text().splitlines()
        asked = [line.partition(" --python ")[2] for line in log if line.startswith("venv ")]
        return [line.removesuffix(f" {self.clone}/.venv") for line in asked]

    def change_lock(self) -> None:
        """Give set-up something to do."""
        with (self.clone / "requirements.lock").open("a") as lock:
            lock.write("#\n")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "a folder"
    made = Place(clone=folder / "the clone", home=folder / "home", bin=folder / "bin")
    for path in (made.clone / "scripts", made.clone / "config", made.home, made.bin):
        path.mkdir(parents=True)
    # This machine's own interpreters play no part.
    script = (ROOT / "scripts" / "setup.sh").read_text()
    assert script.count(SYSTEM) == 1
    (made.clone / "scripts" / "setup.sh").write_text(script.replace(SYSTEM, ""))
    for tool in TOOLS:
        (made.bin / tool).symlink_to(shutil.which(tool) or tool)
    shutil.copy(ROOT / "config" / "interpreter.py", made.clone / "config")
    for package in ("arbor", "apps", "workers", "bench"):
        (made.clone / package).mkdir()
    (made.clone / "requirements.lock").touch()
    write(made.bin / "uv", UV.format(folder=folder, python=sys.executable))
    return made


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def python(path: Path, grade: int, *, minor: str = "3.13") -> Path:
    return write(path, PYTHON.format(minor=minor, grade=grade, summary=SUMMARIES[grade]))


def on_path(place: Place, grade: int) -> Path:
    return python(place.bin / "python3.13", grade)


def of_pyenv(place: Place, grade: int) -> Path:
    return python(place.home / ".pyenv/versions/3.13.9/bin/python3.13", grade)


def of_uv(place: Place, grade: int) -> Path:
    made = python(place.home / "uv's own/cpython-3.13.9/bin/python3.13", grade)
    alias = f"cpython-3.13-linux    {place.home}/absent -> elsewhere\n"
    (place.clone.parent / "listed").write_text(f"cpython-3.13.9-linux    {made}\n{alias}")
    return made


@pytest.mark.parametrize("best", [of_uv, on_path, of_pyenv])
def test_the_fastest_build_is_chosen_wherever_it_is(place: Place, best: Callable[[Place, int], Path]) -> None:
    for made in (of_uv, on_path, of_pyenv):
        made(place, 2)
    for grade in (1, 0):
        shutil.rmtree(place.clone / ".venv", ignore_errors=True)
        path = best(place, grade)
        assert f"making .venv with {path}: {SUMMARIES[grade]}" in place.run()
        assert place.chosen()[-1] == str(path)


def test_of_equal_builds_the_first_is_chosen(place: Place) -> None:
    first = of_uv(place, 1)
    on_path(place, 1)
    of_pyenv(place, 1)
    place.run()
    assert place.chosen() == [str(first)]


def test_a_slow_build_is_better_than_none(place: Place) -> None:
    only = of_pyenv(place, 2)
    said = place.run().splitlines()
    assert [line for line in said if "making" in line] == [
        f"\033[2m· making .venv with {only}: the slowest\033[0m"
    ]
    assert place.chosen() == [str(only)]


def test_other_versions_and_shims_that_fail_are_passed_over(place: Place) -> None:
    python(place.bin / "python3", 0, minor="3.12")
    write(place.bin / "python3.13", "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n")
    wanted = of_pyenv(place, 2)
    place.run()
    assert place.chosen() == [str(wanted)]


def test_uv_downloads_one_where_there_is_none(place: Place) -> None:
    assert "Python 3.13 that uv downloads" in place.run()
    assert place.chosen() == ["3.13"]


def test_a_second_run_does_nothing(place: Place) -> None:
    on_path(place, 0)
    place.run()
    log = (place.clone.parent / "uv.log").read_text()
    assert place.run() == ""
    assert (place.clone.parent / "uv.log").read_text() == log


def test_an_environment_of_a_slower_build_stays_and_the_faster_one_is_named(place: Place) -> None:
    on_path(place, 1)
    place.run()
    own = place.clone / ".venv/bin/python"
    real = own.rename(own.with_name("real"))
    write(
        own, PYTHON.format(minor="3.13", grade=1, summary="with PGO").replace("exit 1", f'exec "{real}" "$@"')
    )
    mark = place.clone / ".venv/mark"
    mark.touch()
    place.change_lock()
    assert "faster" not in place.run()
    faster = of_pyenv(place, 0)
    place.change_lock()
    assert f"{faster} is a faster build than that of .venv" in place.run()
    assert mark.exists()
    assert len(place.chosen()) == 1


def test_an_environment_of_another_version_is_made_anew(place: Place) -> None:
    wanted = on_path(place, 2)
    place.run()
    (place.clone / ".venv/bin/python").unlink()
    python(place.clone / ".venv/bin/python", 0, minor="3.12")
    place.change_lock()
    assert "making .venv" in place.run()
    assert place.chosen() == [str(wanted), str(wanted)]
    assert os.access(place.clone / ".venv/bin/arbor", os.X_OK)
