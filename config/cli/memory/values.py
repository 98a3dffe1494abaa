"""Kinds of value that the commands of memory take."""

from __future__ import annotations

from typing import Any

import click

from arbor.errors import Invalid
from arbor.memory.trust import DEFAULT_SOURCE_TRUST, Source


class TrustedSource(click.ParamType[Source]):
    """A source of a fact: `document:harbour-log@0.9`, `person:Ana`."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Source:
        """Read it."""
        if isinstance(value, Source):
            return value
        kind, colon, rest = str(value).partition(":")
        reference, at, trust = rest.rpartition("@")
        if not colon or not kind or not rest:
            self.fail(
                f"{value!r} is no source: write KIND:NAME or KIND:NAME@TRUST, as document:log@0.9", param, ctx
            )
        try:
            if not at:
                return Source(kind=kind, reference=rest)
            return Source(kind=kind, reference=reference, trust=float(trust or DEFAULT_SOURCE_TRUST))
        except (Invalid, ValueError) as error:
            self.fail(f"{value!r} is no source: {error}", param, ctx)
