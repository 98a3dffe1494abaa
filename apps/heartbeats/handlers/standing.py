"""What stands of a heartbeat, whatever becomes of it: once its actions are committed, so is what goes with them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.agents.services.state import write_state
from apps.heartbeats.models import Percept
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


def whole_record(context: Context) -> dict[str, Any]:
    """Return what the heartbeat's row says of it: of a further turn that is under way, with the turns before."""
    record: dict[str, Any] = context.get("record", {})
    if not context.get("apart"):
        return record
    turn: int = context["turn"]
    return {**record, **merge_records(context["earlier_record"], record, turn=turn), "turns": turn}
