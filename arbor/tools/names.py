"""Names of tools as actions: `mcp.SERVER.TOOL`."""

from __future__ import annotations

import re

from arbor.errors import Invalid

#: The beginning of each action that calls a tool.
PREFIX = "mcp."
#: The length of the columns of intents, steps and experiences for an action's name.
ACTION_LENGTH = 80
SERVER_LENGTH = 24
#: The space that the longest name of a server leaves.
TOOL_LENGTH = ACTION_LENGTH - len(PREFIX) - SERVER_LENGTH - 1

_SERVER = re.compile(rf"[a-z][a-z0-9-]{{0,{SERVER_LENGTH - 1}}}")
# Names appear in rules of the prompt, so they have the characters that the protocol recommends, and no others.
_TOOL = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{TOOL_LENGTH - 1}}}")


def check_server_name(name: str) -> str:
    """Return the name of a server; raises Invalid for one that no action can have."""
    if not _SERVER.fullmatch(name):
        raise Invalid(
            f"a tool server's name has 1 to {SERVER_LENGTH} lower-case letters, digits and hyphens,"
            f" beginning with a letter, got {name[:80]!r}"
        )
    return name


def is_tool_name(name: str) -> bool:
    """Return whether a tool of this name can be an action."""
    return _TOOL.fullmatch(name) is not None


def action_of(server: str, tool: str) -> str:
    """Return the name of the action that calls a tool."""
    return f"{PREFIX}{server}.{tool}"


def is_tool_action(action: str) -> bool:
    """Return whether an action calls a tool."""
    return action.startswith(PREFIX)


def server_of(action: str) -> str:
    """Return the name of the server of a tool's action."""
    return action.removeprefix(PREFIX).partition(".")[0]
