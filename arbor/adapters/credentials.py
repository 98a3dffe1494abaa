"""Addresses and keys of the model providers, in a value that never prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from types import MappingProxyType
from urllib.parse import urlsplit

from arbor.errors import ConfigurationInvalid
from arbor.models.handles import REFLEX_HANDLE, Provider
from arbor.models.slots import HOSTED_CALLS, SELF_HOSTED_CALLS, VLLM_CALLS

OPENAI_BASE_URL = "https://api.openai.com/v1"
_OPENAI_DOMAIN = "openai.com"
#: The model of a server at OPENAI_BASE_URL where no setting names one; llama.cpp accepts any name.
SERVER_HANDLE = "openai/default"
#: Seconds for a whole call. A self-hosted server that computes two replies on a few cores takes minutes for each.
HOSTED_DEADLINE_S = 90.0
SELF_HOSTED_DEADLINE_S = 300.0
#: Domains of local networks and clusters.
_PRIVATE_DOMAINS = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".svc")


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
    gemini_api_key: str = ""
    #: `host:port` or a URL, as Ollama itself expects it.
    ollama_host: str = ""

    def __post_init__(self) -> None:
        """Validate keys and addresses here, so that no later error quotes them."""
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name.endswith("_url") and value and not _is_http_url(value):
                raise ConfigurationInvalid(
                    f"{name.upper()} must be an http:// or https:// address with a host, and with a port from 1 to 65535 if any"
                )
            if not all("!" <= character <= "~" for character in value):
                raise ConfigurationInvalid(
                    f"{name.upper()} must be printable ASCII without spaces or line breaks"
                )

        try:
            is_usable = _is_http_url(ollama_base_url(self.ollama_host))
        except ValueError:
            is_usable = False
        if not is_usable:
            raise ConfigurationInvalid(
                "OLLAMA_HOST must be host:port or an http:// or https:// address, with a port from 1 to 65535 if any"
            )

    @property
    def openai_headers(self) -> dict[str, str]:
        """Return the headers that name the organization and the project that OpenAI bills."""
        named = {"OpenAI-Organization": self.openai_org_id, "OpenAI-Project": self.openai_project_id}
        return {name: value for name, value in named.items() if value}

    def __repr__(self) -> str:
        given = [field.name for field in fields(self) if getattr(self, field.name)]
        return f"Credentials(given: {', '.join(given) or 'none'})"


#: The providers that a tenant may connect with a key of its own, and whether each accepts an address, and needs one.
TENANT_PROVIDERS: Mapping[Provider, tuple[bool, bool]] = MappingProxyType(
    {
        Provider.OPENAI: (True, False),
        Provider.ANTHROPIC: (False, False),
        Provider.OPENROUTER: (False, False),
        Provider.GEMINI: (False, False),
        Provider.OLLAMA: (True, True),
        Provider.VLLM: (True, True),
        Provider.LLAMACPP: (True, True),
    }
)


def tenant_credentials(provider: Provider, *, key: str, base_url: str) -> Credentials:
    """Return the credentials of a tenant's own access to a provider, without any of the installation's.

    Raises ConfigurationInvalid for a key or an address that no request can have.
    """
    match provider:
        case Provider.ANTHROPIC:
            return Credentials(anthropic_api_key=key)
        case Provider.OPENROUTER:
            return Credentials(openrouter_api_key=key)
        case Provider.GEMINI:
            return Credentials(gemini_api_key=key)
        case Provider.OLLAMA:
            return Credentials(ollama_host=base_url)
        case _:
            return Credentials(openai_api_key=key, openai_base_url=base_url)


def ollama_base_url(host: str) -> str:
    """Return the base URL of Ollama's OpenAI-compatible API for an OLLAMA_HOST."""
    parts = urlsplit(host if "://" in host else f"http://{host or '127.0.0.1'}")
    # 0.0.0.0 is where a server listens; it is reached on loopback.
    name = "127.0.0.1" if parts.hostname in (None, "", "0.0.0.0") else str(parts.hostname)  # noqa: S104
    port = parts.port or (443 if parts.scheme == "https" else 11434)
    name = f"[{name}]" if ":" in name else name
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{name}:{port}{path}/v1"


def calls_at_once(provider: Provider, credentials: Credentials) -> int:
    """Return the most calls at once for a provider where no setting limits them: few for a self-hosted server."""
    if provider is Provider.VLLM:
        return VLLM_CALLS
    return SELF_HOSTED_CALLS if is_on_slow_server(provider, credentials.openai_base_url) else HOSTED_CALLS


def call_deadline_s(handles: Iterable[str], *, openai_base_url: str, ollama_host: str) -> float:
    """Return the seconds for a whole call where no setting limits it: more if a model may be on a slow self-hosted server."""
    slow = bool(ollama_host) or any(
        is_on_slow_server(handle.partition("/")[0], openai_base_url) for handle in handles
    )
    return SELF_HOSTED_DEADLINE_S if slow else HOSTED_DEADLINE_S


def is_on_slow_server(provider: str, openai_base_url: str) -> bool:
    """Return whether a provider is a self-hosted server that computes a few replies at once."""
    if provider == Provider.OPENAI:
        return bool(openai_base_url) and is_self_hosted(openai_base_url)
    return provider in (Provider.OLLAMA, Provider.LLAMACPP)


def is_self_hosted(base_url: str) -> bool:
    """Return whether an address is self-hosted: loopback, private, or a name without a public domain."""
    try:
        host = (urlsplit(base_url).hostname or "").rstrip(".")
    except ValueError:
        # `Credentials` names the error in the address.
        return False
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_DOMAINS)
    return not address.is_global


def _has_other_server(credentials: Credentials) -> bool:
    """Return whether OPENAI_BASE_URL names another server than OpenAI's, which hardly has OpenAI's models."""
    host = (urlsplit(credentials.openai_base_url).hostname or "").rstrip(".")
    return bool(host) and host != _OPENAI_DOMAIN and not host.endswith(f".{_OPENAI_DOMAIN}")


def _is_http_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        # `port` raises ValueError unless it is a number up to 65535.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


#: The models for agents that name none: the first one whose setting is configured. They are small and cheap, because
#: a fleet has heartbeats day and night.
_DEFAULTS: tuple[tuple[Callable[[Credentials], str | bool], str], ...] = (
    (
        lambda credentials: credentials.openai_api_key and not _has_other_server(credentials),
        "openai/gpt-6-luna",
    ),
    (lambda credentials: credentials.openai_api_key, SERVER_HANDLE),
    (lambda credentials: credentials.anthropic_api_key, "anthropic/claude-haiku-5-5"),
    (lambda credentials: credentials.openrouter_api_key, "openrouter/openai/gpt-6-luna"),
    (lambda credentials: credentials.gemini_api_key, "gemini/gemini-flash-latest"),
    (lambda credentials: credentials.openai_base_url, SERVER_HANDLE),
    (lambda credentials: credentials.ollama_host, "ollama/llama3.2"),
)


def default_handle(credentials: Credentials) -> str:
    """Return the model for agents that name none: of the first provider configured, else the reflex policy."""
    return next((handle for configured, handle in _DEFAULTS if configured(credentials)), str(REFLEX_HANDLE))
