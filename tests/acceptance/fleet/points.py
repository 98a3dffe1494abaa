"""Points at which a heartbeat can lose its worker."""

from __future__ import annotations

#: The steps that every heartbeat passes, in order (`arbor/pipeline/heartbeat.dot`).
NODES = (
    "observe",
    "background_checks",
    "idle",
    "focus",
    "guard",
    "orient",
    "inject_goals",
    "select_mode",
    "build_prompt",
    "think",
    "parse",
    "decide",
    "embed",
    "store_decompositions",
    "process_proposals",
    "identity_insights",
    "act",
    "goals",
    "follow_up",
    "feel",
    "record",
    "plan_next",
)
POINTS = (
    "dispatcher is about to publish",
    "dispatcher has published",
    *(f"{node} {edge}" for node in NODES for edge in ("begins", "ends")),
    "suspend is written",
    "heartbeat worker is about to publish",
    "heartbeat worker has published",
    "call is claimed",
    "reply has arrived",
    "reply is written",
    "model worker is about to publish",
    "model worker has published",
    "think goes on",
    "use of an approval is written",
    "finish is written",
)
#: The model whose replies are unreadable; they lead to a node that other heartbeats do not pass.
UNREADABLE = "openai/stub-babble"
NOP_POINTS = ("nop begins", "nop ends")
#: The point and the model of each agent of a fleet; an empty model is the default.
ALL_POINTS = (*((point, "") for point in POINTS), *((point, UNREADABLE) for point in NOP_POINTS))
