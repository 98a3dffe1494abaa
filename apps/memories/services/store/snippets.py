"""The code store (seed 000, 2): code snippets from conversations and messages, stored once for each agent, found by their words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.memories.models import CodeSnippet
from apps.memories.services.store import queries
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.errors import Invalid
from arbor.memory.content import check_text
from arbor.memory.text.code import code_blocks
from arbor.memory.text.lexical import STOP_WORDS, words_of
from arbor.memory.values import SOURCE_LENGTH
from arbor.models.json_text import storable

#: The longest text of a search in characters, and the most words of the text that are searched for.
QUERY_LENGTH = 4_000
_MAX_WORDS = 64
MAX_LIMIT = 100


@dataclass(frozen=True, kw_only=True)
class SourcedTexts:
    """Texts that an agent received or wrote, and their source: `heartbeat:ID`, `chat:ID`."""

    agent_id: UUID
    texts: Sequence[str]
    source: str


def store_agent_code(*, agent_id: UUID, texts: Iterable[str], source: str) -> int:
    """Store the fenced code of one agent's texts, as `store_code` does; return the number of blocks."""
    return store_code([SourcedTexts(agent_id=agent_id, texts=tuple(texts), source=source)])


def store_code(messages: Sequence[SourcedTexts]) -> int:
    """Store the fenced code of texts of several agents, in the open transaction; return the number of blocks in the texts.

    Code that an agent has already is not changed. One statement; none without fenced code.
    """
    blocks = [
        (message, block)
        for message in messages
        for text in message.texts
        for block in code_blocks(storable(text))
    ]
    snippets = [
        CodeSnippet(
            tenant_id=current_tenant(),
            agent_id=message.agent_id,
            language=block.language,
            title=block.title,
            code=block.code,
            code_hash=block.hash,
            source=message.source[:SOURCE_LENGTH],
        )
        for message, block in blocks
    ]
    CodeSnippet.objects.bulk_create(snippets, ignore_conflicts=True)
    return len(blocks)


def delete_agent_code(*, agent_id: UUID, texts: Iterable[str]) -> None:
    """Delete the agent's snippets whose code these texts contain, in the open transaction. One statement; none without fenced code."""
    hashes = {block.hash for text in texts for block in code_blocks(storable(text))}
    if hashes:
        CodeSnippet.objects.filter(agent_id=agent_id, code_hash__in=hashes).delete()


def find_code(*, agent_id: UUID, text: str, limit: int) -> list[CodeSnippet]:
    """Return the agent's code snippets that share words with a text, best first. One statement; none for a text without words.

    Raises Invalid for a text or limit out of range.
    """
    if len(text) > QUERY_LENGTH or not 1 <= limit <= MAX_LIMIT:
        raise Invalid(
            f"a search for code has at most {QUERY_LENGTH:,} characters and a limit of 1 to {MAX_LIMIT}, got"
            f" {len(text):,} characters and a limit of {limit}"
        )
    check_text("a search for code", text)
    words = [word for word in dict.fromkeys(words_of(text)) if len(word) > 1 and word not in STOP_WORDS]
    if not words:
        return []
    rows = fetch(queries.FIND_CODE, agent=agent_id, words=words[:_MAX_WORDS], limit=limit)
    names = ("id", "language", "title", "code", "source", "created_at")
    return [
        CodeSnippet(tenant_id=current_tenant(), agent_id=agent_id, **dict(zip(names, row, strict=True)))
        for row in rows
    ]
