"""The steps of a heartbeat, and their names in graphs."""

from __future__ import annotations

from collections.abc import Mapping

from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import (
    actions,
    backlog,
    decisions,
    inner_state,
    inquiries,
    orientation,
    records,
    round_trips,
    selfhood,
    voices,
)
from arbor.pipeline.engine import Handler

HANDLERS: Mapping[str, Handler[HeartbeatState]] = {
    "observe": orientation.observe,
    "background_checks": orientation.background_checks,
    "idle": orientation.idle,
    "focus": orientation.focus,
    "guard": orientation.guard,
    "orient": orientation.orient,
    "inject_goals": backlog.inject_goals,
    "select_mode": orientation.select_mode,
    "build_prompt": round_trips.build_the_prompt,
    "think": round_trips.Think(),
    "parse": round_trips.parse,
    "voices": voices.InnerVoices(),
    "decide": decisions.decide,
    "embed": decisions.embed,
    "store_decompositions": backlog.store_decompositions,
    "act": actions.act,
    "work": inquiries.PendingWork(),
    "goals": backlog.goals,
    "follow_up": round_trips.follow_up,
    "consolidate": selfhood.consolidate,
    "process_proposals": selfhood.process_proposals,
    "identity_insights": selfhood.identity_insights,
    "feel": inner_state.feel,
    "record": records.record,
    "plan_next": records.plan_next,
    "nop": records.nop,
}
