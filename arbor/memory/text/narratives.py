"""Narratives of heartbeats: their fixed phrases, which say nothing about their matter."""

from __future__ import annotations

import re

from arbor.memory.text.lexical import term_of, words_of

#: The path of a dropped item, such as `goal_updates[0].progress`.
DROPPED_PATH = re.compile(r"\b[a-z_]+\[\d+\][\w.\[\]]*")
#: The beginning of the narratives of an agent's heartbeats (`arbor.heartbeat.steps.records`), and the stems of their fixed phrases.
NARRATIVE = re.compile(r"Heartbeat \d+\. ")
NARRATIVE_FRAME = frozenset(
    map(
        term_of,
        words_of(
            "heartbeat somebody waiting took time tend memory memories goals plan worked nothing pressed reflected heard"
            " thought worries did could tried failed spent energy actions ticks left went new done step completed"
            # Refused actions, and the results of others.
            " grant covers arbor execute approval rule waits person kept found results wrote remember recall reflect reach"
            " noticed connect connected supports contradicts associated"
            # Changes of goals, and delegated steps.
            " moved queued active backburner abandoned change wanted become delegates answer action result output task"
            # Dropped items, ignored parameters, and actions whose outcome is unknown.
            " said without effect know whether ended recalled looked around pending next shown reviewed goals found issue issues"
            " knew that already added moved called which answered read page pages decided user public inbox rested another belief goal"
            " concept aspect kept importance trust lowered"
        ),
    )
)
