"""Render cells of lists as escaped HTML."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from arbor.embedding.models import REFUSED, is_refused
from arbor.heartbeat.budgets import BudgetKind
from arbor.ids import read_id
from arbor.quotations import clip

#: The tone of a status: good, busy, warn, bad or calm. A status without an entry is calm.
TONES: dict[str, str] = {
    # agents
    "active": "good",
    "paused": "warn",
    "dormant": "warn",
    "stopped": "calm",
    "created": "busy",
    # heartbeats, calls, intents, goals
    "done": "good",
    "complete": "good",
    "completed": "good",
    "running": "busy",
    "waiting": "busy",
    "pending": "busy",
    "queued": "busy",
    "locked": "busy",
    "failed": "bad",
    "abandoned": "bad",
    "skipped": "calm",
    # workflows, channels
    "succeeded": "good",
    "answered": "busy",
    "canceled": "warn",
    "enabled": "good",
    "disabled": "warn",
    # messages, deliveries
    "sent": "good",
    "perceived": "good",
    "confirmed": "good",
    "ignored": "calm",
    "retrying": "warn",
    "resending": "busy",
    "sending": "busy",
    # schedules
    "idle": "calm",
    "off": "calm",
    # beliefs and aspects
    "held": "good",
    "questioned": "warn",
    "dropped": "calm",
    # steps and actions
    "success": "good",
    "run": "good",
    "partial": "warn",
    "retry": "warn",
    "unknown": "warn",
    "failure": "bad",
    "blocked": "bad",
    # capabilities, modes of trust rules
    "in_force": "good",
    "allow": "good",
    "auto": "good",
    "ask": "warn",
    "block": "bad",
    # tenants, approvals
    "suspended": "warn",
    "denied": "bad",
}

#: The pages of nodes of the graph (`arbor.memory.relations.GraphNodeKind`).
NODE_PAGES: dict[str, str] = {
    "memory": "memories_memory",
    "concept": "memories_concept",
    "belief": "selves_belief",
    "aspect": "selves_identityaspect",
    "goal": "goals_goal",
}

#: Page and label of each kind of origin, which rows name as `KIND:ID`.
ORIGINS: dict[str, tuple[str, str]] = {
    "heartbeat": ("heartbeats_heartbeat", "a heartbeat"),
    "chat": ("contacts_chatsession", "a conversation"),
    "proposal": ("selves_proposal", "a proposal"),
    "memory": ("memories_memory", "a memory"),
    "episode": ("memories_episode", "an episode"),
    "agent": ("agents_agent", "an agent"),
}

#: Characters shown of a node's text.
NODE_LENGTH = 80

#: A valence within this distance of 0 is shown as neither good nor bad.
NEUTRAL = 0.1

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def tone_of(status: str) -> str:
    """Return the tone of a status."""
    return TONES.get(status, "calm")


def badge(text: str, tone: str = "") -> SafeString:
    """Return a status as a colored label, by default in the tone of the status."""
    return format_html(
        '<span class="ar-badge ar-{}">{}</span>', tone or tone_of(text), str(text).replace("_", " ")
    )


def span(seconds: float) -> str:
    """Return a duration in a readable unit."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    if seconds <= _MINUTE * 1.5:
        return f"{seconds:.0f} s"
    if seconds <= _HOUR * 1.5:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < _DAY * 2:
        return f"{seconds / _HOUR:.0f} h"
    return f"{seconds / _DAY:.0f} d"


def milliseconds(value: float) -> str:
    """Return a number of milliseconds with its unit."""
    if value < 10:
        return f"{value:.1f} ms"
    if value < 1000:
        return f"{value:.0f} ms"
    return span(value / 1000)


def dollars(value: Decimal | int | None) -> str:
    """Return a price in US dollars, with as many digits as it needs."""
    if value is None:
        return "price unknown"
    if value == 0:
        return "$0"
    if value >= 1:
        return f"${value:,.2f}"
    return f"${value:.4f}" if value >= Decimal("0.0001") else f"${value:.8f}".rstrip("0")


def relative(moment: datetime, now: datetime) -> str:
    """Return a time relative to now, in words."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 2:
        return "now"
    return f"{span(round(seconds))} ago" if seconds > 0 else f"in {span(round(-seconds))}"


def when(moment: datetime | None) -> SafeString:
    """Return a relative time, with the exact time on hovering."""
    if moment is None:
        return format_html('<span class="ar-subtle">{}</span>', "never")
    return format_html(
        '<time class="ar-nowrap" datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S %Z"),
        relative(moment, timezone.now()),
    )


def exact(moment: datetime) -> SafeString:
    """Return a time to the second in UTC, which `console.js` writes in the zone of the viewer."""
    return format_html(
        '<time class="ar-nowrap" data-exact datetime="{}">{}</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S %Z"),
    )


def due(moment: datetime) -> SafeString:
    """Return a relative time in the future; a time that has passed is marked as due."""
    late = moment < timezone.now() - timedelta(seconds=2)
    return format_html("{}{}", "due " if late else "", when(moment))


def duration(value: timedelta | None) -> str:
    """Return a duration; a dash for none."""
    return span(value.total_seconds()) if value is not None else "–"


def page_of(model: str, key: UUID | str) -> str:
    """Return the address of a row's page; `model` is `app_model`."""
    return reverse(f"admin:{model}_change", args=[key])


