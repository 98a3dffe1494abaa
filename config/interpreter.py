"""The Python interpreter: its version and its build.

`scripts/setup.sh` runs this file with every Python that it finds, so it imports only the standard library. Older versions
fail on its syntax, which is intended.
"""

from __future__ import annotations

import platform
import shlex
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

#: The speed of a static build with PGO relative to a shared build without, for mixed pure-Python work (docs/how-to/operate.md).
SPEED_UP = 1.3
#: The configuration variables with the compiler and linker flags of a build.
_FLAGS = ("PY_CFLAGS", "PY_CORE_CFLAGS", "PY_LDFLAGS", "PY_CORE_LDFLAGS")
_PGO_FLAGS = ("-fprofile-use", "-fprofile-instr-use")
#: Debian and Ubuntu build with PGO by a target of make, of which the configuration records only this option.
_DEBIAN = "--with-wheel-pkg-dir=/usr/share/python-wheels"
_MAPS = Path("/proc/self/maps")

type ConfigVar = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """The properties of an interpreter that its speed depends on."""

    version: str
    #: Whether it was built with profile-guided optimization.
    pgo: bool
    #: Whether it was built with link-time optimization.
    lto: bool
    #: Whether the executable loads libpython as a shared library, which makes calls slower.
    shared: bool

    @property
    def grade(self) -> int:
        """The rank of the build: 0 with PGO and LTO, 1 with PGO, else 2; the lowest is preferred."""
        if not self.pgo:
            return 2
        return 0 if self.lto else 1

    def __str__(self) -> str:
        built = f"{'with' if self.pgo else 'without'} PGO, {'with' if self.lto else 'without'} LTO"
        return f"Python {self.version} built {built}, {'shared' if self.shared else 'static'}"

    @property
    def summary(self) -> str:
        """The build in words, with the gain of an optimized one."""
        remark = "" if self.pgo else f"; an optimized build is about {SPEED_UP} times as fast"
        return f"{self}{remark}"


def this_interpreter() -> Interpreter:
    """Return the interpreter that runs this code."""
    return read_build(platform.python_version(), sysconfig.get_config_var, loaded=_read_maps())


def read_build(version: str, config_var: ConfigVar, *, loaded: str | None = None) -> Interpreter:
    """Read the build of an interpreter from its recorded configuration.

    `loaded` lists the files that its process has mapped, where the system provides them: some distributors configure with
    --enable-shared, but link the executable statically.
    """
    arguments = shlex.split(str(config_var("CONFIG_ARGS") or ""))
    flags = [flag for name in _FLAGS for flag in str(config_var(name) or "").split()]
    debian = any(argument.startswith(_DEBIAN) for argument in arguments)
    return Interpreter(
        version=version,
        pgo=_enabled(arguments, "--enable-optimizations")
        or debian
        or any(flag.startswith(_PGO_FLAGS) for flag in flags),
        lto=_enabled(arguments, "--with-lto") or any(flag.startswith("-flto") for flag in flags),
        shared=bool(config_var("Py_ENABLE_SHARED")) if loaded is None else "/libpython3" in loaded,
    )


def _enabled(arguments: list[str], option: str) -> bool:
    """Return whether configure was called with this option; the last mention counts."""
    values = [argument.partition("=")[2] for argument in arguments if argument.partition("=")[0] == option]
    return bool(values) and values[-1] != "no"


def _read_maps() -> str | None:
    try:
        return _MAPS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        # Not Linux, or not readable: the recorded configuration decides.
        return None


def main() -> int:
    """Print `MINOR<TAB>GRADE<TAB>DESCRIPTION<TAB>EXECUTABLE`; exit code 1 if the locked packages do not fit."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return 1
    interpreter = this_interpreter()
    # The base executable, because an active virtual environment may be about to be replaced.
    executable = getattr(sys, "_base_executable", None) or sys.executable
    minor = "{}.{}".format(*sys.version_info[:2])
    sys.stdout.write(f"{minor}\t{interpreter.grade}\t{interpreter.summary}\t{executable}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
