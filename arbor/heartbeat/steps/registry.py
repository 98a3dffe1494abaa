"""Registry of the steps by their names in graphs."""

from __future__ import annotations

from collections.abc import Mapping

from arbor.heartbeat.state import Beat
from arbor.heartbeat.steps import (
    acting,
    backlog,
    deciding,
    feeling,
    following,
    opening,
    orientation,
    recording,
    selfhood,
)
from arbor.heartbeat.steps.inquiring import Work
from arbor.heartbeat.steps.thinking import Think, build_the_prompt, parse
from arbor.pipeline.engine import Handler

HANDLERS: Mapping[str, Handler[Beat]] = {
    "observe": opening.observe,
    "background_checks": opening.background_checks,
    "idle": opening.idle,
    "focus": orientation.focus,
    "guard": orientation.guard,
    "orient": orientation.orient,
    "inject_goals": backlog.inject_goals,
    "select_mode": orientation.select_mode,
    "build_prompt": build_the_prompt,
    "think": Think(),
    "parse": parse,
    "decide": deciding.decide,
    "embed": deciding.embed,
    "store_decompositions": backlog.store_decompositions,
    "act": acting.act,
    "work": Work(),
    "goals": backlog.goals,
    "follow_up": following.follow_up,
    "consolidate": selfhood.consolidate,
    "process_proposals": selfhood.process_proposals,
    "identity_insights": selfhood.identity_insights,
    "feel": feeling.feel,
    "record": recording.record,
    "plan_next": recording.plan_next,
    "nop": recording.nop,
}
