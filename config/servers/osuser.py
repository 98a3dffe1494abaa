"""PostgreSQL refuses to run as root, so root runs it as another user, who must be able to reach its files."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

from arbor.errors import ServerError
from config.supervisor.launch import OsUser

#: Made on first use when we are root; it owns the database's files and nothing else.
SERVER_USER = "arbor_postgres"

_OTHERS_READ = stat.S_IROTH
_OTHERS_PASS = stat.S_IXOTH


def server_user() -> OsUser | None:
    """Return the user PostgreSQL has to run as: None (ourselves) unless we are root."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(SERVER_USER)
    except KeyError:
        entry = _create_user()
    return OsUser(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def _create_user() -> pwd.struct_passwd:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        raise ServerError(
            f"PostgreSQL cannot run as root and there is no useradd to make the user {SERVER_USER}: "
            f"make that user, start Arbor as another user, or set DATABASE_URL"
        )
    command = [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_USER]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (fixed words)
    # Two first starts at once both come here; the second finds the user made.
    try:
        return pwd.getpwnam(SERVER_USER)
    except KeyError:
        raise ServerError(f"the user {SERVER_USER} cannot be made: {result.stderr.strip()}") from None


def let_pass(path: Path, user: OsUser) -> list[Path]:
    """Let the user walk through every folder above `path`; return those that had to be opened.

    Only the right to pass is given (o+x), never the right to list or read what is inside.
    """
    opened = []
    for folder in path.resolve().parents:
        status = folder.stat()
        owned = status.st_uid == user.uid and status.st_mode & stat.S_IXUSR
        if not owned and not status.st_mode & _OTHERS_PASS:
            folder.chmod(stat.S_IMODE(status.st_mode) | _OTHERS_PASS)
            opened.append(folder)
    return opened


def let_read(folder: Path) -> None:
    """Let everybody read the files of a package that was installed under a strict umask."""
    for directory, _folders, files in os.walk(folder):
        Path(directory).chmod(stat.S_IMODE(Path(directory).stat().st_mode) | _OTHERS_READ | _OTHERS_PASS)
        for name in files:
            file = Path(directory, name)
            mode = stat.S_IMODE(file.stat().st_mode)
            runs = _OTHERS_PASS if mode & stat.S_IXUSR else 0
            file.chmod(mode | _OTHERS_READ | runs)
