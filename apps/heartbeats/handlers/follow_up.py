"""Follow-up: whether the beat goes on with what its actions brought, and, when it does not, all its turns as one."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.heartbeats.handlers.standing import let_stand
from arbor.heartbeat.context_budget import REPLY_SHARE, estimate_tokens
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.results import ActionResult
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.turns import follow_up_text, goes_on, merge_records, merge_replies
from arbor.models.windows import window_of
from arbor.pipeline.engine import Context, NodeResult, Phase


class FollowUp:
    """Goes on to a further turn, or ends the loop."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put `goes_on` into the context; for a further turn its message, for the end the whole beat's reply and results."""
        turn: int = context["turn"]
        if context.get("failure"):
            return NodeResult(updates=_failed(context), changed=(f"turn {turn} came to nothing",))
        results: list[ActionResult] = context["results"]
        situation: Situation = context["situation"].model_copy(
            update={"energy": context["record"]["energy_end"]}
        )
        if not goes_on(situation, results, turn=turn, most=context["turns"]):
            return NodeResult(updates=_whole(context))
        text = follow_up_text(situation, results, turn=turn + 1, most=context["turns"], nonce=context["mark"])
        said = context["asked_tokens"] + estimate_tokens(context["reply_text"])
        if said + estimate_tokens(text) > _room(context["model"]):
            return NodeResult(updates=_whole(context), changed=("the model has no room for a further turn",))
        return NodeResult(
            updates=self._further(context, situation, text, said), changed=(f"goes on to turn {turn + 1}",)
        )

    def _further(self, context: Context, situation: Situation, text: str, said: int) -> dict[str, Any]:
        stands = let_stand(context)
        merged = merge_replies(context.get("earlier_reply"), context["reply"])
        noted = {note.text for note in merged.memory_notes}
        return {
            **stands,
            "goes_on": True,
            "turn": context["turn"] + 1,
            "answered": context["call_id"],
            "follow_up": text,
            "said_tokens": said,
            "situation": situation,
            "earlier_reply": merged,
            "all_results": [*context.get("all_results", []), *context["results"]],
            **_record(context, turns=context["turn"]),
            "reply": None,
            "untaken": [],
            "decisions": [],
            "results": [],
            "vectors": {text: vector for text, vector in context["vectors"].items() if text in noted},
        }


def _room(model: str) -> int:
    """Return how many tokens a prompt may take for the reply to have its share of the model's window."""
    window = window_of(model, otherwise=settings.ARBOR_MODEL_CONTEXT)
    reply: int = min(settings.ARBOR_MODEL_MAX_TOKENS, int(window * REPLY_SHARE))
    return window - reply


def _whole(context: Context) -> dict[str, Any]:
    """Return all turns as one, for those who look at the whole beat."""
    return {
        "goes_on": False,
        "reply": merge_replies(context.get("earlier_reply"), context["reply"]),
        "all_results": [*context.get("all_results", []), *context["results"]],
        **_record(context, turns=context["turn"]),
        **_at_start(context),
    }


def _failed(context: Context) -> dict[str, Any]:
    """End with the turns before: what they did is done, and that the last one failed is on record."""
    earlier: dict[str, Any] = context["earlier_record"]
    lost = {"path": f"turn {context['turn']}", "value": "", "reason": context["failure"]["reason"]}
    record = {
        **context["record"],
        **earlier,
        "dropped": [*earlier["dropped"], lost],
        "turns": context["turn"] - 1,
    }
    return {
        "goes_on": False,
        "failure": None,
        "reply": context["earlier_reply"] or Reply(),
        "record": record,
        **_at_start(context),
    }


def _record(context: Context, *, turns: int) -> dict[str, Any]:
    """Return the record with what the turns before did in front of what this one did, and a copy for the next turn."""
    record: dict[str, Any] = context["record"]
    whole = merge_records(context.get("earlier_record") or {}, record, turn=turns)
    return {"record": {**record, **whole, "turns": turns}, "earlier_record": whole, "apart": False}


def _at_start(context: Context) -> dict[str, Any]:
    """Return the situation with the energy that the beat began with: what it spent is told by its results."""
    if context["turn"] == 1:
        return {}
    start = context["record"]["energy_start"]
    return {"situation": context["situation"].model_copy(update={"energy": start})}
