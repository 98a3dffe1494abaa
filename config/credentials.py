"""Credentials of an installation by the names of their settings: set, generated, or derived from the master key."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from arbor.sealing import derive_secret
from config.environment import (
    ServerUrls,
    data_dir,
    env,
    has_own_secrets,
    secret,
    secret_folder,
    server_urls,
    with_user,
)
from config.keys import CURRENT, OTHER, KeySource
from config.secrets import SecretName

#: The environment variable with the names of secrets that the installation has and this process does not.
WITHHELD = "ARBOR_WITHHELD"
#: The host of the servers' addresses where `arbor up` does not run and no server is configured.
NO_SERVER = "not-running"
#: The owner of the tables in the embedded PostgreSQL.
EMBEDDED_OWNER = "arbor_owner"

_EPHEMERAL_KEY = secrets.token_bytes(32)


def withheld_names() -> frozenset[str]:
    """Return the names of secrets that the installation has and this process does not."""
    return frozenset(env.list(WITHHELD, default=[]))


def _generated(name: SecretName) -> str:
    return "" if has_own_secrets() else secret_folder().read(name) or ""


def derived_secret(purpose: str) -> str:
    """Return the secret of a purpose. Without a master key (static checks, `--help`) it is random, so access fails."""
    return derived_secrets(purpose)[0]


def derived_secrets(purpose: str) -> list[str]:
    """Return the secrets of a purpose under the open master keys, that of the current one first."""
    keys = KeySource.of_environment().read()
    return [derive_secret(key, purpose).hex() for key in (keys.opening if keys else (_EPHEMERAL_KEY,))]


def owner_url(servers: ServerUrls) -> str:
    """Return the address of the database: with the owner of its tables if this process has the owner's password, else as it is."""
    if url := secret("DATABASE_URL"):
        return url
    url = servers.get("database_url", f"postgres://arbor@{NO_SERVER}/arbor")
    password = _generated(SecretName.POSTGRES_OWNER_PASSWORD) if "database_url" in servers else ""
    return with_user(url, EMBEDDED_OWNER, password) if password else url


def role_urls(database_url: str) -> dict[str, str]:
    """Return the addresses of the database for the serving roles, by connection.

    A role whose password this process does not have is named without one, so that it cannot sign in.
    """
    roles = role_names()
    return {
        alias: url or with_user(database_url, roles[alias], _password(_PURPOSES[alias]))
        for alias, url in _given_urls().items()
    }


def _given_urls() -> dict[str, str]:
    return {
        "default": secret("ARBOR_APP_DATABASE_URL"),
        "ops": secret("ARBOR_OPS_DATABASE_URL"),
        "accounts": secret("ARBOR_ACCOUNTS_DATABASE_URL"),
    }


def derived_roles() -> dict[str, str]:
    """Return the purposes of the serving roles whose passwords this process derives from the master key, by role."""
    if has_own_secrets():
        return {}
    roles = role_names()
    return {roles[alias]: _PURPOSES[alias] for alias, url in _given_urls().items() if not url}


def role_names() -> dict[str, str]:
    """Return the names of the serving roles, by connection."""
    return {
        "default": env.str("ARBOR_APP_ROLE", default="arbor_app"),
        "ops": env.str("ARBOR_OPS_ROLE", default="arbor_ops"),
        "accounts": env.str("ARBOR_ACCOUNTS_ROLE", default="arbor_accounts"),
    }


_PURPOSES = {
    "default": "postgres-role-app",
    "ops": "postgres-role-ops",
    "accounts": "postgres-role-accounts",
}


def _password(purpose: str) -> str:
    return "" if has_own_secrets() else derived_secret(purpose)


def rotated_passwords_folder() -> Path:
    """Return the folder with the passwords of roles since the last rotation of the master key."""
    return secret_folder().path / "roles"


def broker_url(servers: ServerUrls) -> str:
    """Return the address of the broker, with its password."""
    url = secret("CELERY_BROKER_URL") or secret("REDIS_URL")
    if url:
        return url
    if "broker_url" not in servers:
        return f"redis+socket://{data_dir() / 'run' / NO_SERVER}"
    parts = urlsplit(servers["broker_url"])
    password = quote(_generated(SecretName.VALKEY_PASSWORD), safe="")
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f":{password}@{host}" if password else parts.netloc))


def without_password(url: str) -> str:
    """Return an address without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


#: Secrets that the installation passes on only where they are set. Without them, SECRET_KEY is derived from the master key, and
#: `arbor up` and `arbor prepare` generate the operator's password; the others are then missing. Addresses and master keys that are not
#: set are derived or generated.
PASSED_ON_IF_SET = (
    "SECRET_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "ARBOR_METRICS_TOKEN",
    "ARBOR_EMAIL_PASSWORD",
    "ARBOR_OPERATOR_PASSWORD",
    "OTEL_EXPORTER_OTLP_HEADERS",
)


def installation_secrets(servers: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return every secret of the installation by the name of its setting; those that are not set are left out.

    `servers` are the addresses of embedded servers with their passwords; None: those of a running `arbor up`, if any.
    """
    urls: ServerUrls = server_urls(data_dir())
    found = {name: secret(name) for name in PASSED_ON_IF_SET}
    found |= _master_keys()
    found["DATABASE_URL"] = (servers or {}).get("database_url") or owner_url(urls)
    found["CELERY_BROKER_URL"] = (servers or {}).get("broker_url") or broker_url(urls)
    by_alias = role_urls(found["DATABASE_URL"])
    found["ARBOR_APP_DATABASE_URL"] = by_alias["default"]
    found["ARBOR_OPS_DATABASE_URL"] = by_alias["ops"]
    found["ARBOR_ACCOUNTS_DATABASE_URL"] = by_alias["accounts"]
    return {name: value for name, value in found.items() if value}


def _master_keys() -> dict[str, str]:
    """Return the master keys by their settings; for keys in a file the file's name, because a rotation changes the keys."""
    source = KeySource.of_environment()
    found = {CURRENT: source.current_text, OTHER: source.other_text}
    if source.file is not None and source.file.exists():
        found[f"{CURRENT}_FILE"] = str(source.file)
    return found
