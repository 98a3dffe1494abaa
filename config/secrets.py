"""Secrets that Arbor generates on first start, and secrets in files."""

from __future__ import annotations

import base64
import os
import secrets
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from arbor.errors import ConfigurationInvalid

#: The folder in which container platforms mount secrets. They choose the mode, and no other user is there.
MOUNTED_SECRETS = Path("/run/secrets")

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
#: The characters of passwords that people type: no 0/o and 1/l/i. Four groups of four have 79 bits.
_READABLE = "abcdefghjkmnpqrstuvwxyz23456789"


class SecretName(StrEnum):
    """The files in the secrets folder."""

    #: The master key: secrets are sealed under it, and the passwords of the serving roles are derived from it.
    MASTER_KEY = "master_key"
    #: The password of the embedded PostgreSQL's superuser, which the supervisor alone uses.
    POSTGRES_PASSWORD = "postgres_password"  # noqa: S105 (a file's name)
    #: The password of the owner of the tables there, for migrations.
    POSTGRES_OWNER_PASSWORD = "postgres_owner_password"  # noqa: S105
    #: The password of the embedded Valkey.
    VALKEY_PASSWORD = "valkey_password"  # noqa: S105
    #: The first operator's password for the console and Flower.
    OPERATOR_PASSWORD = "operator_password"  # noqa: S105


def new_master_key() -> str:
    """Generate a master key, in base64."""
    return base64.b64encode(secrets.token_bytes(32)).decode("ascii")


def _machine_password() -> str:
    return secrets.token_urlsafe(32)


def _readable_password() -> str:
    letters = [secrets.choice(_READABLE) for _ in range(16)]
    return "-".join("".join(letters[start : start + 4]) for start in range(0, 16, 4))


_MAKERS: dict[SecretName, Callable[[], str]] = {
    SecretName.MASTER_KEY: new_master_key,
    SecretName.POSTGRES_PASSWORD: _machine_password,
    SecretName.POSTGRES_OWNER_PASSWORD: _machine_password,
    SecretName.VALKEY_PASSWORD: _machine_password,
    SecretName.OPERATOR_PASSWORD: _readable_password,
}


def read_secret(path: Path) -> str:
    """Return the secret in a file that only its owner can read, or that a container platform has mounted.

    Raises ConfigurationInvalid for a file that others can read and no platform has mounted, and for an empty or unreadable one.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS and MOUNTED_SECRETS not in path.resolve().parents:
            raise ConfigurationInvalid(
                f"{path} contains a secret and others may read it (mode {mode:04o}): run `chmod 600 {path}`"
            )
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationInvalid(f"the secret in {path} cannot be read: {reason}") from error
    if not text:
        raise ConfigurationInvalid(f"{path} must contain a secret, but is empty")
    return text


def write_unfinished(target: Path, text: str) -> Path:
    """Write a secret to a new hidden file beside its target, for the owner only, and return the file."""
    descriptor, unfinished = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    return Path(unfinished)


@dataclass(frozen=True, kw_only=True)
class SecretFolder:
    """The folder of the generated secrets: a file for each, which only its owner can read."""

    path: Path

    def file(self, name: SecretName) -> Path:
        """Return the path of a secret."""
        return self.path / name.value

    def read(self, name: SecretName) -> str | None:
        """Return the secret, or None when it has not been generated yet."""
        file = self.file(name)
        return read_secret(file) if file.exists() else None

    def ensure(self, name: SecretName) -> str:
        """Return the secret, generated now if missing. An existing secret is never replaced, even by concurrent starts."""
        existing = self.read(name)
        if existing is not None:
            return existing
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        unfinished = write_unfinished(self.file(name), _MAKERS[name]())
        try:
            # A link appears atomically, and never replaces another file.
            os.link(unfinished, self.file(name))
        except FileExistsError:
            return read_secret(self.file(name))
        finally:
            unfinished.unlink()
        return read_secret(self.file(name))
