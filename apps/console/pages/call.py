"""Read the page of a model call: the prompt by section, and the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from apps.calls.models import ExternalCall, LedgerEntry
from apps.console import cells
from apps.console.stored_json import pretty, read_dicts, text_of
from arbor.errors import ReplyInvalid
from arbor.heartbeat.prompts.questions import sections_of
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import REPLY_KEYS
from arbor.models.ports import CallPurpose


@dataclass(frozen=True, kw_only=True)
class SectionView:
    """One section of the prompt; `share` is percent of all tokens, `hue` the index of its color in the palette.

    `cut` is the number of entries that did not fit.
    """

    name: str
    text: str
    tokens: int
    share: float
    hue: int
    cut: int = 0


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request to a model, with its reply."""

    row: ExternalCall
    paid: LedgerEntry | None
    sections: Sequence[SectionView]
    tokens: int
    messages: Sequence[tuple[str, str]]
    parsed: str
    repairs: Sequence[str]
    #: The reason why the reply cannot be parsed; empty for none.
    reply_error: str
    seconds: float | None
    #: Whether the reply is parsed for the page, as that of a heartbeat's call is.
    is_parsed: bool


@dataclass(frozen=True, kw_only=True)
class CallPage:
    """The data of a model call's page."""

    call: Call
    #: A link to what asked the model.
    asked_by: SafeString
    #: Parts left out of the prompt, and parts of the reply that were not used, one line each.
    dropped: Sequence[str]


def read_call_page(row: ExternalCall) -> CallPage:
    """Read a call of the current tenant, with its cost."""
    paid = LedgerEntry.objects.filter(call_id=row.id).first()
    dropped = row.dropped if isinstance(row.dropped, list) else []
    return CallPage(
        call=read_call(row, paid),
        asked_by=_asked_by(row),
        dropped=[text_of(item) for item in dropped if item],
    )


def _asked_by(row: ExternalCall) -> SafeString:
    if row.heartbeat_id is not None:
        return cells.link("heartbeats_heartbeat", row.heartbeat_id, "a heartbeat")
    if "step" in row.subject:
        return cells.link("workflows_workflowstep", row.subject["step"], "a step of a workflow")
    if "chat" in row.subject:
        return cells.link("contacts_chatsession", row.subject["chat"], "a conversation")
    episode = row.subject.get("episode")
    if episode:
        return cells.link("memories_episode", episode, "maintenance, about an episode")
    memories = row.subject.get("memories", ())
    if len(memories) == 1:
        return cells.link("memories_memory", memories[0], "maintenance, about a memory")
    return cells.clipped(f"maintenance, about {len(memories)} memories", 70)


def read_call(call: ExternalCall, paid: LedgerEntry | None) -> Call:
    """Read the prompt and the reply of a call; the reply of a heartbeat's call is parsed as in the heartbeat."""
    parsed, reply_error = "", ""
    repairs: Sequence[str] = ()
    # Replies to other calls have other formats.
    is_parsed = call.purpose == CallPurpose.THINK
    if call.reply and is_parsed:
        try:
            read = parse_reply(call.reply)
            decided = read.reply.model_dump(mode="json", include={*REPLY_KEYS}, exclude_defaults=True)
            parsed, repairs = pretty(decided), read.repairs
        except ReplyInvalid as error:
            reply_error = str(error)
    sections = _sections(sections_of(call.sections, call.request))
    request = call.request if isinstance(call.request, Mapping) else {}
    messages = [("system", text_of(request.get("system")))] if request.get("system") else []
    messages += [
        (str(turn.get("role", "")), text_of(turn.get("content")))
        for turn in read_dicts(request.get("messages"))
    ]
    return Call(
        row=call,
        paid=paid,
        sections=sections,
        tokens=sum(section.tokens for section in sections),
        messages=messages,
        parsed=parsed,
        repairs=repairs,
        reply_error=reply_error,
        is_parsed=is_parsed,
        seconds=(call.ended_at - call.requested_at).total_seconds() if call.ended_at else None,
    )


#: The number of colors of the palette, which sections use in turn.
_HUES = 8


def _sections(stored: Any) -> list[SectionView]:
    rows = read_dicts(stored)
    sizes = [int(row["tokens"]) if isinstance(row.get("tokens"), int | float) else 0 for row in rows]
    total = sum(sizes) or 1
    return [
        SectionView(
            name=str(row.get("name", "")),
            text=text_of(row.get("text")),
            tokens=tokens,
            share=round(tokens / total * 100, 2),
            hue=index % _HUES,
            cut=row["cut"] if isinstance(row.get("cut"), int) else 0,
        )
        for index, (row, tokens) in enumerate(zip(rows, sizes, strict=True))
    ]
