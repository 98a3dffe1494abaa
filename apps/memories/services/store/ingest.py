"""Store the turns of a conversation's file as memories in batches, each committed before the next is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.store.appraisal import lasting
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.errors import ConversationInvalid
from arbor.memory.conversations.conversation import Conversation, ConversationFormat, open_conversation
from arbor.memory.conversations.turns import BadLine, Turn
from arbor.memory.values import SOURCE_LENGTH, NewMemory

#: The most turns of one batch, and about the most characters: a batch is in memory at once.
BATCH = 500
_BATCH_CHARACTERS = 1_000_000
#: The most unreadable lines that a result lists.
MAX_BAD_LINES = 1_000

#: Called with the number of the line that was read, as `Turn.line` counts, and of the last line.
type OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class IngestResult:
    """The result of reading a conversation."""

    format: ConversationFormat
    #: The numbers of memories that are new or restored, and of turns that the agent remembered already.
    stored: int
    duplicates: int
    sessions: int
    #: The number of lines that could not be read, and the first of them.
    bad: int
    bad_lines: tuple[BadLine, ...]

    @property
    def turns(self) -> int:
        """The number of turns in the file."""
        return self.stored + self.duplicates


@dataclass(kw_only=True)
class _Tally:
    """The counts of a running ingest."""

    turns: int = 0
    stored: int = 0
    bad: int = 0
    line: int = 0
    sessions: set[str] = field(default_factory=set)
    bad_lines: list[BadLine] = field(default_factory=list)

    def count(self, item: Turn | BadLine) -> None:
        if isinstance(item, Turn):
            self.line = item.line
            self.turns += 1
            self.sessions.add(item.session)
            return
        self.line = item.number
        self.bad += 1
        if len(self.bad_lines) < MAX_BAD_LINES:
            self.bad_lines.append(item)


def ingest(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    path: Path,
    actor: str,
    form: ConversationFormat | None = None,
    sample: str | None = None,
    progress: OnProgress | None = None,
) -> IngestResult:
    """Store the turns of a conversation's file as episodic memories of an agent, each with `ingest:FILE` as its source.

    The memories are lasting, or permanent if their text asks for that. A second run stores only turns that are not stored yet, such
    as the rest after an interruption. Lines that cannot be read are listed, and the reading continues. Turns without a time get the
    time of the file. Raises NotFound for the agent, and ConversationInvalid for a file that cannot be read at all.
    """
    with tenant_transaction(tenant_id):
        agent = agent_by_id(agent_id)
    conversation = open_conversation(path, start=_time_of(path), sample=sample, form=form)
    name = path.name.encode(errors="replace").decode()
    source = f"ingest:{name}"[:SOURCE_LENGTH]
    tally = _Tally()
    for batch in _batches(conversation, tally, source):
        tally.stored += remember(tenant_id=tenant_id, agent_id=agent_id, memories=batch).stored
        if progress is not None:
            progress(tally.line, conversation.total)
    result = IngestResult(
        format=conversation.format,
        stored=tally.stored,
        duplicates=tally.turns - tally.stored,
        sessions=len(tally.sessions),
        bad=tally.bad,
        bad_lines=tuple(tally.bad_lines),
    )
    with tenant_transaction(tenant_id):
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            agent_id=agent_id,
            message=f"read {name} into the memory of {agent.name}",
            detail={"stored": result.stored, "duplicates": result.duplicates, "bad": result.bad},
        )
    return result


def _time_of(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise ConversationInvalid(f"{path} cannot be read: {error.strerror}") from error


def _batches(conversation: Conversation, tally: _Tally, source: str) -> Iterator[list[NewMemory]]:
    batch: list[NewMemory] = []
    characters = 0
    for item in conversation.items:
        tally.count(item)
        if isinstance(item, Turn):
            batch.append(lasting(item.as_memory(source=source)))
            characters += len(item.text)
        if len(batch) == BATCH or characters > _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
