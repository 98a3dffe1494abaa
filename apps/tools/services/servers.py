"""Add and remove MCP servers, and list their tools."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.approvals import expire_approvals_of_actions
from apps.authority.services.modes import clear_modes_below, suggestions_of
from apps.queues import Task, TaskMessage, enqueue
from apps.tenants.keys import master_keys
from apps.tenants.limits import check_row_limit
from apps.tenants.names import find_by_name, insert_named_row
from apps.tenants.scope import current_tenant, release_connection, tenant_transaction
from apps.tools.clients import tool_client
from apps.tools.models import ToolServer
from apps.tools.services.listing import ListingChange, store_listing
from apps.tools.services.tools import set_agents
from arbor.adapters.webhook import check_url, redact_url
from arbor.authority.approvals import Suggestion
from arbor.authority.grants import action_resource
from arbor.errors import Invalid, NotFound, SealBroken, ToolFailed
from arbor.ids import uuid7
from arbor.tools.names import PREFIX, action_of, check_server_name, is_tool_action, server_of
from arbor.tools.ports import SERVER_SECRETS, ToolServerAddress

log = structlog.get_logger(__name__)

#: Servers of a tenant at most.
MAX_SERVERS = 20
URL_LENGTH = 500
SECRET_LENGTH = 4_000


@dataclass(frozen=True, kw_only=True)
class RefreshedServer:
    """A server whose tools were listed, and what that changed."""

    server: ToolServer
    change: ListingChange


@transaction.atomic
def add_server(*, name: str, url: str, actor: str, secret: str = "") -> ToolServer:
    """Add a server to the current tenant. Its secret is sent as a bearer token; nothing is requested yet.

    Raises Invalid for a name, URL or secret, AlreadyExists, and LimitReached.
    """
    server = ToolServer(
        id=uuid7(),
        tenant_id=current_tenant(),
        name=check_server_name(name.strip()),
        url=_valid_url(url.strip()),
    )
    server.sealed_secret = _sealed(server, secret.strip())
    check_row_limit(
        ToolServer.objects.all(),
        most=MAX_SERVERS,
        refusal=f"a tenant has at most {MAX_SERVERS} tool servers; remove one that is not needed",
    )
    insert_named_row(server, server.name, noun="tool server", constraint="tools_server_name")
    # A heartbeat may have filed a request at the moment when an earlier server of this name was removed.
    why = f"the tool server {server.name} was added"
    expire_approvals_of_actions(name_prefix=action_of(server.name, ""), why=why, actor=actor)
    audit_server(server, actor=actor, message=f"added the tool server {server.name}")
    return server


@transaction.atomic
def remove_server(*, server_id: UUID, actor: str) -> ToolServer:
    """Remove a server with its tools; agents may call them no longer. Raises NotFound.

    Trust rules and open approvals of its tools end too: a later server of the same name must not inherit them.
    """
    server = server_by_id(server_id)
    why = f"the tool server {server.name} was removed"
    ended = expire_approvals_of_actions(name_prefix=action_of(server.name, ""), why=why, actor=actor)
    cleared = clear_modes_below(resource=action_resource(f"{PREFIX}{server.name}"), actor=actor)
    server = lock_server(server_id)
    for tool in server.tools.all():
        set_agents(tool.action, agent_ids=(), actor=actor)
    ToolServer.objects.filter(id=server_id).delete()
    audit_server(
        server,
        actor=actor,
        message=f"removed the tool server {server.name}; trust rules ended: {cleared}, open approvals: {ended}",
    )
    return server


def suggested_rules(agent_id: UUID) -> list[Suggestion]:
    """Return the trust rules that a person might set; of tools, only decisions since their server was added count."""
    added = dict(ToolServer.objects.values_list("name", "created_at"))

    def counts(action: str, decided_at: datetime) -> bool:
        if not is_tool_action(action):
            return True
        added_at = added.get(server_of(action))
        return added_at is not None and decided_at >= added_at

    return suggestions_of(agent_id, counts=counts)


def refresh_server(*, server_id: UUID, tenant_id: UUID, actor: str) -> RefreshedServer:
    """List the tools of a server and store them, in transactions of its own; none is open during the request.

    Raises NotFound, and ToolFailed, which is stored with the server too.
    """
    try:
        with tenant_transaction(tenant_id):
            address = address_of(server_by_id(server_id))
        release_connection()
        listing = tool_client().list_tools(address, deadline_s=settings.ARBOR_MCP_DEADLINE_S)
    except ToolFailed as error:
        with tenant_transaction(tenant_id):
            ToolServer.objects.filter(id=server_id).update(last_error=str(error))
        raise
    with tenant_transaction(tenant_id):
        server = lock_server(server_id)
        change = store_listing(server, listing=listing)
        audit_server(server, actor=actor, message=f"listed the tools of {server.name}: {change}")
        return RefreshedServer(server=server, change=change)


def refresh_server_in_background(*, server_id: UUID, tenant_id: UUID, actor: str) -> None:
    """List the tools of a server while nobody waits: a failure is stored with the server and logged."""
    try:
        refresh_server(server_id=server_id, tenant_id=tenant_id, actor=actor)
    except (ToolFailed, NotFound) as error:
        log.warning("tool_listing_failed", server_id=str(server_id), error=str(error))


def enqueue_refresh(*, server_id: UUID, actor: str) -> ToolServer:
    """Enqueue a listing of a server's tools, for callers with an open transaction. Raises NotFound."""
    server = server_by_id(server_id)
    enqueue(
        TaskMessage(
            task=Task.REFRESH_TOOLS,
            tenant_id=server.tenant_id,
            arguments={"server_id": str(server_id), "actor": actor},
            shown=f"server={server.name}",
        )
    )
    return server


