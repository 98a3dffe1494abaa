"""Addresses and keys of the model providers, in a value that never prints them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from arbor.errors import ConfigurationInvalid


@dataclass(frozen=True, kw_only=True, repr=False)
class Credentials:
    """Keys and addresses from the settings of the same names; an empty one is not configured."""

    openai_api_key: str = ""
    #: With `/v1`, as OpenAI's own libraries expect it.
    openai_base_url: str = ""
    openai_org_id: str = ""
    openai_project_id: str = ""
    openrouter_api_key: str = ""
    anthropic_api_key: str = ""
    anthropic_base_url: str = ""
    #: `host:port` or a URL, as Ollama itself expects it.
    ollama_host: str = ""

    def __post_init__(self) -> None:
        """Validate keys and addresses here, so that no later error quotes them."""
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name.endswith("_url") and value and not _is_http_url(value):
                raise ConfigurationInvalid(
                    f"{name.upper()} must be an http:// or https:// address with a host"
                )
            if not value.isascii() or any(not "!" <= character <= "~" for character in value):
                raise ConfigurationInvalid(
                    f"{name.upper()} must be printable ASCII without spaces or line breaks"
                )

        try:
            ollama_base_url(self.ollama_host)
        except ValueError as exc:
            raise ConfigurationInvalid("OLLAMA_HOST must be host:port or an http:// address") from exc

    def __repr__(self) -> str:
        given = [field.name for field in fields(self) if getattr(self, field.name)]
        return f"Credentials(given: {', '.join(given) or 'none'})"


def ollama_base_url(host: str) -> str:
    """Return the base URL of Ollama's OpenAI-compatible API for an OLLAMA_HOST."""
    parts = urlsplit(host if "://" in host else f"http://{host or '127.0.0.1'}")
    # 0.0.0.0 is where a server listens; it is reached on loopback.
    name = "127.0.0.1" if parts.hostname in (None, "", "0.0.0.0") else str(parts.hostname)  # noqa: S104
    port = parts.port or (443 if parts.scheme == "https" else 11434)
    name = f"[{name}]" if ":" in name else name
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{name}:{port}{path}/v1"


def _is_http_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
