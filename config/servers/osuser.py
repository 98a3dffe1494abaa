"""The user that PostgreSQL runs as where Arbor runs as root, which PostgreSQL refuses, and the access of this user to files."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

from arbor.errors import ServerError
from config.supervisor.launch import OsUser

#: The user that root creates on first use; it owns the files of the database and nothing else.
SERVER_USER = "arbor_postgres"

_OTHERS_READ = stat.S_IROTH
_OTHERS_TRAVERSE = stat.S_IXOTH


def server_user() -> OsUser | None:
    """Return the user that PostgreSQL has to run as under root; None: the current user."""
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
            f"PostgreSQL cannot run as root and there is no useradd to create the user {SERVER_USER}: "
            f"create that user, start Arbor as another user, or set DATABASE_URL"
        )
    command = [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_USER]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (fixed words)
    # Of two concurrent first starts, the second fails to create the user, but finds it.
    try:
        return pwd.getpwnam(SERVER_USER)
    except KeyError:
        raise ServerError(f"the user {SERVER_USER} cannot be created: {result.stderr.strip()}") from None


def allow_traversal(path: Path, user: OsUser) -> list[Path]:
    """Allow the user to traverse every folder above `path`; return the folders whose mode was changed.

    Only traversal is allowed (o+x), never listing or reading.
    """
    opened = []
    for folder in path.resolve().parents:
        status = folder.stat()
        is_accessible = status.st_uid == user.uid and status.st_mode & stat.S_IXUSR
        if not is_accessible and not status.st_mode & _OTHERS_TRAVERSE:
            folder.chmod(stat.S_IMODE(status.st_mode) | _OTHERS_TRAVERSE)
            opened.append(folder)
    return opened


def allow_reading(folder: Path) -> None:
    """Allow everybody to read the files of a package that was installed under a strict umask."""
    for directory, _folders, files in os.walk(folder):
        Path(directory).chmod(stat.S_IMODE(Path(directory).stat().st_mode) | _OTHERS_READ | _OTHERS_TRAVERSE)
        for name in files:
            file = Path(directory, name)
            mode = stat.S_IMODE(file.stat().st_mode)
            traverse = _OTHERS_TRAVERSE if mode & stat.S_IXUSR else 0
            file.chmod(mode | _OTHERS_READ | traverse)
