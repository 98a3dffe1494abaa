"""Check the settings that name where the heads of chains are exported to."""

from __future__ import annotations

from pathlib import PurePath
from urllib.parse import urlsplit

from arbor.errors import ConfigurationInvalid


def check_heads_targets(*, file: str, url: str, allow_http: bool) -> None:
    """Raise ConfigurationInvalid unless both are empty or usable: an absolute path, an https URL without a user or password."""
    if file and not PurePath(file).is_absolute():
        raise ConfigurationInvalid(
            f"ARBOR_AUDIT_HEADS_FILE must be empty or an absolute path, such as /mnt/worm/arbor-heads.jsonl, got {file!r}"
        )
    if not url:
        return
    try:
        parts = urlsplit(url)
        is_readable = parts.port != 0
    except ValueError:
        # Such as an IPv6 address without its end, or a port that is no number.
        parts, is_readable = urlsplit(""), False
    schemes = ("https", "http") if allow_http else ("https",)
    # The URL is not quoted: its path and query may be secret.
    if (
        not is_readable
        or parts.scheme not in schemes
        or not parts.hostname
        or parts.username
        or parts.password
    ):
        raise ConfigurationInvalid(
            f"ARBOR_AUDIT_HEADS_URL must be empty or begin with {' or '.join(f'{scheme}://' for scheme in schemes)} and a host, without a user or password"
            + ("" if allow_http else "; ARBOR_WEBHOOK_ALLOW_HTTP=true allows http")
        )
