"""Reflexes: refusals before every other check, for secrets, private networks, cloud metadata and destructive commands."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address
from unicodedata import normalize
from urllib.parse import unquote

from arbor.tools.names import is_tool_action
from arbor.web.addresses import is_address, is_public

#: Actions that look something up on a network, so that their texts must not name a private host.
INQUIRIES = frozenset({"inquire_shallow", "inquire_deep"})
#: An answer in a conversation, which is not an action of a heartbeat.
REPLY = "reply"
#: Actions whose texts leave the agent's mind.
OUTWARD = INQUIRIES | {"reach_out_user", "reach_out_agent", "reach_out_public", REPLY}
#: Arguments of tools that are run as a command.
COMMAND_NAMES = frozenset({"command", "cmd", "commands", "script", "shell", "bash", "args", "argv"})
#: The least length of a token that is compared with the installation's own secrets.
MIN_SECRET_LENGTH = 16


class ReflexKind(StrEnum):
    """The danger that a reflex prevents."""

    #: A key, token or password would leave the installation.
    SECRET = "secret"  # noqa: S105 (a kind)
    #: A host of a private network would be reached.
    PRIVATE_NETWORK = "private_network"
    #: The metadata service of a cloud would be reached.
    CLOUD_METADATA = "cloud_metadata"
    #: A command would destroy or take over a machine.
    DESTRUCTIVE_COMMAND = "destructive_command"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReflexMatch:
    """A reflex and a description of the danger that does not repeat the text."""

    kind: ReflexKind
    what: str

    @property
    def reason(self) -> str:
        """Return the refusal in words."""
        return f"a reflex stops it: {self.what}; no rule, approval or reason permits it"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReflexTerms:
    """The facts about an installation that reflexes need."""

    #: Digests of the installation's own secrets (`secret_digest`).
    own_secrets: frozenset[bytes] = frozenset()
    #: Whether arguments of tools may name hosts of private networks.
    private_tools: bool = False


DEFAULT_TERMS = ReflexTerms()


def reflex_of(
    action: str,
    texts: Iterable[str],
    *,
    commands: Iterable[str] = (),
    terms: ReflexTerms = DEFAULT_TERMS,
) -> ReflexMatch | None:
    """Return the reflex that an action's texts cause; None for an action whose texts stay in the agent's mind.

    `commands` are those texts that are run as a command.
    """
    is_tool = is_tool_action(action)
    if action not in OUTWARD and not is_tool:
        return None
    reaches_hosts = action in INQUIRIES or is_tool
    private_allowed = is_tool and terms.private_tools
    for text in texts:
        if match := find_secret(text, terms.own_secrets):
            return match
        if reaches_hosts and (match := find_host(text, private_allowed=private_allowed)):
            return match
    return next((match for text in commands if (match := find_command(text)) is not None), None)


def find_secret(text: str, own_secrets: frozenset[bytes] = frozenset()) -> ReflexMatch | None:
    """Return the reflex of a text that contains a secret: by its form, or as one of the installation's own."""
    for what, pattern in _SECRETS:
        if pattern.search(text):
            return ReflexMatch(kind=ReflexKind.SECRET, what=f"the text contains {what}")
    if own_secrets and any(secret_digest(token) in own_secrets for token in _tokens(text)):
        what = "the text contains a secret of this installation"
        return ReflexMatch(kind=ReflexKind.SECRET, what=what)
    return None


def find_host(text: str, *, private_allowed: bool = False) -> ReflexMatch | None:
    """Return the reflex of a text that names the metadata service of a cloud, or a host of a private network."""
    # Clients read digits and full stops of other scripts as ASCII (RFC 5895).
    text = normalize("NFKC", text).replace("。", ".")
    if _METADATA.search(text):
        what = "the text names the metadata service of a cloud"
        return ReflexMatch(kind=ReflexKind.CLOUD_METADATA, what=what)
    for host in _hosts(text):
        if host in _METADATA_ADDRESSES or _METADATA.fullmatch(host):
            what = "the text names the metadata service of a cloud"
            return ReflexMatch(kind=ReflexKind.CLOUD_METADATA, what=what)
        if not private_allowed and _is_private(host):
            what = "the text names a host of a private network"
            return ReflexMatch(kind=ReflexKind.PRIVATE_NETWORK, what=what)
    return None


def find_command(text: str) -> ReflexMatch | None:
    """Return the reflex of a destructive command."""
    for what, pattern in _COMMANDS:
        if pattern.search(text):
            return ReflexMatch(kind=ReflexKind.DESTRUCTIVE_COMMAND, what=f"the command {what}")
    return None


