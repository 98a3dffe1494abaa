"""The port of tool servers, its values, and a scripted fake for tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from arbor.errors import Invalid, ToolFailed
from arbor.quotations import counted
from arbor.sealing import RowSecrets
from arbor.tools.names import TOOL_LENGTH, is_tool_name
from arbor.tools.schemas import Schema, reduced_schema
from arbor.tools.texts import clean, one_line

#: The most characters of a tool's description, and the most tools of one server.
DESCRIPTION_LENGTH = 1_000
MAX_TOOLS = 200
#: The most unusable tools of one server that are listed with their reasons; the others are counted.
MAX_SKIPPED = 100
#: The most characters of a result.
RESULT_LENGTH = 20_000
#: The least characters of a secret that is searched in texts: a shorter one would cut words.
_SCRUBBED_LENGTH = 8
#: The parts of a listing by which operators and models judge a tool.
_JUDGED = ("name", "title", "description", "inputSchema", "annotations")
#: The secrets that servers ask for.
SERVER_SECRETS = RowSecrets(purpose="tool-server-secret", row="tool server")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolServerAddress:
    """The address of a server, and the secret that requests to it carry; empty: none."""

    url: str
    secret: str = field(default="", repr=False)

    def scrub(self, text: str) -> str:
        """Return the server's text without the secret, which the server may repeat."""
        return text.replace(self.secret, "***") if len(self.secret) >= _SCRUBBED_LENGTH else text


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedTool:
    """A tool as its server lists it; the fingerprint changes with everything that an operator judges it by."""

    name: str
    description: str
    schema: Schema
    fingerprint: str

    @classmethod
    def of(cls, listed: Mapping[str, Any]) -> ListedTool:
        """Return a tool from its listing by the protocol. Raises Invalid with the reason why it cannot be used."""
        name = listed.get("name")
        if not isinstance(name, str) or not is_tool_name(name):
            raise Invalid(
                f"{one_line(str(name), 80)!r}: a usable name has 1 to {TOOL_LENGTH} letters, digits, _, - and full stops,"
                " beginning with a letter, a digit or _"
            )
        try:
            schema = reduced_schema(listed.get("inputSchema"))
        except Invalid as error:
            raise Invalid(f"{name}: {error}") from error
        judged = {key: listed.get(key) for key in _JUDGED}
        written = json.dumps(judged, sort_keys=True, ensure_ascii=False, default=str)
        return cls(
            name=name,
            description=clean(listed.get("description") or listed.get("title") or "", DESCRIPTION_LENGTH),
            schema=schema,
            fingerprint=hashlib.sha256(written.encode("utf-8", errors="replace")).hexdigest(),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The usable tools of a server, a line for each tool that cannot be used, up to a limit, and the number of these tools."""

    tools: tuple[ListedTool, ...]
    skipped: tuple[str, ...] = ()
    unusable: int = 0

    @classmethod
    def of(cls, listed: Sequence[Mapping[str, Any]], *, is_whole: bool = True) -> Listing:
        """Return the tools of a listing by the protocol, the first of each name; `is_whole` unless further pages are unread."""
        tools: dict[str, ListedTool] = {}
        skipped: list[str] = []
        for entry in listed:
            try:
                tool = ListedTool.of(entry)
            except Invalid as error:
                skipped.append(str(error))
            else:
                if tool.name in tools:
                    skipped.append(f"{tool.name}: listed twice; the first one counts")
                elif len(tools) == MAX_TOOLS:
                    skipped.append(f"{tool.name}: more than {MAX_TOOLS} tools")
                else:
                    tools[tool.name] = tool
        shown, left = skipped[:MAX_SKIPPED], len(skipped) - MAX_SKIPPED
        if left > 0:
            shown.append(
                counted(left, "further tool is not listed here", "further tools are not listed here")
            )
        if not is_whole:
            shown.append(f"the server's list goes on; the tools after number {len(listed):,} are not read")
        return cls(tools=tuple(tools.values()), skipped=tuple(shown), unusable=len(skipped))

    def tool(self, name: str) -> ListedTool | None:
        """Return the tool of this name; None without one."""
        return next((tool for tool in self.tools if tool.name == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolAnswer:
    """The answer of a tool: its text, and whether the tool calls it an error."""

    text: str
    is_error: bool = False


class ToolClient(Protocol):
    """Lists and calls the tools of servers."""

    def list_tools(self, server: ToolServerAddress, *, deadline_s: float) -> Listing:
        """Return the tools of a server within `deadline_s` seconds. Raises ToolFailed."""
        ...

    def call_tool(
        self,
        server: ToolServerAddress,
        *,
        name: str,
        arguments: Mapping[str, Any],
        fingerprint: str,
        deadline_s: float,
    ) -> ToolAnswer | Listing:
        """Call a tool that is listed with this fingerprint, within `deadline_s` seconds; return its answer.

        Returns the listing instead, and calls nothing, where the tool is missing or differs. Raises ToolFailed.
        """
        ...


class ScriptedTools:
    """A fake server with scripted tools; an answer may be an error. Records the arguments of each call."""

    def __init__(
        self, listed: Sequence[Mapping[str, Any]], answers: Mapping[str, ToolAnswer | ToolFailed]
    ) -> None:
        self.listed = list(listed)
        self.answers = dict(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.secrets: list[str] = []

    def list_tools(self, server: ToolServerAddress, *, deadline_s: float) -> Listing:
        """Return the script's tools."""
        self.secrets.append(server.secret)
        return Listing.of(self.listed)

    def call_tool(
        self,
        server: ToolServerAddress,
        *,
        name: str,
        arguments: Mapping[str, Any],
        fingerprint: str,
        deadline_s: float,
    ) -> ToolAnswer | Listing:
        """Return the script's answer, or the listing where the tool differs."""
        listing = self.list_tools(server, deadline_s=deadline_s)
        tool = listing.tool(name)
        if tool is None or tool.fingerprint != fingerprint:
            return listing
        self.calls.append((name, dict(arguments)))
        answer = self.answers[name]
        if isinstance(answer, ToolFailed):
            raise answer
        return answer
