"""Narratives of heartbeats: their fixed phrases, which say nothing about their matter."""

from __future__ import annotations

import re
from typing import NamedTuple

from arbor.memory.text.lexical import term_of, words_of

#: The path of a dropped item, such as `goal_updates[0].progress`.
DROPPED_PATH = re.compile(r"\b[a-z_]+\[\d+\][\w.\[\]]*")
#: The beginning of the narratives of an agent's heartbeats (`arbor.heartbeat.steps.records`).
NARRATIVE = re.compile(r"Heartbeat \d+\. ")
#: The openings of narratives, the actions as infinitives and the changes of goals, as the modules of heartbeats word them; a
#: test holds that no phrase is missing here.
_OPENINGS = (
    r"Somebody was waiting for me\.",
    r"I took time to tend my memory\.",
    r"I had goals but no plan\.",
    r"I worked on my goals\.",
    r"Nothing pressed, so I reflected\.",
)
_INFINITIVES = (
    "look around|review my goals|recall|search all that I know|search the documents|remember|connect two things"
    "|tend what I know|reflect|look something up|look deeply into something|draw things together|think of new goals"
    "|move a goal|write to my user|write to another agent|write to the public|start a workflow|complete a step|rest|call"
    "|note something|say how a goal goes|take up a goal|plan steps|say what I see in myself"
)
_CHANGES = "went on|is new|moved|has a plan|is held up|is done|is given up|did not change as I wanted|came to rest by itself"
_STATES = "active|queued|backburner|completed|abandoned"
#: The phrases around thoughts and results.
_FRAME = (
    r"Heartbeat \d+\.",
    *_OPENINGS,
    r"I heard:",
    r"I thought:",
    r"It worries me:",
    r"Not taken of what I said:",
    r"I spent [\d.e+-]+ [a-z]+ and have [\d.e+-]+ left\.",
    rf"My goal (?P<title>“[^”]*”) (?:{_CHANGES})\b",
    r"and do not know how it ended:",
    r"not done:",
    r"no grant of yours covers (?:arbor://actions/execute/)?",
    r"did not work:",
    r"did not find out(?= “)",
    r"may have run:",
    r"reports an error:",
    r"; without effect:",
    r"; on the tip of the tongue: clusters?\b",
    r"; the belief stays as it is",
    rf"(?<=”), (?:{_STATES})\b(?: now\b)?",
    r"from [\d,]+ pages?:",
    r"(?<=”) and found no answer",
    r"(?<=”) as it is",
    r"(?<=”) to be reclustered",
    r", which answered(?:\b nothing|:)",
    r", run [0-9a-f-]{36}",
)
#: The phrases that tell what the agent did.
_ACTIONS = (
    rf"I (?:could not|tried and failed to|tried to)\b(?: (?:{_INFINITIVES})\b)?",
    r"I did nothing\.",
    # The second form is of stored narratives.
    r"I looked around(?: and saw (?:no|[\d,]+) pending percepts?|: pending for the next heartbeat and shown: [\d,]+)",
    r"I reviewed the goals and found (?:no issue|[\d,]+ issues?)\b",
    r"I recalled (?:nothing|[\d,]+ memor(?:y|ies)) about\b",
    r"I found (?:nothing|[\d,]+ results?) about\b",
    r"I knew that already\b",
    r"I (?:kept|noticed|made a (?:conclusion|text|creative(?: work)?)):",
    r"I connected an? [a-z]+ with (?:another|an? [a-z]+) as [a-z_]+",
    r"I looked at the [a-z]+ again:",
    r"I (?:kept|archived|revised) a (?:memory|belief)\b(?: as it is)?",
    r"I lowered the trust in a memory to [\d.]+",
    r"I set the importance of a memory to [\d.]+",
    r"I changed a belief \([\d,]+% sure before, [\d,]+% now, [a-z]+\)",
    r"I (?:kept|renamed|marked) the cluster(?= “)",
    r"I found out about(?= “)",
    r"I read [\d,]+ pages? on(?= “)",
    r"looking up(?= “)",
    r"(?:I called|calling)(?= mcp\.)",
    r"(?:I|;) (?:added|could not add)(?= “)",
    r"could not add(?= “)",
    r"I moved(?= “)",
    r"I wrote to\b",
    r"I decided to write (?:to my user|in public) \(by [^)]*\):",
    r"I started the workflow\b",
    r"I (?:completed|gave up) the step (?P<step>.{1,200}?) of the workflow\b",
    r"I rested\b",
)
_PHRASE = re.compile(rf"(?:(?<!\w)|(?=[;,]))(?:{'|'.join(_FRAME)}|(?P<action>{'|'.join(_ACTIONS)}))")
_DIGITS = re.compile(r"[\d.,]+")
#: The stems of the fixed phrases of stored narratives, whose wording changed.
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
            " said without effect know whether"
        ),
    )
)


class NarrativeParts(NamedTuple):
    """A narrative without its fixed phrases, and those of the phrases that tell what the agent did."""

    matter: str
    actions: frozenset[str]


def split_narrative(text: str) -> NarrativeParts:
    """Split a narrative into its matter, without paths of dropped items, and its actions, in fixed phrases without numbers."""
    actions = set[str]()

    def matter_of(phrase: re.Match[str]) -> str:
        if phrase["action"]:
            actions.add(_DIGITS.sub("", phrase["action"]))
        return f" {phrase['title'] or phrase['step'] or ''} "

    matter = _PHRASE.sub(matter_of, DROPPED_PATH.sub(" ", text))
    return NarrativeParts(matter, frozenset(actions))
