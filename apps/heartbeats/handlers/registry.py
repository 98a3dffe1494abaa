"""The nodes there are, by the name that a graph calls them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from apps.heartbeats.handlers.act import Act
from apps.heartbeats.handlers.checks import Checks
from apps.heartbeats.handlers.consolidate import Consolidate
from apps.heartbeats.handlers.decide import Decide, Embed
from apps.heartbeats.handlers.feel import Feel
from apps.heartbeats.handlers.follow_up import FollowUp
from apps.heartbeats.handlers.goals import Goals
from apps.heartbeats.handlers.guard import Guard
from apps.heartbeats.handlers.idle import Idle
from apps.heartbeats.handlers.inject import InjectGoals
from apps.heartbeats.handlers.insights import IdentityInsights
from apps.heartbeats.handlers.nop import Nop
from apps.heartbeats.handlers.observe import Focus, Observe, Orient, SelectMode
from apps.heartbeats.handlers.plans import StoreDecompositions
from apps.heartbeats.handlers.proposals import ProcessProposals
from apps.heartbeats.handlers.record import Record
from apps.heartbeats.handlers.rhythm import PlanNext
from apps.heartbeats.handlers.think import BuildPrompt, Parse, Think
from apps.heartbeats.handlers.work import Work
from arbor.clock import SystemClock
from arbor.pipeline.engine import Handler

_clock = SystemClock()

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "observe": Observe(_clock),
        "background_checks": Checks(),
        "idle": Idle(),
        "focus": Focus(),
        "guard": Guard(),
        "orient": Orient(),
        "inject_goals": InjectGoals(_clock),
        "select_mode": SelectMode(),
        "build_prompt": BuildPrompt(),
        "think": Think(),
        "parse": Parse(),
        "decide": Decide(),
        "embed": Embed(),
        "store_decompositions": StoreDecompositions(_clock),
        "act": Act(_clock),
        "work": Work(_clock),
        "goals": Goals(_clock),
        "follow_up": FollowUp(),
        "consolidate": Consolidate(),
        "process_proposals": ProcessProposals(_clock),
        "identity_insights": IdentityInsights(),
        "feel": Feel(_clock),
        "record": Record(_clock),
        "plan_next": PlanNext(),
        "nop": Nop(),
    }
)
