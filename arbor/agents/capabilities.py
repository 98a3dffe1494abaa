"""The grammar of `arbor://` URIs, which name capabilities.

    uri     := "arbor://" ( "**" | domain "/" ( wildcard | operation *( "/" segment ) [ "/" wildcard ] ) )
    domain, operation := [a-z][a-z0-9_]*
    wildcard := "*" (one segment) | "**" (any number of segments)

A URI in a template is a request, never a grant. An unknown prefix is refused, so that a misspelt
request fails when the template is read and not when the agent is denied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Self

from arbor.errors import CapabilityInvalid

SCHEME = "arbor://"
WILDCARDS = ("*", "**")
MAX_URI_LENGTH = 500

#: Domains and their operations: the canonical list of the origin of seed 000, and the requests of the built-in templates.
#: In an operation, "*" matches any characters.
KNOWN_PREFIXES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "actions": ("execute",),
        "agent": (
            *("spawn", "spawn_worker", "stop", "create", "destroy", "restore"),
            *("action", "lifecycle", "intent", "dispatch", "task"),
        ),
        "ai": ("generate", "request"),
        "approval": ("read", "answer"),
        "code": ("*",),
        "comms": ("*",),
        "consensus": ("propose", "evaluate", "ask", "decide", "cancel", "force_*", "admin"),
        "council": ("consult",),
        "fs": ("read", "write", "execute", "delete", "list"),
        "governance": ("*",),
        "historian": ("query",),
        "knowledge": ("audit",),
        "mcp": ("*",),
        "memory": ("read", "write", "search", "init", "cleanup", "index", "recall", "add_knowledge"),
        "monitor": ("read", "query", "remediate"),
        "net": ("http", "search"),
        "orchestrator": ("execute", "map", "run"),
        "persistence": ("read", "write", "append"),
        "pipeline": ("run",),
        "sandbox": ("create", "destroy"),
        "shell": ("exec", "execute", "safe"),
        "signals": ("subscribe", "emit"),
        "tool": ("use",),
        "trust": ("read", "write", "auto_promote"),
        "workflows": ("execute",),
    }
)

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class CapabilityUri:
    """A valid URI: its segments in order, and its final wildcard or an empty text."""

    segments: tuple[str, ...]
    wildcard: str

    def __str__(self) -> str:
        return SCHEME + "/".join([*self.segments, self.wildcard] if self.wildcard else self.segments)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a URI; one trailing slash is dropped. Raises CapabilityInvalid."""
        if not text.startswith(SCHEME):
            raise CapabilityInvalid(f"a capability begins with {SCHEME}, got {text[:80]!r}")
        if len(text) > MAX_URI_LENGTH:
            raise CapabilityInvalid(f"a capability has at most {MAX_URI_LENGTH} characters, got {len(text)}")
        parts = text.removeprefix(SCHEME).removesuffix("/").split("/")
        wildcard = parts.pop() if parts[-1] in WILDCARDS else ""
        for part in parts:
            _check_segment(text, part)
        if parts or wildcard != "**":
            _check_prefix(text, parts, wildcard)
        return cls(segments=tuple(parts), wildcard=wildcard)


def _check_segment(uri: str, segment: str) -> None:
    if not segment:
        raise CapabilityInvalid(f"{uri!r} has an empty segment")
    if "*" in segment:
        raise CapabilityInvalid(f"{uri!r}: a wildcard is a whole segment, * or **, and only the last one")
    if segment in {".", ".."}:
        raise CapabilityInvalid(f"{uri!r}: a segment cannot be {segment!r}; write the path it leads to")
    # An encoded or backslashed path could become ".." later, so both are refused.
    if any(char in "%\\" or char.isspace() or not char.isprintable() for char in segment):
        raise CapabilityInvalid(f"{uri!r}: a segment has no white space, control character, % or backslash")


def _check_prefix(uri: str, parts: list[str], wildcard: str) -> None:
    """Check domain and operation against their form and the list of known ones."""
    for name in parts[:2]:
        if not _NAME.fullmatch(name):
            raise CapabilityInvalid(
                f"{uri!r}: domain and operation are lower-case letters, digits and _, beginning with a letter"
            )
    if not parts or (len(parts) == 1 and not wildcard):
        raise CapabilityInvalid(
            f"{uri!r} is too short: write {SCHEME}domain/operation, or {SCHEME}** for everything"
        )
    domain = parts[0]
    if domain not in KNOWN_PREFIXES:
        raise CapabilityInvalid(f"{uri!r}: unknown domain {domain!r}; known: {', '.join(KNOWN_PREFIXES)}")
    operations = KNOWN_PREFIXES[domain]
    if len(parts) > 1 and not any(fnmatchcase(parts[1], known) for known in operations):
        raise CapabilityInvalid(
            f"{uri!r}: unknown operation {parts[1]!r} of {domain}; known: {', '.join(operations)}"
        )
