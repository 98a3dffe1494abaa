"""Seeds: whole agents as signed files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from arbor_client.calls import Call, Id, PagedCall, Rows, decoder, delete, get, listed, post, rows_of, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class SavedSeed:
    """A saved seed."""

    id: UUID
    #: The agent of the seed, which may be destroyed or elsewhere.
    agent_id: UUID
    name: str
    public_id: str
    #: requested, restore, merge, uploaded, reembed or destroy.
    reason: str
    #: The digest of the agent's state: equal states have equal digests.
    digest: str
    bytes: int
    rows: dict[str, int]
    actor: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class SeedReport:
    """The result of an import, a fork or a restore."""

    agent_id: UUID
    name: str
    digest: str
    #: The number of written rows by section.
    rows: dict[str, int]
    with_vectors: bool
    dry_run: bool
    #: The seed that was saved before; None for a new agent.
    saved_seed_id: UUID | None
    #: The number of rows that were left out, because they refer to what the agent does not have, by section.
    dropped: dict[str, int]
    #: Columns of the seed that this Arbor does not have, by section.
    unknown: dict[str, list[str]]
    #: The capabilities that a new agent asks for; none is granted.
    requests: list[str]


@dataclass(frozen=True, kw_only=True)
class SeedConflict:
    """A row of a seed that contradicts what the agent has."""

    section: str
    subject: str
    own: str
    other: str


@dataclass(frozen=True, kw_only=True)
class MergeReport:
    """The result of a merge."""

    agent_id: UUID
    name: str
    #: The agent of the seed, and the digest that new memories name as their source.
    from_name: str
    digest: str
    #: New memories, new proposals, and rows that the agent has too, by section.
    memories: int
    proposals: int
    known: dict[str, int]
    conflicts: list[SeedConflict]
    #: Memories left out because they have expired.
    expired: int
    #: Beliefs and preferences for which there was no room among the proposals.
    postponed: int
    dry_run: bool
    saved_seed_id: UUID | None


@dataclass(frozen=True, kw_only=True)
class RowDifference:
    """A difference of one row."""

    #: added, removed or changed.
    change: str
    label: str
    fields: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SectionDifference:
    """The differences of a section, the first 20 with their values."""

    name: str
    added: int
    removed: int
    changed: int
    same: int
    examples: list[RowDifference]


class Seeds[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about seeds."""

    @operation
    def export(self, agent_id: Id, *, vectors: bool = True) -> Call[bytes]:
        """Return a signed seed of an agent as the bytes of a file."""
        return _file(f"/agents/{segment(agent_id)}/seed", vectors=vectors)

    @operation
    def save(self, agent_id: Id) -> Call[SavedSeed]:
        """Save a seed of an agent in the database."""
        return post(SavedSeed, f"/agents/{segment(agent_id)}/seeds")

    @operation
    def restore(
        self, agent_id: Id, *, seed_id: Id, skip: Iterable[str] = (), dry_run: bool = False
    ) -> Call[SeedReport]:
        """Bring an agent back to a saved seed of its own; `skip`: profile, self, memories, goals, state, policy."""
        body = {"seed_id": seed_id, "skip": skip, "dry_run": dry_run}
        return post(SeedReport, f"/agents/{segment(agent_id)}/restore", body)

    @operation
    def merge(
        self, agent_id: Id, *, seed_id: Id, trust_foreign: bool = False, dry_run: bool = False
    ) -> Call[MergeReport]:
        """Merge what the agent of a saved seed learned into an agent."""
        body = {"seed_id": seed_id, "trust_foreign": trust_foreign, "dry_run": dry_run}
        return post(MergeReport, f"/agents/{segment(agent_id)}/merge", body)

    @operation
    def fork(self, agent_id: Id, *, name: str) -> Call[SeedReport]:
        """Create another agent with the same memories, goals and self."""
        return post(SeedReport, f"/agents/{segment(agent_id)}/fork", {"name": name})

    @listing
    def list(self, *, agent_id: Id | None = None, limit: int | None = None) -> PagedCall[SavedSeed]:
        """List the saved seeds of the tenant, or of one agent, the latest first."""
        return listed(SavedSeed, "/seeds", agent_id=agent_id, limit=limit)

    @operation
    def upload(self, content: bytes) -> Call[SavedSeed]:
        """Send a seed, which is verified and saved; import, restore or merge it by its id."""
        return Call(
            method="POST",
            path="/seeds",
            parse=decoder(SavedSeed),
            kind=SavedSeed,
            content=content,
            idempotency_key=str(uuid4()),
        )

    @operation
    def get(self, seed_id: Id) -> Call[SavedSeed]:
        """Return a saved seed."""
        return get(SavedSeed, f"/seeds/{segment(seed_id)}")

    @operation
    def delete(self, seed_id: Id) -> Call[SavedSeed | None]:
        """Delete a saved seed."""
        return delete(SavedSeed, f"/seeds/{segment(seed_id)}")

    @operation
    def download(self, seed_id: Id) -> Call[bytes]:
        """Return the file of a saved seed."""
        return _file(f"/seeds/{segment(seed_id)}/file")

    @operation
    def import_agent(
        self, seed_id: Id, *, name: str = "", trust_foreign: bool = False, dry_run: bool = False
    ) -> Call[SeedReport]:
        """Create an agent from a saved seed, with an identity of its own."""
        body = {"name": name, "trust_foreign": trust_foreign, "dry_run": dry_run}
        return post(SeedReport, f"/seeds/{segment(seed_id)}/import", body)

    @operation
    def diff(self, seed_id: Id, other_id: Id) -> Call[Rows[SectionDifference]]:
        """Compare two saved seeds."""
        return rows_of(
            get(SectionDifference, f"/seeds/{segment(seed_id)}/diff/{segment(other_id)}"), under=""
        )


def _file(path: str, **query: Any) -> Call[bytes]:
    return Call(method="GET", path=path, parse=bytes, query=query, answers_file=True)
