"""Sources of settings: the environment, `*_FILE` secrets, and the embedded servers of `arbor up`."""

from __future__ import annotations

import json
import math
import os
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote, urlsplit, urlunsplit

import environ

from arbor.errors import ConfigurationInvalid
from arbor.setting_lists import MAX_COUNT
from config.secrets import SecretFolder, read_secret

#: The folder of the code, with `.env` and, by default, the data.
BASE_DIR = Path(__file__).resolve().parent.parent

#: The texts of a switch.
_ON = frozenset({"true", "on", "ok", "y", "yes", "1"})
_OFF = frozenset({"false", "off", "n", "no", "0", ""})
#: What a value must be, by its type.
_KINDS: dict[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: f"a number below {MAX_COUNT:,}",
    dict: "NAME=VALUE, separated by commas",
}


#: Without the address, which may contain a password.
UNREADABLE_ADDRESS = (
    "the address of a database (DATABASE_URL, ARBOR_APP_DATABASE_URL…) cannot be read: its port must be a number, and"
    " special characters of its password must be escaped, as / by %2F"
)


class SettingsSource(environ.Env):  # type: ignore[misc]
    """The environment variables; a value of another kind raises ConfigurationInvalid, which names its setting."""

    def get_value(
        self, var: str, cast: Any = None, default: Any = environ.Env.NOTSET, parse_default: bool = False
    ) -> Any:
        """Return the value of a setting, or its default."""
        try:
            return super().get_value(var, cast=cast, default=default, parse_default=parse_default)
        except RecursionError as error:
            raise ConfigurationInvalid(
                f"{var} must not name itself: a value that begins with $ is the name of another variable"
            ) from error
        except (ValueError, TypeError) as error:
            # The values of a dictionary may be secret.
            got = f", got {self.ENVIRON.get(var, '')!r}" if cast in (bool, int, float) else ""
            raise ConfigurationInvalid(f"{var} must be {_KINDS.get(cast, 'readable')}{got}") from error

    @classmethod
    def parse_value(cls, value: str, cast: Any) -> Any:
        """Parse a value exactly: the library reads the number `5m` as 5, and a switch with an unknown word as false."""
        text = value.strip()
        if cast is bool:
            if text.lower() not in _ON | _OFF:
                raise ValueError(value)
            return text.lower() in _ON
        if cast is float:
            number = float(text)
            if not math.isfinite(number) or abs(number) >= MAX_COUNT:
                raise ValueError(value)
            return number
        if cast in (list, dict):
            parts = [part.strip() for part in value.split(",") if part.strip()]
            return parts if cast is list else dict(part.split("=", 1) for part in parts)
        return super().parse_value(value, cast)


env = SettingsSource()
#: The file with the settings of this machine; ARBOR_ENV_FILE names another file, or none if empty.
_ENV_FILE: str = env.str("ARBOR_ENV_FILE", default=str(BASE_DIR / ".env"))
if _ENV_FILE and Path(_ENV_FILE).exists():
    try:
        env.read_env(_ENV_FILE, overwrite=False)
    except UnicodeDecodeError as error:
        raise ConfigurationInvalid(f"{_ENV_FILE} must be a text in UTF-8: {error.reason}") from error


def whole_number(name: str, *, default: int, least: int, most: int) -> int:
    """Return the setting `name`; raise ConfigurationInvalid if it is outside the range."""
    value: int = env.int(name, default=default)
    if not least <= value <= most:
        raise ConfigurationInvalid(f"{name} must be {least} to {most}, got {value}")
    return value


def number(name: str, *, default: float, least: float, most: float, unit: str = "") -> float:
    """Return the setting `name`; raise ConfigurationInvalid if it is outside the range."""
    value: float = env.float(name, default=default)
    if not least <= value <= most:
        raise ConfigurationInvalid(f"{name} must be {least:g} to {most:g}{unit}, got {value:g}")
    return value


def seconds(name: str, *, default: float, least: float, most: float) -> timedelta:
    """Return the setting `name` as a length of time; raise ConfigurationInvalid if it is outside the range."""
    return timedelta(seconds=number(name, default=default, least=least, most=most, unit=" seconds"))


#: Set in the environment of a process that was given its own secrets. Such a process looks for no other secrets, not even in files.
OWN_SECRETS = "ARBOR_OWN_SECRETS"


def has_own_secrets() -> bool:
    """Return whether this process was given its own secrets, and must not look for others."""
    given: bool = env.bool(OWN_SECRETS, default=False)
    return given


def data_dir() -> Path:
    """Return the folder of all files of this installation."""
    return Path(env.str("ARBOR_DATA_DIR", default="") or BASE_DIR / ".arbor").resolve()


def secret_folder() -> SecretFolder:
    """Return the folder of the secrets that this installation has generated."""
    return SecretFolder(path=data_dir() / "secrets")


class ServerUrls(TypedDict, total=False):
    """The addresses that `arbor up` writes for its servers (`run/servers.json`), without passwords."""

    database_url: str
    broker_url: str
    web_url: str
    api_url: str
    flower_url: str


def secret(name: str) -> str:
    """Return a secret from `NAME`, or from the file that `NAME_FILE` points to; empty: neither is set."""
    # Not by `env`, for which a value that begins with "$" names another variable.
    value = os.environ.get(name, "")
    if value:
        return value
    path = secret_file(name)
    return "" if path is None else read_secret(path)


def secret_file(name: str) -> Path | None:
    """Return the file that `NAME_FILE` names, or None."""
    path: str = env.str(f"{name}_FILE", default="")
    return Path(path) if path else None


def server_urls(data_dir: Path) -> ServerUrls:
    """Return the addresses of the servers that `arbor up` runs from this data folder, or nothing."""
    path = data_dir / "run" / "servers.json"
    try:
        urls: ServerUrls = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationInvalid(f"{path} cannot be read ({error}); stop Arbor and delete it") from error
    return urls


def with_user(url: str, user: str, password: str) -> str:
    """Return the database URL with another role and password. Raises ConfigurationInvalid for one that cannot be read."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ConfigurationInvalid(UNREADABLE_ADDRESS) from None
    host = parts.netloc.rpartition("@")[2]
    credentials = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{credentials}@{host}"))
