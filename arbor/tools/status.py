"""The status of a tool, and its change when the server lists its tools again."""

from __future__ import annotations

from enum import StrEnum


class ToolStatus(StrEnum):
    """The status of a tool; agents may call an allowed one only."""

    #: No operator has allowed the tool, or one has withdrawn it.
    OFF = "off"
    #: Agents may call the tool.
    ALLOWED = "allowed"
    #: The server has changed the tool since it was allowed; suspended until an operator decides again.
    CHANGED = "changed"
    #: The server no longer lists the tool, which was allowed.
    MISSING = "missing"


#: Statuses of tools that were allowed and wait for an operator.
SUSPENDED = (ToolStatus.CHANGED, ToolStatus.MISSING)


def status_after_listing(status: ToolStatus, *, listed: bool, same: bool) -> ToolStatus:
    """Return the status of a stored tool after a listing; `same`: the listed tool is the one that was allowed.

    A changed tool stays suspended whatever the server lists; a missing tool is allowed again if it is listed unchanged.
    """
    if status is ToolStatus.OFF:
        return status
    if not listed:
        return ToolStatus.MISSING
    if status is ToolStatus.CHANGED or not same:
        return ToolStatus.CHANGED
    return ToolStatus.ALLOWED