def link(model: str, key: UUID | str, text: Any) -> SafeString:
    """Return a link to a row's page."""
    return format_html('<a class="ar-link" href="{}">{}</a>', page_of(model, key), text)


def node(kind: str, key: UUID, text: str) -> SafeString:
    """Return a link to a node of the graph by the beginning of its text, with its kind below."""
    shown = clipped(text, NODE_LENGTH)
    # Another version of Arbor may have stored a kind without a page here.
    linked = link(NODE_PAGES[kind], key, shown) if kind in NODE_PAGES else shown
    return format_html('<div class="ar-node">{}<small class="ar-subtle">{}</small></div>', linked, kind)


def words_of_origin(text: str) -> str:
    """Return an origin in words instead of an id."""
    kind, row_id = _origin(text)
    return ORIGINS[kind][1] if row_id else text


def embedder(model: str) -> str:
    """Write the embedder of a text by its `embedding_model`, without the provider, or why the text has no vector."""
    name = model.removeprefix(REFUSED).rpartition("/")[2]
    return f"refused by {name}" if is_refused(model) else name or "not yet"


def origin(text: str) -> SafeString:
    """Return an origin, linked if it has a page."""
    kind, row_id = _origin(text)
    if row_id is None:
        return format_html("{}", text or "–")
    model, words = ORIGINS[kind]
    return link(model, row_id, words)


def _origin(text: str) -> tuple[str, UUID | None]:
    kind, _, key = text.partition(":")
    return kind, read_id(key) if kind in ORIGINS else None


def feeling(valence: float, intensity: float) -> SafeString:
    """Return an emotion as a label with its valence, -1 to 1; on hovering with its intensity, 0 to 1."""
    tone = "good" if valence > NEUTRAL else "bad" if valence < -NEUTRAL else "calm"
    title = f"valence {valence:+.2f} of -1 to 1, intensity {intensity:.2f} of 1"
    return format_html('<span class="ar-badge ar-{}" title="{}">{}</span>', tone, title, f"{valence:+.2f}")


def spending(start: float | None, end: float | None, unit: str) -> str:
    """Return the budget before and after a heartbeat, with its unit unless it is energy; a dash for missing numbers."""
    if start is None and end is None:
        return "–"
    both = " → ".join("–" if value is None else f"{value:g}" for value in (start, end))
    return f"{both} {unit}" if unit and unit != BudgetKind.ENERGY else both


def mono(text: str, *, shown: int = 0) -> SafeString:
    """Return an id or hash in fixed width, cut to `shown` characters."""
    cut = f"{text[:shown]}…" if shown and len(text) > shown else text
    return format_html('<span class="ar-mono" title="{}">{}</span>', text, cut)


def titled(title: str, below: str) -> SafeString:
    """Return a name with a smaller line below it."""
    return format_html('<span class="ar-strong">{}</span><br><span class="ar-subtle">{}</span>', title, below)


def clipped(text: str, longest: int = 160) -> SafeString:
    """Return the beginning of a text on one line, with more of the text on hovering."""
    line = " ".join(text.split())
    return format_html('<span class="ar-clip" title="{}">{}</span>', line[:600], clip(line, longest))


def meter(value: float, of: float) -> SafeString:
    """Return a small bar with its number."""
    share = min(max(value / of, 0.0), 1.0) if of else 0.0
    return format_html(
        '<span class="ar-meter" title="{} of {}"><span class="ar-meter-track"><span data-width="{}"></span></span>{}</span>',
        f"{value:g}",
        f"{of:g}",
        round(share * 100),
        f"{value:g}",
    )


def listed(texts: Sequence[Any]) -> SafeString:
    """Return texts, each on a line; the word "none" for an empty list."""
    if not texts:
        return format_html('<span class="ar-subtle">{}</span>', "none")
    return format_html_join("", "<div>{}</div>", ((text,) for text in texts))


def block(text: str) -> SafeString:
    """Return a longer text with its line breaks, in fixed width; the word "none" for an empty one."""
    if not text.strip():
        return listed([])
    return format_html('<pre class="ar-pre">{}</pre>', text)
