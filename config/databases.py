"""A connection to the database as a setting of Django."""

from __future__ import annotations

from typing import Any

from arbor.errors import ConfigurationInvalid
from config.credentials import NO_SERVER
from config.environment import UNREADABLE_ADDRESS, data_dir, env

#: The options of connections that prepare a statement after three uses.
PREPARING = {"server_side_binding": True, "prepare_threshold": 3}


def database_config(url: str, *, prepared: bool, pool_size: int = 0) -> dict[str, Any]:
    """Return the configuration of one role's connections; `pool_size` 0: a persistent connection per thread, without a pool.

    Raises ConfigurationInvalid for an address that cannot be read.
    """
    try:
        config: dict[str, Any] = env.db_url_config(url, engine="apps.tenants.postgresql")
    except ValueError:
        # Without the cause, which may show a part of the password.
        raise ConfigurationInvalid(UNREADABLE_ADDRESS) from None
    if config["HOST"] == NO_SERVER:
        config["HOST"] = _missing_host()
    config["CONN_MAX_AGE"] = 0 if pool_size else None
    # Each connection is checked before its use, because a restart of the server closes all of them.
    config["CONN_HEALTH_CHECKS"] = True
    # Server-side cursors need a session; PgBouncer in transaction mode has none.
    config["DISABLE_SERVER_SIDE_CURSORS"] = True
    options = config.setdefault("OPTIONS", {})
    options.setdefault("connect_timeout", 5)
    if prepared:
        options |= PREPARING
    options.setdefault("application_name", env.str("ARBOR_PROCESS_NAME", default="arbor"))
    if pool_size:
        options["pool"] = {"min_size": min(2, pool_size), "max_size": pool_size, "timeout": 15}
    return config


def is_missing(config: dict[str, Any]) -> bool:
    """Return whether no database is configured."""
    return bool(config["HOST"] == _missing_host())


def _missing_host() -> str:
    """Return the host that means that no database is configured: a folder without a socket.

    Nothing listens there, while another server may listen on the usual ports.
    """
    return str(data_dir() / "run" / NO_SERVER)
