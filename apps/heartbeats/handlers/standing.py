"""What stands of a heartbeat, whatever becomes of it: once its actions are committed, so is what goes with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.agents.services.state import write_state
from apps.heartbeats.models import Percept
from arbor.heartbeat.failure_modes import NoticeKind, Pulse, notices_of
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.turns import merge_records
from arbor.pipeline.engine import Context

#: What the reason of a heartbeat that failed after its actions says besides.
STANDS = "what it did before stands"


def has_acted(context: Context) -> bool:
    """Tell whether actions of the heartbeat were carried out."""
    return "energy_end" in context.get("record", {})


def let_stand(context: Context) -> dict[str, Any]:
    """Write what the actions so far cost and changed about the agent, and that what the prompt showed was heard.

    For a heartbeat that has acted and is about to suspend, or to fail: the actions are committed with this. All values
    are absolute, so `record` writes them once more without harm. One statement, and once in a heartbeat one more for
    what was heard, if anything was; returns what the context remembers of it.
    """
    write_state(agent_id=UUID(context["agent_id"]), columns=context.get("state", {}))
    situation: Situation = context["situation"]
    heard = [UUID(percept.id) for percept in situation.percepts]
    if not heard or context.get("heard"):
        return {}
    # They point at the heartbeat's row, which exists: it suspended before its first action.
    Percept.objects.filter(id__in=heard).update(heartbeat_id=UUID(context["heartbeat_id"]))
    return {"heard": True}


def noticed_after(state: Mapping[str, Any], *, nops: int) -> dict[str, Any]:
    """Return the agent's state with what was noticed before the beat, but unusable replies as the beat leaves them."""
    if "notices" not in state:
        return {**state}
    now = [each.model_dump(mode="json") for each in notices_of(Pulse(nops=nops))]
    others = [each for each in state["notices"] if each["kind"] != NoticeKind.INVALID_REPLIES]
    order = [*NoticeKind]
    return {**state, "notices": sorted([*others, *now], key=lambda each: order.index(each["kind"]))}


def let_be_noticed(context: Context) -> None:
    """Write what was noticed before a heartbeat that failed and did nothing: who looks at it wants to know. One statement."""
    state: Mapping[str, Any] = context.get("state", {})
    if "notices" in state:
        write_state(agent_id=UUID(context["agent_id"]), columns={"notices": state["notices"]})


def whole_record(context: Context) -> dict[str, Any]:
    """Return what the heartbeat's row says of it: of a further turn that is under way, with the turns before."""
    record: dict[str, Any] = context.get("record", {})
    if not context.get("apart"):
        return record
    turn: int = context["turn"]
    return {**record, **merge_records(context["earlier_record"], record, turn=turn), "turns": turn}
