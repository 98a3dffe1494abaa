"""Store the tools that a server lists, and suspend tools that it has changed."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from apps.tools.models import Tool, ToolServer
from arbor.heartbeat.actions import DEFAULT_COSTS
from arbor.ids import uuid7
from arbor.tools.ports import ListedTool, Listing
from arbor.tools.status import SUSPENDED, ToolStatus, status_after_listing

#: The price of a tool until an operator sets another: that of a short inquiry on the web.
DEFAULT_COST = DEFAULT_COSTS["inquire_shallow"]


@dataclass(frozen=True, kw_only=True)
class ListingChange:
    """The number of tools that a server lists, and the names of those that the listing added, suspended or removed."""

    listed: int
    added: tuple[str, ...] = ()
    suspended: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    #: The first of the listed tools that agents cannot use, each with the reason.
    skipped: tuple[str, ...] = ()
    #: The number of all listed tools that agents cannot use.
    unusable: int = 0

    def __str__(self) -> str:
        parts = [f"{self.listed} listed"]
        for names, word in ((self.added, "new"), (self.suspended, "suspended"), (self.removed, "removed")):
            if names:
                parts.append(f"{word}: {', '.join(names)}")
        if self.unusable:
            parts.append(f"{self.unusable} not usable")
        return "; ".join(parts)


def store_listing(server: ToolServer, *, listing: Listing) -> ListingChange:
    """Store the tools of a locked server as it lists them: new ones are off, changed ones are suspended."""
    now = timezone.now()
    stored = {
        tool.name: tool for tool in Tool.objects.select_for_update().filter(server=server).order_by("id")
    }
    listed = {tool.name: tool for tool in listing.tools}
    suspended = [tool.name for tool in stored.values() if _relist(tool, listed.get(tool.name))]
    removed = [tool for tool in stored.values() if tool.status == ToolStatus.OFF and tool.name not in listed]
    Tool.objects.filter(id__in=[tool.id for tool in removed]).delete()
    added = [tool for tool in listing.tools if tool.name not in stored]
    Tool.objects.bulk_create(
        Tool(
            id=uuid7(),
            tenant_id=server.tenant_id,
            server=server,
            name=tool.name,
            cost=DEFAULT_COST,
            listed_at=now,
            **_texts(tool),
        )
        for tool in added
    )
    server.listed_at, server.skipped, server.last_error = now, list(listing.skipped), ""
    server.save(update_fields=["listed_at", "skipped", "last_error"])
    return ListingChange(
        listed=len(listed),
        added=tuple(tool.name for tool in added),
        suspended=tuple(suspended),
        removed=tuple(tool.name for tool in removed),
        skipped=listing.skipped,
        unusable=listing.unusable,
    )


def relist_tool(tool: Tool, *, listing: Listing) -> None:
    """Store a locked tool as its server lists it now."""
    _relist(tool, listing.tool(tool.name))


def _relist(tool: Tool, listed: ListedTool | None) -> bool:
    """Store a tool as its server lists it; return whether that suspends it."""
    status = ToolStatus(tool.status)
    # A changed tool is stored as it was changed, so a change that no operator has seen outlasts a listing without the tool.
    same = listed is not None and listed.fingerprint == tool.fingerprint and not tool.before
    new_status = status_after_listing(status, listed=listed is not None, same=same)
    if new_status is ToolStatus.CHANGED and not tool.before:
        tool.before = {"description": tool.description, "schema": tool.schema}
    tool.status = new_status
    if listed is not None:
        tool.listed_at = timezone.now()
        for name, value in _texts(listed).items():
            setattr(tool, name, value)
    tool.save(update_fields=["status", "before", "listed_at", "description", "schema", "fingerprint"])
    return new_status in SUSPENDED and status not in SUSPENDED


def _texts(listed: ListedTool) -> dict[str, object]:
    return {
        "description": listed.description,
        "schema": listed.schema,
        "fingerprint": listed.fingerprint,
    }