def secret_digest(token: str) -> bytes:
    """Return the digest of a secret, which recognizes the secret without revealing it."""
    return hashlib.blake2b(token.encode(), digest_size=16, person=b"arbor/reflex").digest()


# --- Secrets -------------------------------------------------------------------------------------------

# Forms that their issuers document. A prefix without its random part is not a secret, so texts about keys pass.
# No pattern reads a long run of characters again from each of its places: a web token is found at its second part, and a scheme is short.
_SECRETS = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("a private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
        ("an API token of Arbor", r"\barbor_[A-Za-z0-9_-]{32,}"),
        ("an API key of a model provider", r"\bsk-(?:ant-|proj-|or-v1-|svcacct-)?[A-Za-z0-9_-]{20,}"),
        ("a token of GitHub", r"\b(?:gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
        ("a token of GitLab", r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("an access key of AWS", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("an API key of Google", r"\bAIza[0-9A-Za-z_-]{35}"),
        ("a token of Slack", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}"),
        ("a key of Stripe", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}"),
        ("a token of Hugging Face", r"\bhf_[A-Za-z0-9]{30,}"),
        ("a signed web token", r"(?<=[A-Za-z0-9_-]{13})\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}"),
        ("a URL with a password", r"\b[a-z][a-z0-9+.-]{0,40}://[^\s/@:]*:[^\s/@]{3,}@[^\s/]"),
        ("the secret of a webhook", r"\bwhsec_[A-Za-z0-9+/_-]{24,}"),
    )
)
_TOKEN = re.compile(rf"[^\s\"'`<>,;()\[\]{{}}]{{{MIN_SECRET_LENGTH},}}")


def _tokens(text: str) -> Iterator[str]:
    """Yield the long words of a text, also without a name before them and punctuation after them."""
    for token in _TOKEN.findall(text):
        yield token
        for candidate in (token.rstrip(".:!?"), *re.split(r"[=:]", token, maxsplit=1)[1:]):
            if candidate != token and len(candidate) >= MIN_SECRET_LENGTH:
                yield candidate


# --- Networks ------------------------------------------------------------------------------------------

_METADATA = re.compile(
    r"(?<![\w.])(?:169\.254\.169\.254|169\.254\.170\.2|100\.100\.100\.200|168\.63\.129\.16|fd00:ec2::254"
    r"|metadata\.google\.internal|metadata\.goog|instance-data\.ec2\.internal)(?![\w-]|\.\w)",
    re.IGNORECASE,
)
_METADATA_ADDRESSES = frozenset({"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16"})
_URL_HOST = re.compile(
    r"(?<![a-z0-9])[a-z][a-z0-9+.-]{1,20}://((?:[^\s/?#]*@)?)(\[[^\]\s]+\]|[^\s/?#:,;|$`\"'<>)\]}\\]+)", re.I
)
# Clients and writers end a URL's host there, though an @ may follow.
_HOST_END = re.compile(r"[,;|$`\"'<>\]}\\]")
_HOST = re.compile(r"\[[^\]\s]+\]|[^:]+")
_LONE_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9a-fA-F]*:[0-9a-fA-F:.]+|[\w.-]+?)(?::\d{1,5})?(?:/\S*)?")
#: A number with decimals. Short forms of addresses look the same: 127 is taken for the loopback, and more than six decimals after
#: another number than 0 for an address, because those of metadata services have seven or more (`169.16689662`).
_DECIMAL = re.compile(r"0\.\d+|(?!127\.)\d+\.\d{1,6}", re.ASCII)
_PRIVATE_NAMES = (".localhost", ".local", ".internal", ".lan", ".intranet", ".home.arpa", ".corp")
_MAX_PARTS = 4


def _hosts(text: str) -> Iterator[str]:
    """Yield the hosts of URLs, and the host that is the whole text, as addresses where they can be read as such."""
    for userinfo, found in _URL_HOST.findall(text):
        before = _HOST_END.split(userinfo, maxsplit=1)
        earlier = _HOST.match(before[0].rpartition("@")[2]) if len(before) > 1 else None
        for host in (found, earlier.group()) if earlier else (found,):
            named = unquote(host).lower().rstrip(".")
            yield _address(named) or named
    # A lone word may be anything, so only an address or a private name counts as a host.
    word = text.strip()
    if not _DECIMAL.fullmatch(word) and (lone := _LONE_HOST.fullmatch(word)) is not None:
        host = lone.group(1).lower().rstrip(".")
        if address := (_address(host) if set(host) & set(".:") else ""):
            yield address
        elif host == "localhost" or host.endswith(_PRIVATE_NAMES):
            yield host


