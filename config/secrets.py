"""Secrets that Arbor makes for itself on first start, and secrets that come in files."""

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

#: Where container platforms mount secrets; they choose the mode, and nobody else lives there.
MOUNTED_SECRETS = Path("/run/secrets")

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
#: For people to read and type: no 0/o, 1/l/i, and groups of four; 80 bits.
_TYPEABLE = "abcdefghjkmnpqrstuvwxyz23456789"


class SecretName(StrEnum):
    """The files in the secrets folder."""

    #: Everything the application encrypts, signs or logs in with is derived from it.
    MASTER_KEY = "master_key"
    #: Opens the embedded PostgreSQL for its superuser and the owner of the tables.
    POSTGRES_PASSWORD = "postgres_password"  # noqa: S105 (a file's name)
    #: Opens the embedded Valkey.
    VALKEY_PASSWORD = "valkey_password"  # noqa: S105
    #: What the first operator signs in with, in the console and in Flower.
    OPERATOR_PASSWORD = "operator_password"  # noqa: S105


def _key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode("ascii")


def _machine_password() -> str:
    return secrets.token_urlsafe(32)


def _typed_password() -> str:
    letters = [secrets.choice(_TYPEABLE) for _ in range(16)]
    return "-".join("".join(letters[start : start + 4]) for start in range(0, 16, 4))


_MAKERS: dict[SecretName, Callable[[], str]] = {
    SecretName.MASTER_KEY: _key,
    SecretName.POSTGRES_PASSWORD: _machine_password,
    SecretName.VALKEY_PASSWORD: _machine_password,
    SecretName.OPERATOR_PASSWORD: _typed_password,
}


def read_secret(path: Path) -> str:
    """Return the secret in a file that nobody but its owner can read.

    Raises ConfigurationInvalid when others can, when the file is empty, or when it cannot be read.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS and MOUNTED_SECRETS not in path.resolve().parents:
            raise ConfigurationInvalid(
                f"{path} holds a secret and others may read it (mode {mode:04o}): run `chmod 600 {path}`"
            )
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationInvalid(f"the secret in {path} cannot be read: {reason}") from error
    if not text:
        raise ConfigurationInvalid(f"{path} should hold a secret but is empty")
    return text


@dataclass(frozen=True, kw_only=True)
class SecretFolder:
    """The folder of the secrets Arbor made: one file each, for the owner only."""

    path: Path

    def file(self, name: SecretName) -> Path:
        """Return where that secret rests."""
        return self.path / name.value

    def read(self, name: SecretName) -> str | None:
        """Return the secret, or None when it has not been made yet."""
        file = self.file(name)
        return read_secret(file) if file.exists() else None

    def ensure(self, name: SecretName) -> str:
        """Return the secret, made now if need be. One that exists is never replaced, whoever comes second."""
        found = self.read(name)
        if found is not None:
            return found
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        descriptor, unfinished = tempfile.mkstemp(prefix=f".{name.value}.", dir=self.path)  # mode 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(_MAKERS[name]() + "\n")
                file.flush()
                os.fsync(file.fileno())
            # A link appears whole or not at all, and never over another's.
            os.link(unfinished, self.file(name))
        except FileExistsError:
            return read_secret(self.file(name))
        finally:
            Path(unfinished).unlink()
        return read_secret(self.file(name))
