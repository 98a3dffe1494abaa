"""Inquiries: begun when the agent acts, carried on by the node `work`, which waits for the web and for models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.heartbeats.acts.desk import Desk, answer
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import ActionOutcome, ActionResult
from arbor.web.plan import Depth

#: How deep each of the slow actions goes.
DEPTHS = {"inquire_shallow": Depth.SHALLOW, "inquire_deep": Depth.DEEP}


def inquire(_: Desk, decision: Decision) -> ActionResult:
    """Begin an inquiry: what comes of it is known when `work` has done it."""
    return answer(decision, ActionOutcome.UNKNOWN, f"looking up {decision.params['question']!r}")


def pending_work(decisions: Sequence[Decision], results: Sequence[ActionResult]) -> list[dict[str, Any]]:
    """Return the inquiries that have begun, as JSON: {place, question, queries, depth}; `place` is among the results."""
    return [
        {
            "place": place,
            "question": decision.params["question"],
            "queries": decision.params["queries"],
            "depth": DEPTHS[decision.action].value,
        }
        for place, (decision, result) in enumerate(zip(decisions, results, strict=True))
        if decision.action in DEPTHS and decision.runs and result.outcome is ActionOutcome.UNKNOWN
    ]
