"""The master keys of this installation, and the secrets that are derived from them while it runs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from django.conf import settings

from arbor.errors import ConfigurationInvalid
from arbor.sealing import SESSION_PURPOSE, MasterKeys, derive_secret


def master_keys() -> MasterKeys:
    """Return the master keys as they are now. Raises ConfigurationInvalid without one."""
    keys: MasterKeys | None = settings.ARBOR_MASTER_KEYS.read()
    if keys is None:
        raise ConfigurationInvalid(
            "there is no master key, under which secrets are sealed: set ARBOR_MASTER_KEY (create one with:"
            " openssl rand -base64 32), or start once with `arbor up`, which creates one"
        )
    return keys


def session_secrets() -> tuple[str, ...]:
    """Return the secrets of sessions: the first one signs, all of them verify."""
    keys: MasterKeys | None = settings.ARBOR_MASTER_KEYS.read() if settings.ARBOR_SESSIONS_DERIVED else None
    if keys is None:
        return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(derive_secret(key, SESSION_PURPOSE).hex() for key in keys.opening)


def role_passwords(role: str) -> tuple[str, ...]:
    """Return the passwords that a role of the database may have, besides the one of its address.

    One for each open key where they are derived from the master key. A process that was not given the master key reads the
    password that the last rotation stored, if there was one.
    """
    purpose: str | None = settings.ARBOR_DERIVED_ROLES.get(role)
    keys: MasterKeys | None = settings.ARBOR_MASTER_KEYS.read() if purpose else None
    if purpose is not None and keys is not None:
        return tuple(derive_secret(key, purpose).hex() for key in keys.opening)
    stored: Path = settings.ARBOR_ROTATED_PASSWORDS / role
    try:
        return (stored.read_text(encoding="utf-8").strip(),)
    except OSError:
        # Never rotated, or another user's files: the password of the address applies.
        return ()


def store_role_password(role: str, password: str) -> None:
    """Store a role's new password for the processes that were not given the master key, where secrets are in files."""
    folder: Path = settings.ARBOR_ROTATED_PASSWORDS
    if not folder.parent.exists():
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(prefix=f".{role}.", dir=folder)  # mode 0600
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(password + "\n")
        file.flush()
        # After a power cut no role may have a password whose file is empty.
        os.fsync(file.fileno())
    Path(unfinished).replace(folder / role)
