"""Read the turns before a turn of a conversation: the latest ones whole, those before as summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import CharField, Count, QuerySet, Sum, TextField, Value
from django.db.models.functions import Cast, Concat, Length

from apps.contacts.models import ChatMessage, ChatSession
from apps.memories.models import Episode
from arbor.contacts.chat import EPISODES_SHOWN, SHOWN_TURNS, SUMMARIZED_TURNS
from arbor.contacts.chat_prompt import shown_turns
from arbor.contacts.chat_summary import summarize_turns
from arbor.contacts.chat_view import TurnSummary, TurnView
from arbor.contacts.values import Speaker
from arbor.memory.episodes import DEFAULT_GAP
from arbor.models.token_counts import CountTokens


@dataclass(frozen=True, kw_only=True)
class EarlierTurns:
    """The turns before a turn: the shown ones, oldest first, and summaries of those before them."""

    shown: Sequence[TurnView]
    summaries: Sequence[TurnSummary] = ()
    #: The number of turns that are not shown, and their tokens; those of turns too old to be read are estimated by their length.
    not_shown: int = 0
    not_shown_tokens: int = 0


class _Turn(NamedTuple):
    session_id: UUID
    view: TurnView


def turns_before(turn: ChatMessage, *, count: CountTokens) -> EarlierTurns:
    """Return the latest turns with this person before `turn`, and summaries of still earlier ones.

    Turns of earlier conversations with the same person are included, but not those of other conversations that the person's
    program keeps apart; a turn without an answer is left out. One statement for fewer than 20 turns, else two to four.
    """
    sessions = ChatSession.objects.filter(
        agent_id=turn.session.agent_id, person=turn.session.person, client_key=turn.session.client_key
    )
    earlier = _before(turn)
    latest = _read_turns(earlier, 0, SHOWN_TURNS)
    shown = shown_turns([row.view for row in latest])
    further = _read_turns(earlier, SHOWN_TURNS, SUMMARIZED_TURNS) if len(latest) == SHOWN_TURNS else []
    before = [*further, *latest[: len(latest) - len(shown)]]
    if not before:
        return EarlierTurns(shown=shown)
    summaries: list[TurnSummary] = []
    left: Sequence[_Turn] = before
    if len(latest) == SHOWN_TURNS:
        until = shown[0].at if shown else turn.at
        summaries, left = _summaries_of_episodes(
            sessions, before, agent_id=turn.session.agent_id, until=until, count=count
        )
    summaries = sorted(
        [*summaries, *_summarize_by_rule(left, count=count)], key=lambda summary: summary.started_at
    )
    tokens = sum(summary.tokens for summary in summaries)
    unread = 0
    if len(further) == SUMMARIZED_TURNS:
        unread, characters = _count_unread(earlier, [*further, *latest])
        tokens += characters * tokens // max(sum(len(row.view.text) for row in before), 1)
    return EarlierTurns(
        shown=shown, summaries=summaries, not_shown=len(before) + unread, not_shown_tokens=tokens
    )


def texts_shown_before(turn: ChatMessage) -> frozenset[str]:
    """Return the texts of the turns that `turns_before` shows. One statement."""
    latest = _read_turns(_before(turn), 0, SHOWN_TURNS)
    return frozenset(view.text for view in shown_turns([row.view for row in latest]))


def _before(turn: ChatMessage) -> QuerySet[ChatMessage]:
    return ChatMessage.objects.filter(
        session__agent_id=turn.session.agent_id,
        session__person=turn.session.person,
        session__client_key=turn.session.client_key,
        at__lt=turn.at,
        error="",
    )


def _read_turns(turns: QuerySet[ChatMessage], skipped: int, most: int) -> list[_Turn]:
    """Return the latest turns but for `skipped`, oldest first."""
    columns = ("session_id", "id", "speaker", "content", "at")
    rows = list(turns.order_by("-at", "-id").values_list(*columns)[skipped : skipped + most])
    return [
        _Turn(session_id, TurnView(id=str(id_), speaker=Speaker(speaker), text=text, at=at))
        for session_id, id_, speaker, text, at in reversed(rows)
    ]


def _count_unread(turns: QuerySet[ChatMessage], read: Sequence[_Turn]) -> tuple[int, int]:
    """Return the number of turns that were not read, and their characters."""
    whole = turns.aggregate(turns=Count("id"), characters=Sum(Length("content")))
    known = sum(len(row.view.text) for row in read)
    return max(whole["turns"] - len(read), 0), max(whole["characters"] - known, 0)


def _summarize_by_rule(turns: Sequence[_Turn], *, count: CountTokens) -> list[TurnSummary]:
    return [summarize_turns([row.view for row in turns], count=count)] if turns else []


def _summaries_of_episodes(
    sessions: QuerySet[ChatSession],
    before: Sequence[_Turn],
    *,
    agent_id: UUID,
    until: datetime,
    count: CountTokens,
) -> tuple[list[TurnSummary], list[_Turn]]:
    """Return the summaries of the latest episodes that ended before `until`, and the turns that none of them covers."""
    names = sessions.annotate(name=Concat(Value("chat:"), Cast("id", TextField()), output_field=CharField()))
    episodes = (
        Episode.objects.filter(agent_id=agent_id, session__in=names.values("name"), last_at__lt=until)
        .exclude(summary="")
        .order_by("-started_at")
        .values_list("id", "session", "started_at", "last_at", "summary", "summarized_by", "size")
    )
    summaries: list[TurnSummary] = []
    left = list(before)
    for id_, session, started_at, last_at, summary, by, size in episodes[:EPISODES_SHOWN]:
        # An answer has the time at which it was stored, its memory that of the question.
        covered = [
            row
            for row in left
            if f"chat:{row.session_id}" == session and started_at <= row.view.at < last_at + DEFAULT_GAP
        ]
        left = [row for row in left if row not in covered]
        summaries.append(
            TurnSummary(
                text=summary,
                turns=len(covered) or size,
                tokens=sum(count(row.view.text) for row in covered),
                started_at=started_at,
                last_at=last_at,
                first_id=covered[0].view.id if covered else "",
                last_id=covered[-1].view.id if covered else "",
                episode_id=str(id_),
                by=by,
            )
        )
    return summaries, left