def server_by_id(server_id: UUID) -> ToolServer:
    """Return a server of the current tenant; raises NotFound."""
    server: ToolServer | None = ToolServer.objects.filter(id=server_id).first()
    if server is None:
        raise NotFound(f"there is no tool server {server_id} in this tenant")
    return server


def server_by_name(name: str) -> ToolServer:
    """Return a server of the current tenant by name; raises NotFound with the names that exist."""
    return find_by_name(
        ToolServer.objects.all(), name, noun="tool server", advice="add one with `arbor tool server add`"
    )


def lock_server(server_id: UUID) -> ToolServer:
    """Lock a server until the transaction ends; raises NotFound."""
    server: ToolServer | None = ToolServer.objects.select_for_update().filter(id=server_id).first()
    if server is None:
        raise NotFound(f"there is no tool server {server_id} in this tenant")
    return server


def address_of(server: ToolServer) -> ToolServerAddress:
    """Return the address of a server with its opened secret. Raises ToolFailed for a secret that cannot be opened."""
    if not server.sealed_secret:
        return ToolServerAddress(url=server.url)
    try:
        opened = SERVER_SECRETS.unseal(
            server.sealed_secret, keys=master_keys(), tenant_id=server.tenant_id, row_id=server.id
        )
    except SealBroken as error:
        raise ToolFailed(
            f"{error}; remove the tool server {server.name}, and add it with its secret"
        ) from error
    return ToolServerAddress(url=server.url, secret=opened.raw.decode())


def audit_server(server: ToolServer, *, actor: str, message: str) -> None:
    """Audit an act on a server."""
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        message=message,
        detail={"tool_server": server.name, "to": redact_url(server.url)},
    )


def _sealed(server: ToolServer, secret: str) -> dict[str, object]:
    if not secret:
        return {}
    # A header has no other characters.
    if len(secret) > SECRET_LENGTH or not (secret.isascii() and secret.isprintable()):
        raise Invalid(f"a tool server's secret has at most {SECRET_LENGTH} printable ASCII characters")
    return SERVER_SECRETS.seal(secret, keys=master_keys(), tenant_id=server.tenant_id, row_id=server.id)


def _valid_url(url: str) -> str:
    if len(url) > URL_LENGTH:
        raise Invalid(f"a tool server's URL has at most {URL_LENGTH} characters, got {len(url):,}")
    if not url.isprintable():
        raise Invalid("a tool server's URL has printable characters only")
    check_url(
        url,
        allow_http=settings.ARBOR_MCP_ALLOW_HTTP,
        what="a tool server's URL",
        setting="ARBOR_MCP_ALLOW_HTTP",
    )
    return url
