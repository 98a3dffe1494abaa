"""Template filters and tags of the console."""

from __future__ import annotations

import shlex
from datetime import datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.console import cells
from apps.contacts.models import Channel, OutboxMessage, SignalWebhook
from apps.contacts.services.channels import redact_target
from apps.heartbeats.models import Heartbeat
from apps.tools.models import ToolServer
from arbor.adapters.webhook import redact_url
from arbor.heartbeat.budgets import amount_text
from arbor.quotations import bounded_figure

register = template.Library()


@register.filter
def ago(moment: datetime | Literal[""] | None) -> SafeString:
    """Write a relative time, with the exact time on hovering."""
    # Templates replace the fields of a missing row by empty texts.
    return cells.when(moment or None)


@register.filter
def exact(moment: datetime) -> SafeString:
    """Write a time to the second, in UTC; with a script, in the zone of the viewer."""
    return cells.exact(moment)


@register.filter
def due(moment: datetime) -> SafeString:
    """Write a relative time in the future; a time that has passed is marked as due."""
    return cells.due(moment)


@register.filter
def ms(value: float | None) -> str:
    """Write a number of milliseconds with its unit."""
    return "–" if value is None else cells.milliseconds(value)


@register.filter
def seconds(value: float | None) -> str:
    """Write a number of seconds with its unit."""
    return "–" if value is None else cells.span(value)


@register.filter
def count(value: float | None) -> str:
    """Write a number with thousands separators."""
    return "–" if value is None else f"{value:,.0f}"


@register.filter
def bounded(value: int, limit: int) -> str:
    """Write a count that stops at a limit."""
    return bounded_figure(value, limit)


@register.filter
def short_count(value: int) -> str:
    """Write a number from 10,000 on in three digits and a letter."""
    if value < 10_000:
        return f"{value:,}"
    # Rounded first: 999,900 is 1M, not 1,000k.
    rounded = float(f"{value:.3g}")
    size, letter = next(
        (size, letter)
        for size, letter in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k"))
        if rounded >= size
    )
    return f"{rounded / size:.3g}{letter}"


@register.filter
def energy(value: float | None) -> str:
    """Write an amount of energy."""
    return "–" if value is None else f"{value:g}"


register.filter("amount", amount_text)


@register.filter
def spending(heartbeat: Heartbeat) -> str:
    """Write the budget before and after a heartbeat, with its unit."""
    return cells.spending(heartbeat.energy_start, heartbeat.energy_end, heartbeat.energy_unit)


@register.filter
def percent(value: float) -> str:
    """Write a share of 1 as percent, without the sign."""
    return f"{min(max(value, 0.0), 1.0) * 100:.0f}"


@register.filter
def dollars(value: Decimal | None) -> str:
    """Write a price in US dollars, with as many digits as it needs."""
    return cells.dollars(value)


#: What browsers write in their `User-Agent`, the most telling first, and their names; then systems.
_BROWSERS = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
_SYSTEMS = ("Windows", "Android", "iPhone", "iPad", "Mac OS X", "Linux")


@register.filter
def browser(text: str) -> str:
    """Write the name of a browser and of its system; the beginning of the text for an unknown one."""
    name = next((name for sign, name in _BROWSERS.items() if sign in text), "")
    system = next((system for system in _SYSTEMS if system in text), "")
    return f"{name} on {system}" if name and system else text[:60]


@register.filter
def shell(text: str) -> str:
    """Write a text as one argument of a command."""
    return shlex.quote(text)


@register.filter
def commands(text: str) -> SafeString:
    """Write a text, with the parts between backticks as code."""
    parts = text.split("`")
    return format_html_join(
        "",
        "{}",
        ((format_html("<code>{}</code>", part) if place % 2 else part,) for place, part in enumerate(parts)),
    )


@register.filter
def words(value: str) -> str:
    """Write a name of several words without its underscores."""
    return str(value).replace("_", " ")


@register.filter
def embedder(model: str) -> str:
    """Write the embedder of a text, or why the text has no vector."""
    return cells.embedder(model)


@register.filter
def origin(text: str) -> SafeString:
    """Write an origin, linked if it has a page."""
    return cells.origin(text)


@register.filter
def badge(text: str) -> SafeString:
    """Write a status as a colored label."""
    return cells.badge(text)


@register.filter
def tone(status: str) -> str:
    """Return the tone of a status, which names its CSS class."""
    return cells.tone_of(status)


@register.filter
def target(row: Channel | OutboxMessage | SignalWebhook | ToolServer) -> str:
    """Write the target of a channel, message, webhook or tool server, without secret parts."""
    return redact_url(row.url) if isinstance(row, SignalWebhook | ToolServer) else redact_target(row)


@register.simple_tag
def page(model: str, key: UUID | str) -> str:
    """Return the address of a row's page; `model` is `app_model`."""
    return cells.page_of(model, key)


@register.simple_tag
def feeling(valence: float, intensity: float) -> SafeString:
    """Write an emotion as a colored label."""
    return cells.feeling(valence, intensity)
