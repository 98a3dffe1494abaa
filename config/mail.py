"""The mail server of an installation as settings of Django."""

from __future__ import annotations

from email.utils import parseaddr
from typing import Any

from arbor.errors import ConfigurationInvalid

#: The longest time-out of an exchange with the server; the ten exchanges of a mail must end within its worker's lease.
_LONGEST_TIMEOUT_S = 30.0
_TLS_OPTIONS: dict[str, dict[str, bool]] = {
    "starttls": {"use_tls": True},
    "tls": {"use_ssl": True},
    "none": {},
}


def mailers(
    *, host: str, port: int, user: str, password: str, security: str, timeout_s: float, sender: str
) -> dict[str, dict[str, Any]]:
    """Return Django's MAILERS: one, or none without a host. Raises ConfigurationInvalid for an impossible value."""
    if not host:
        return {}
    if security not in _TLS_OPTIONS:
        raise ConfigurationInvalid(
            f"ARBOR_EMAIL_SECURITY must be one of {', '.join(_TLS_OPTIONS)}; got {security!r}"
        )
    if not 0 < timeout_s <= _LONGEST_TIMEOUT_S:
        raise ConfigurationInvalid(
            f"ARBOR_EMAIL_TIMEOUT_S must be above 0 and at most {_LONGEST_TIMEOUT_S:g}, got {timeout_s:g}"
        )
    if "@" not in sender or parseaddr(sender)[1] != sender:
        raise ConfigurationInvalid(
            f"ARBOR_EMAIL_FROM must be an email address without a name, got {sender!r}"
        )
    if not (user + password).isascii():
        # Python's SMTP client sends nothing else.
        raise ConfigurationInvalid("ARBOR_EMAIL_USER and ARBOR_EMAIL_PASSWORD must be ASCII")
    options = {"host": host, "timeout": timeout_s, **_TLS_OPTIONS[security]}
    if port:
        options["port"] = port
    if user:
        options |= {"username": user, "password": password}
    return {"default": {"OPTIONS": options}}
