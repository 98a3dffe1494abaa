"""The master keys of this installation, and the secrets that are derived from them while it runs."""

from __future__ import annotations

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
    """Return the passwords that a role of the database may have, one for each open key; empty where none is derived."""
    purpose: str | None = settings.ARBOR_DERIVED_ROLES.get(role)
    keys: MasterKeys | None = settings.ARBOR_MASTER_KEYS.read() if purpose else None
    if purpose is None or keys is None:
        return ()
    return tuple(derive_secret(key, purpose).hex() for key in keys.opening)
