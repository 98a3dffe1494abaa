"""The prompt's parts about the agent itself."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.heartbeat.sections.text import Data, line
from arbor.heartbeat.situation import AspectView, BeliefView
from arbor.selves.values import Standing


def identity(aspects: Sequence[AspectView], data: Data) -> str:
    if not aspects:
        return ""
    return "## Who you take yourself to be\n" + data.block(
        f"[{aspect.id}] {aspect.kind.replace('_', ' ')}{_doubt(aspect.status)}: {line(aspect.content)}"
        for aspect in aspects
    )


def beliefs(beliefs: Sequence[BeliefView], data: Data) -> str:
    if not beliefs:
        return ""
    return "## What you believe\n" + data.block(
        f"[{belief.id}] {belief.category}, {belief.confidence:.0%} sure{_doubt(belief.status)}:"
        f" {line(belief.statement)}"
        for belief in beliefs
    )


def _doubt(status: Standing) -> str:
    return ", in doubt" if status is Standing.QUESTIONED else ""
