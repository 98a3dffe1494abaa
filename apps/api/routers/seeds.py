"""Export, import, restore, fork, compare and merge agents as signed files, seeds."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router, Schema, Status
from pydantic import Field

from apps.access.services import TokenAccess
from apps.agents.services.lookup import NAME_LENGTH
from apps.api.authentication import ADMINISTER, ADMINISTER_AGENTS
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of, require_reach
from apps.api.rows import Input, row_of_tenant
from apps.api.scope import own_transactions, reads_file
from apps.api.streamed_files import ANSWERS_FILE, READS_FILE, streamed_file
from apps.fleet.models import SavedSeed
from apps.fleet.seeds.capture import CaptureOptions
from apps.fleet.seeds.exporting import export_seed
from apps.fleet.seeds.files import VerifiedSeed, compare_seeds
from apps.fleet.seeds.importing import ImportOptions, fork_agent, import_seed
from apps.fleet.seeds.merging import MergeOptions, merge_seed
from apps.fleet.seeds.restoring import RestoreOptions, restore_seed
from apps.fleet.seeds.saving import (
    delete_saved_seed,
    download_saved_seed,
    save_seed,
    save_upload,
    temporary_file,
    verified_saved_seed,
)
from apps.fleet.seeds.sections import SeedGroup
from apps.tenants.scope import tenant_transaction
from arbor.seeds.saving import SeedReason

router = Router()


class SavedSeedResource(Schema):
    """A saved seed."""

    id: UUID
    agent_id: UUID = Field(description="The agent of the seed, which may be destroyed or elsewhere.")
    name: str
    public_id: str
    reason: SeedReason = Field(description="Why it was saved.")
    digest: str = Field(description="The digest of the agent's state: equal states have equal digests.")
    bytes: int
    rows: dict[str, int] = Field(description="The number of rows by section.")
    actor: str
    at: datetime = Field(description="When the agent was captured.")


class SeedReportResource(Schema):
    """The result of an import, a fork or a restore."""

    agent_id: UUID
    name: str
    digest: str
    rows: dict[str, int] = Field(description="The number of written rows by section.")
    with_vectors: bool = Field(description="False: maintenance computes the vectors of memories again.")
    dry_run: bool
    saved_seed_id: UUID | None = Field(description="The seed of the state before a restore.")
    dropped: dict[str, int] = Field(description="Rows left out because what they refer to is missing.")
    unknown: dict[str, list[str]] = Field(description="Columns that this Arbor does not have, by section.")
    requests: list[str] = Field(description="The capabilities that a new agent asks for; none is granted.")


class SeedConflictResource(Schema):
    """A row of a seed that contradicts what the agent has; it was left out."""

    section: str
    subject: str
    own: str
    other: str


class MergeReportResource(Schema):
    """The result of a merge."""

    agent_id: UUID
    name: str
    from_name: str
    digest: str
    memories: int = Field(description="New memories, with the source `seed:DIGEST`.")
    proposals: int = Field(description="New proposals of beliefs and preferences.")
    known: dict[str, int] = Field(description="Rows that the agent had before, by section.")
    conflicts: list[SeedConflictResource]
    expired: int = Field(description="Memories left out because they have expired.")
    postponed: int = Field(description="Beliefs and preferences without room among the proposals.")
    dry_run: bool
    saved_seed_id: UUID | None


class RowDifferenceResource(Schema):
    """A difference of one row."""

    change: str = Field(description="added, removed or changed")
    label: str
    fields: dict[str, tuple[Any, Any]] = Field(description="Values before and after, by column.")


class SectionDifferenceResource(Schema):
    """The differences of a section, the first 20 with their values."""

    name: str
    added: int
    removed: int
    changed: int
    same: int
    examples: list[RowDifferenceResource]


class SeedImport(Input):
    """A request for an agent from a seed."""

    name: Annotated[str, Field(max_length=NAME_LENGTH, description="Empty: that of the seed.")] = ""
    trust_foreign: Annotated[
        bool, Field(description="Accept a seed that another installation has signed.")
    ] = False
    dry_run: Annotated[bool, Field(description="Report only.")] = False


class SeedRestore(Input):
    """A request to bring an agent back to a seed."""

    seed_id: UUID
    skip: Annotated[list[SeedGroup], Field(description="Parts of the agent that stay as they are.")] = []
    dry_run: Annotated[bool, Field(description="Report only.")] = False


class SeedMerge(Input):
    """A request to merge what another agent learned."""

    seed_id: UUID
    trust_foreign: Annotated[
        bool, Field(description="Accept a seed that another installation has signed.")
    ] = False
    dry_run: Annotated[bool, Field(description="Report only.")] = False


class AgentFork(Input):
    """A request for another agent with the same memories."""

    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH, examples=["Lyra"])]


@router.get(
    "/agents/{uuid:agent_id}/seed", auth=ADMINISTER, summary="Export an agent", openapi_extra=ANSWERS_FILE
)
@own_transactions
def export(request: HttpRequest, agent_id: UUID, vectors: bool = True) -> StreamingHttpResponse:
    """Stream a signed seed of the agent, `application/octet-stream`; without `vectors` it is smaller."""
    access = access_of(request)
    file = temporary_file()
    try:
        export_seed(
            tenant_id=access.tenant_id,
            agent_id=agent_id,
            output=file,
            options=CaptureOptions(reason="export", with_vectors=vectors),
            actor=access.actor,
        )
    except BaseException:
        file.close()
        raise
    return streamed_file(request, file, name=f"{agent_id}.seed")


@router.post(
    "/agents/{uuid:agent_id}/seeds",
    response={201: SavedSeedResource},
    summary="Save a seed of an agent",
)
def save(request: HttpRequest, agent_id: UUID) -> Status[SavedSeedResource]:
    """Save a seed of the agent in the database."""
    saved = save_seed(agent_id=agent_id, reason=SeedReason.REQUESTED, actor=access_of(request).actor)
    return Status(201, SavedSeedResource.model_validate(saved))


@router.post(
    "/agents/{uuid:agent_id}/restore",
    response=SeedReportResource,
    auth=ADMINISTER,
    summary="Restore an agent",
)
@own_transactions
def restore(request: HttpRequest, agent_id: UUID, payload: SeedRestore) -> SeedReportResource:
    """Bring the agent back to the state of a saved seed of its own. A seed of the state before is saved first."""
    access = access_of(request)
    with _opened(access, payload.seed_id) as seed:
        report = restore_seed(
            tenant_id=access.tenant_id,
            agent_id=agent_id,
            seed=seed,
            options=RestoreOptions(skip=frozenset(payload.skip), dry_run=payload.dry_run),
            actor=access.actor,
        )
    return SeedReportResource.model_validate(report)


@router.post(
    "/agents/{uuid:agent_id}/merge",
    response=MergeReportResource,
    auth=ADMINISTER_AGENTS,
    summary="Merge what another agent learned",
)
@own_transactions
def merge(request: HttpRequest, agent_id: UUID, payload: SeedMerge) -> MergeReportResource:
    """Merge the knowledge of a saved seed of another agent: facts as memories, beliefs and preferences as proposals."""
    access = access_of(request)
    with _opened(access, payload.seed_id) as seed:
        report = merge_seed(
            tenant_id=access.tenant_id,
            agent_id=agent_id,
            seed=seed,
            options=MergeOptions(trust_foreign=payload.trust_foreign, dry_run=payload.dry_run),
            actor=access.actor,
        )
    return MergeReportResource.model_validate(report)


@router.post(
    "/agents/{uuid:agent_id}/fork",
    response={201: SeedReportResource},
    auth=ADMINISTER_AGENTS,
    summary="Fork an agent",
)
@own_transactions
def fork(request: HttpRequest, agent_id: UUID, payload: AgentFork) -> Status[SeedReportResource]:
    """Create another agent with the same memories, goals and self, and an identity of its own."""
    access = access_of(request)
    report = fork_agent(tenant_id=access.tenant_id, agent_id=agent_id, name=payload.name, actor=access.actor)
    return Status(201, SeedReportResource.model_validate(report))


@router.get("/seeds", response=ListPage[SavedSeedResource], summary="List saved seeds")
def list_seeds(
    request: HttpRequest, page: Paging, agent_id: UUID | None = None
) -> ListPage[SavedSeedResource]:
    """List the saved seeds of the tenant, or of one agent, the latest first."""
    seeds = SavedSeed.objects.all()
    if agent_id is not None:
        seeds = seeds.filter(agent_id=agent_id)
    return page_of(seeds, page, order="-at", to_resource=SavedSeedResource.model_validate)


@router.post(
    "/seeds",
    response={201: SavedSeedResource},
    auth=ADMINISTER,
    summary="Send a seed",
    openapi_extra=READS_FILE,
)
@reads_file
def upload(request: HttpRequest) -> Status[SavedSeedResource]:
    """Verify and save the seed that is the body, `application/octet-stream`; import, restore or merge it by its id."""
    access = access_of(request)
    with temporary_file() as file:
        shutil.copyfileobj(request, file)
        saved = save_upload(tenant_id=access.tenant_id, source=file, actor=access.actor)
    return Status(201, SavedSeedResource.model_validate(saved))


@router.get("/seeds/{uuid:seed_id}", response=SavedSeedResource, summary="Show a saved seed")
def show_seed(request: HttpRequest, seed_id: UUID) -> SavedSeedResource:
    """Show a saved seed."""
    return SavedSeedResource.model_validate(row_of_tenant(SavedSeed, seed_id))


@router.delete(
    "/seeds/{uuid:seed_id}", response=SavedSeedResource, auth=ADMINISTER, summary="Delete a saved seed"
)
def delete_seed(request: HttpRequest, seed_id: UUID) -> SavedSeedResource:
    """Delete a saved seed."""
    return SavedSeedResource.model_validate(
        delete_saved_seed(seed_id=seed_id, actor=access_of(request).actor)
    )


@router.get(
    "/seeds/{uuid:seed_id}/file",
    auth=ADMINISTER,
    summary="Download a saved seed",
    openapi_extra=ANSWERS_FILE,
)
def download(request: HttpRequest, seed_id: UUID) -> StreamingHttpResponse:
    """Stream the file of a saved seed, `application/octet-stream`."""
    file = download_saved_seed(seed_id=seed_id, actor=access_of(request).actor)
    return streamed_file(request, file, name=f"{seed_id}.seed")


@router.post(
    "/seeds/{uuid:seed_id}/import",
    response={201: SeedReportResource},
    auth=ADMINISTER,
    summary="Import a seed",
)
@own_transactions
def import_one(request: HttpRequest, seed_id: UUID, payload: SeedImport) -> Status[SeedReportResource]:
    """Create an agent from a saved seed, with an identity of its own; nothing is granted to it."""
    access = access_of(request)
    with _opened(access, seed_id) as seed:
        report = import_seed(
            tenant_id=access.tenant_id,
            seed=seed,
            options=ImportOptions(**payload.model_dump()),
            actor=access.actor,
        )
    return Status(201, SeedReportResource.model_validate(report))


@router.get(
    "/seeds/{uuid:seed_id}/diff/{uuid:other_id}",
    response=list[SectionDifferenceResource],
    auth=ADMINISTER,
    summary="Compare two seeds",
)
@own_transactions
def diff(request: HttpRequest, seed_id: UUID, other_id: UUID) -> list[SectionDifferenceResource]:
    """Return the differences from one saved seed to another, by section."""
    access = access_of(request)
    with _opened(access, seed_id) as first, _opened(access, other_id) as second:
        sections = compare_seeds(first, second)
    return [SectionDifferenceResource.model_validate(section) for section in sections]


def _opened(access: TokenAccess, seed_id: UUID) -> AbstractContextManager[VerifiedSeed]:
    """Open a saved seed; a token of one agent opens the seeds of this agent only."""
    if access.agent_id is not None:
        with tenant_transaction(access.tenant_id):
            require_reach(access, row_of_tenant(SavedSeed, seed_id).agent_id)
    return verified_saved_seed(tenant_id=access.tenant_id, seed_id=seed_id, actor=access.actor)
