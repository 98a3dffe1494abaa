"""The recorded build configuration of the interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from config.cli.checks.finding import CheckVerdict
from config.cli.doctor import check_interpreter
from config.interpreter import Interpreter, read_build, this_interpreter

ROOT = Path(__file__).parents[3]
DOCKER = (
    "'--build=x86_64-linux-gnu' '--enable-optimizations' '--enable-shared' '--with-lto' '--with-ensurepip'"
)
PYENV = "'--prefix=/home/somebody/.pyenv/versions/3.13.0' '--enable-shared' 'LDFLAGS=-L/home/somebody/lib -Wl,-rpath,/home/somebody/lib'"
DEBIAN = "'--enable-shared' '--with-wheel-pkg-dir=/usr/share/python-wheels/' 'CFLAGS=-g '"


def options_of(config: dict[str, object], *, loaded: str | None = None) -> tuple[bool, bool, bool]:
    """Return whether a build has PGO, LTO and a shared library."""
    build = read_build("3.13.0", config.get, loaded=loaded)
    assert build.version == "3.13.0"
    return build.pgo, build.lto, build.shared


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"CONFIG_ARGS": DOCKER, "Py_ENABLE_SHARED": 1}, (True, True, True)),
        ({"CONFIG_ARGS": PYENV, "Py_ENABLE_SHARED": 1}, (False, False, True)),
        ({"CONFIG_ARGS": DEBIAN, "Py_ENABLE_SHARED": 1}, (True, False, True)),
        ({"CONFIG_ARGS": "'--enable-optimizations' '--with-lto=thin'"}, (True, True, False)),
        ({"CONFIG_ARGS": "'--enable-optimizations=no' '--with-lto=no'"}, (False, False, False)),
        ({"CONFIG_ARGS": "'--with-lto' '--with-lto=no'"}, (False, False, False)),
        ({"PY_CORE_CFLAGS": "-O3 -fprofile-use -fprofile-correction -flto=auto"}, (True, True, False)),
        ({"PY_CFLAGS": "-O3 -fprofile-instr-use=code.profclangd"}, (True, False, False)),
        ({"PY_CFLAGS": "-O3 -fno-lto -fprofile-generate"}, (False, False, False)),
        ({"CONFIG_ARGS": None}, (False, False, False)),
    ],
)
def test_a_build_is_read_from_its_configuration(
    config: dict[str, object], expected: tuple[bool, bool, bool]
) -> None:
    assert options_of(config) == expected


def test_an_executable_that_loads_no_libpython_is_static() -> None:
    config: dict[str, object] = {"CONFIG_ARGS": DOCKER, "Py_ENABLE_SHARED": 1}
    assert not options_of(config, loaded="7f00 /usr/lib/libc.so.6\n")[2]
    assert options_of(config, loaded="7f00 /usr/lib/libpython3.13.so.1.0\n")[2]


@pytest.mark.parametrize(
    ("pgo", "lto", "grade"), [(True, True, 0), (True, False, 1), (False, True, 2), (False, False, 2)]
)
def test_pgo_with_lto_is_preferred_to_pgo_and_pgo_to_the_rest(pgo: bool, lto: bool, grade: int) -> None:
    interpreter = Interpreter(version="3.13.0", pgo=pgo, lto=lto, shared=False)
    assert interpreter.grade == grade
    assert ("1.3 times" in interpreter.summary) is not pgo


def test_the_file_describes_the_interpreter_that_runs_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-I", "-S", str(ROOT / "config" / "interpreter.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    minor, grade, summary, executable = ran.stdout.rstrip("\n").split("\t")
    here = this_interpreter()
    assert (minor, int(grade), summary) == ("3.13", here.grade, here.summary)
    # The interpreter of the virtual environment.
    assert Path(executable).exists()
    assert not Path(executable).is_relative_to(ROOT)


def test_doctor_names_the_build() -> None:
    check = check_interpreter()
    assert (check.check, check.verdict, check.detail) == (
        "python",
        CheckVerdict.OK,
        this_interpreter().summary,
    )


def test_every_benchmark_names_the_interpreter_it_ran_on() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bench", "goals", "--rounds", "10", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    here = this_interpreter()
    assert json.loads(ran.stdout)["python"] == {
        "version": here.version,
        "pgo": here.pgo,
        "lto": here.lto,
        "shared": here.shared,
    }
