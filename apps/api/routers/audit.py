"""Search, export and verify the audit log of the tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from apps.api.authentication import ADMINISTER
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.scope import own_transactions
from apps.api.threads import in_thread
from apps.api.times import Moment
from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services.chains import AuditChain
from apps.audit.services.export import export_audit
from apps.audit.services.search import TERM_LENGTH, AuditFilter, find_event
from apps.fleet.audit_heads import head_json
from apps.fleet.audit_seals import verify_audit
from arbor.audit.levels import AuditLevel
from arbor.errors import NotFound

router = Router()

_CONTENT_TYPE = "application/x-ndjson"
#: The most seals that one request verifies; the command verifies all.
_MAX_SEALS = 10_000


class AuditResource(Schema):
    """An audited act."""

    id: UUID
    at: datetime
    level: AuditLevel
    action: AuditAction
    actor: str
    message: str
    detail: Any
    before: Any = Field(
        description="The changed fields with their values before the act; empty where none changed."
    )
    after: Any = Field(description="The changed fields with their values after the act.")
    agent_id: UUID | None


class AuditQuery(Schema):
    """The wanted acts; fields that are left out do not filter."""

    words: Annotated[
        str,
        Field(max_length=TERM_LENGTH, description="All words must be in the message, regardless of case."),
    ] = ""
    actor: Annotated[str, Field(max_length=TERM_LENGTH, description="The beginning of an actor.")] = ""
    action: AuditAction | None = None
    level: AuditLevel | None = None
    agent_id: UUID | None = None
    since: Moment | None = None
    until: Moment | None = None

    def filter(self) -> AuditFilter:
        """Return the filter."""
        return AuditFilter(
            words=self.words,
            actor=self.actor,
            actions=[self.action] if self.action else [],
            levels=[self.level] if self.level else [],
            agent_id=self.agent_id,
            since=self.since,
            until=self.until,
        )


class FaultResource(Schema):
    """A broken link of the chain."""

    kind: str
    seal: int = Field(description="The number of the seal.")
    row: str | None
    id: UUID | None
    message: str


class ChainResource(Schema):
    """The result of a verification of the chain."""

    chain: str
    intact: bool
    broken_at: FaultResource | None = Field(description="The first broken link.")
    faults: list[FaultResource] = Field(description="The first hundred.")
    fault_count: int
    seals: int
    events: int = Field(description="Sealed records that are as they were.")
    heartbeats: int = Field(description="Sealed heartbeats that are as they were.")
    aged: int = Field(description="Sealed rows that were deleted by age, or with their agent.")
    aged_unsealed: int = Field(
        description="Those of them whose deletion is stated by a record that is not sealed yet."
    )
    unsealed_events: int
    unsealed_heartbeats: int
    unsealed_since: datetime | None
    head: str | None = Field(description="The digest of the last seal.")


class HeadResource(Schema):
    """The last seal of the chain, as it is exported."""

    chain: str
    number: int
    at: datetime
    previous: str
    position: int
    last_id: str
    events: int
    events_digest: str
    cursor: str
    heartbeats: int
    heartbeats_digest: str
    digest: str
    key: int = Field(description="The number of the System Authority's key that signed.")
    signature: str


@router.get("/audit", response=ListPage[AuditResource], summary="List the audit log")
def list_audit(request: HttpRequest, page: Paging, wanted: Query[AuditQuery]) -> ListPage[AuditResource]:
    """List or search what was done in the tenant and by whom, the latest first."""
    rows = wanted.filter().filter_rows(AuditEvent.objects.all())
    return page_of(rows, page, order="-at", to_resource=AuditResource.model_validate)


@router.get(
    "/audit/export",
    auth=ADMINISTER,
    summary="Export the audit log",
    openapi_extra={
        "responses": {
            200: {
                "description": "One JSON object a line, oldest first.",
                "content": {_CONTENT_TYPE: {"schema": {"type": "string", "format": "binary"}}},
            }
        }
    },
)
@own_transactions
def export(request: HttpRequest, wanted: Query[AuditQuery]) -> StreamingHttpResponse:
    """Stream the wanted acts as JSON lines, oldest first; the export is audited."""
    access = access_of(request)
    parts = export_audit(access.tenant_id, wanted=wanted.filter(), actor=access.actor)
    response = StreamingHttpResponse(
        _in_threads(parts) if isinstance(request, ASGIRequest) else parts, content_type=_CONTENT_TYPE
    )
    response["Content-Disposition"] = f'attachment; filename="{access.tenant_slug}-audit.jsonl"'
    return response


@router.get("/audit/chain", response=ChainResource, auth=ADMINISTER, summary="Verify the audit log")
@own_transactions
def verify(
    request: HttpRequest,
    latest: Annotated[
        int, Query(ge=1, le=_MAX_SEALS, description="The seals to verify, counted from the last one.")
    ] = 1_000,
) -> ChainResource:
    """Verify the latest seals and the rows under them; report the first broken link, and the rows that are not sealed yet."""
    report = verify_audit(AuditChain(tenant_id=access_of(request).tenant_id), latest=latest)
    return ChainResource.model_validate(report.as_json())


@router.get("/audit/head", response=HeadResource, summary="Show the head of the audit log")
def show_head(request: HttpRequest) -> HeadResource:
    """Show the last seal, to store it where nobody can change it."""
    chain = AuditChain(tenant_id=access_of(request).tenant_id)
    head = chain.head()
    if head is None:
        raise NotFound("nothing is sealed yet: a job seals what was committed, by default every 30 seconds")
    return HeadResource.model_validate(head_json(chain, head))


@router.get("/audit/{uuid:event_id}", response=AuditResource, summary="Show an audited act")
def show_event(request: HttpRequest, event_id: UUID) -> AuditResource:
    """Show an act with its detail and its changes."""
    return AuditResource.model_validate(find_event(event_id))


async def _in_threads(parts: Iterator[str]) -> AsyncIterator[str]:
    """Yield the parts, each read in a thread."""
    while (part := await in_thread(next, parts, None)) is not None:
        yield part