def _is_private(host: str) -> bool:
    if is_address(host):
        return not is_public(host)
    return "." not in host or host.endswith(_PRIVATE_NAMES)


def _address(host: str) -> str:
    """Return the address that a host is written as, IPv4 in its short and its numeric forms too; empty for a name."""
    bare = host.strip("[]").partition("%")[0]
    if is_address(bare):
        return bare
    parts = bare.split(".")
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return ""
    if len(numbers) > _MAX_PARTS or any(number > 0xFF for number in numbers[:-1]):
        return ""
    value = numbers[-1]
    for place, number in enumerate(numbers[:-1]):
        value += number << (8 * (3 - place))
    return str(IPv4Address(value)) if value <= 0xFFFFFFFF else ""


def _number(part: str) -> int:
    """Parse one part of an IPv4 address: hexadecimal, octal or decimal, as resolvers do."""
    if part.lower().startswith("0x"):
        return int(part, 16)
    if not part.isascii() or not part.isdigit():
        raise ValueError(part)
    return int(part, 8) if len(part) > 1 and part.startswith("0") else int(part)


# --- Commands ------------------------------------------------------------------------------------------

#: What ends an argument: also the end of a quoted command, or of one in parentheses.
_END = r"(?=[\s;&|\"'`)]|$)"
_ROOT = rf"(?:/(?:\*|{_END})|/(?:bin|boot|dev|etc|home|lib|opt|root|sbin|srv|sys|usr|var)\b/?\*?{_END}|~(?:/?\*?){_END}|\$HOME\b|\*)"
# Options before a target; their number is bounded, because an option may look like the beginning of another command.
_OPTIONS = r"(?:-[\w-]+(?:=\S+)?\s++){0,200}+"
# A repeated option is matched in one way only, and a gap ends where its command begins again: the search through a hostile
# text takes a time in proportion to its length.
_COMMANDS = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        (
            "deletes a whole tree",
            r"\brm\s++(?=(?:-[\w-]+(?:=\S+)?\s++){0,200}?-{1,2}(?:[a-qs-z]*r[a-z]*|recursive)\s)"
            rf"{_OPTIONS}[\"']?{_ROOT}",
        ),
        (
            "deletes a whole tree",
            r"\bfind\s+/\s(?:(?!\bfind\s+/\s).)*-delete\b|\brd\s+/s\b|\bdel\s+/[sf]\b|\bformat\s+[a-z]:",
        ),
        (
            "takes the rights of the administrator",
            r"(?:^|[;&|(`\"'\s])(?:sudo|doas|su\s+-|pkexec|runas)(?:\s|$)",
        ),
        (
            "overwrites a device",
            r"\bdd\b(?:(?!\bdd\b)[^\n;|&])*\bof=/dev/|>\s*/dev/(?:sd|nvme|vd|hd|mapper)|\bshred\b(?:(?!\bshred\b).)*\s/dev/",
        ),
        ("formats a file system", r"\bmkfs(?:\.\w+)?\b|\bwipefs\b|\bmke2fs\b"),
        ("is a fork bomb", r":\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&?\s*\}\s*;\s*:"),
        (
            "reads keys or passwords of the machine",
            r"/etc/(?:shadow|gshadow|sudoers)\b|\.ssh/(?:id_\w+|authorized_keys)\b",
        ),
        (
            "runs a program from the network",
            r"\b(?:curl|wget)\b(?:(?!\b(?:curl|wget)\b)[^\n;])*\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b",
        ),
        (
            "opens a shell to the network",
            r"/dev/(?:tcp|udp)/|\b(?:nc|ncat|netcat)\b(?:(?!\b(?:nc|ncat|netcat)\b)[^\n;|])*\s-e\b",
        ),
        ("stops the machine", rf"(?:^|[;&|(`\"'\s])(?:shutdown|reboot|halt|poweroff){_END}|\binit\s+[06]\b"),
        ("makes everything writable", r"\bchmod\s++(?:-\w+\s++){0,200}(?:-?R?\s++)?-?R?0?777\s+/"),
        ("drops a database", r"\bdrop\s+(?:database|schema)\b|\btruncate\s+table\b"),
    )
)
