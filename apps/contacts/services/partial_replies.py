"""Publish the sentences of a reply while the model writes it, and read them.

The sentences are parts of a row, so that any process can show them. The row is a preview: the answer is stored independently of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from uuid import UUID

import structlog
from django.db.models import Q

from apps.authority.services.reflexes import reflex_terms
from apps.calls.services.leased_calls import LeasedCall
from apps.contacts.models import ChatMessage
from apps.contacts.services.queries import PUBLISH_SENTENCES, REPLY_PROGRESS
from apps.memories.services.embedding.embedding import embed_query
from apps.memories.services.embedding.minds import model_of
from apps.selves.services.boundaries import boundaries_of
from apps.tenants.encoding import from_json, to_json
from apps.tenants.scope import release_connection, tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.contacts.reply_progress import ReplyEvent, ReplyFollower, ReplyProgress, StoredAnswer
from arbor.contacts.reply_stream import GrowingReply, SentenceSplitter, may_show
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed, NotFound
from arbor.selves.boundaries import BoundaryRule
from arbor.selves.boundary_check import Vector

#: Seconds between two reads of a growing reply.
READ_EVERY_S = 0.15
#: The answers that a reflex or a boundary withheld, by their details: the same rule as `stored_answer`, for querysets.
WITHHELD = Q(detail__has_key="reflex") | Q(detail__contains={"boundaries": [{"withheld": True}]})

log = structlog.get_logger(__name__)


class ReplyPublisher:
    """Publishes the sentences of one attempt to write a reply; receives the pieces of the model's text.

    At a sentence that a reflex or a boundary may withhold, or that cannot be checked, publishing ends: the check of the whole reply
    decides what becomes of the rest. No error here ends the call.
    """

    def __init__(self, call: LeasedCall) -> None:
        self._call = call
        self._reader = GrowingReply()
        self._splitter = SentenceSplitter()
        self._shown = ""
        self._is_over = False
        self._rules: tuple[tuple[BoundaryRule, ...], EmbeddingModel] | None = None

    def __call__(self, piece: str) -> None:
        """Add a piece of the model's text."""
        if self._is_over:
            return
        try:
            sentences = self._splitter.feed(self._reader.feed(piece))
            if sentences:
                try:
                    self._publish(sentences)
                finally:
                    release_connection()
        except EmbeddingFailed as error:
            log.warning("reply_publication_ended", call_id=str(self._call.call_id), error=str(error))
            self._is_over = True
        except Exception:
            # An error of the preview must not fail the call: the whole reply is shown when it is stored.
            log.exception("reply_publication_failed", call_id=str(self._call.call_id))
            self._is_over = True

    def _publish(self, sentences: list[str]) -> None:
        permitted = [*self._permitted(sentences)]
        self._is_over = len(permitted) < len(sentences)
        if permitted:
            with tenant_transaction(self._call.tenant_id):
                stored = change(
                    PUBLISH_SENTENCES,
                    turn=UUID(self._call.subject["turn"]),
                    attempt=self._call.attempt,
                    sentences=to_json(permitted),
                )
            self._is_over = self._is_over or not stored

    def _permitted(self, sentences: list[str]) -> Iterator[str]:
        boundaries, model = self._load_rules()
        examples = [example for boundary in boundaries for example in boundary.examples]
        texts = [*sentences, *examples]
        vectors: dict[str, Vector] = {}
        if examples:
            embedded = embed_query(tenant_id=self._call.tenant_id, texts=texts, model=model)
            vectors = dict(zip(texts, embedded.tolist(), strict=True))
        for sentence in sentences:
            if not may_show(
                sentence,
                before=self._shown,
                boundaries=boundaries,
                vectors=vectors,
                thinking=self._reader.thinking,
                reflexes=reflex_terms(),
            ):
                return
            self._shown += sentence
            yield sentence

    def _load_rules(self) -> tuple[tuple[BoundaryRule, ...], EmbeddingModel]:
        if self._rules is None:
            with tenant_transaction(self._call.tenant_id):
                self._rules = boundaries_of(self._call.agent_id), model_of(self._call.agent_id)
        return self._rules


def follow_reply(*, tenant_id: UUID, turn_id: UUID, is_over: Callable[[], bool]) -> Iterator[ReplyEvent]:
    """Yield the events of a growing reply until its answer is stored, or nobody writes it any more (`is_over`).

    Outside any transaction. Raises NotFound.
    """
    follower = ReplyFollower()
    while True:
        # Asked before the row is read, so that an answer stored in between is not missed.
        was_over = is_over()
        with tenant_transaction(tenant_id):
            progress = read_progress(turn_id=turn_id)
        for event in follower.advance(progress):
            yield event
            if event.is_last:
                return
        if was_over:
            return
        time.sleep(READ_EVERY_S)


def read_progress(*, turn_id: UUID) -> ReplyProgress:
    """Read how far the reply to a person's turn has come, in the open transaction. One statement. Raises NotFound."""
    rows = fetch(REPLY_PROGRESS, turn=turn_id)
    if not rows:
        raise NotFound(f"there is no turn {turn_id} of a person in this tenant")
    attempt, sentences, answer_id, content, error, model, detail = rows[0]
    answer = None
    if answer_id is not None:
        answer = stored_answer(
            ChatMessage(id=answer_id, content=content, error=error, model=model, detail=from_json(detail))
        )
    return ReplyProgress(attempt=attempt or 0, sentences=from_json(sentences or "[]"), answer=answer)


def stored_answer(row: ChatMessage) -> StoredAnswer:
    """Return the stored end of a turn from the row of the agent's turn."""
    return StoredAnswer(
        id=str(row.id),
        content=row.content,
        error=row.error,
        model=row.model,
        is_withheld="reflex" in row.detail
        or any(match.get("withheld") is True for match in row.detail.get("boundaries", [])),
        is_canceled=bool(row.detail.get("canceled")),
    )
