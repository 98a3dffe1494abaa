"""The commands about an agent's self: beliefs, identity, proposals, boundaries, preferences, drives, mood and experiences."""

from __future__ import annotations

from typing import Any

import click

from arbor.selves.history import GROWTH_LOG, PartKind
from arbor.selves.memory_filters import FilterEffect
from arbor.selves.proposals import PERSON_CONFIDENCE, ProposalKind
from arbor.selves.values import (
    DEFAULT_CONFIDENCE,
    DEFAULT_STABILITY,
    DEFAULT_STRENGTH,
    AspectKind,
    BeliefCategory,
    BeliefStatus,
)
from config.cli.commands.boundary import BOUNDARY, PREFERENCE
from config.cli.commands.options import SHARE, types_option
from config.cli.kit.declarations import agent_command, argument, group, one_of, option

#: The kinds of proposals that consist of a text only; the others also name the row that they change.
_TEXT_KINDS = (ProposalKind.FACT, ProposalKind.INSIGHT, ProposalKind.LEARNING, ProposalKind.PATTERN)


def _include_all(state: str) -> click.Option:
    return option("--all", f"with_{state}", is_flag=True, help=f"Include {state} ones.")


def _audit_reason() -> click.Option:
    return option("--reason", default="", help="The reason, for the audit log.")


def _stability(**attributes: Any) -> click.Option:
    return option("--stability", type=SHARE, help="Resistance to change, from 0 to 1.", **attributes)


_belief = group(
    "belief",
    "Manage an agent's beliefs. ID is an id, or the last characters of one.",
    agent_command(
        "list",
        "List an agent's beliefs, the highest sum of confidence and stability first.",
        _include_all("dropped"),
        run="selves.beliefs:list_beliefs",
        examples=("arbor self belief list Vega",),
    ),
    agent_command(
        "add",
        "Add a belief; a dropped one is restored.",
        argument("statement"),
        option(
            "--about",
            "category",
            type=one_of(BeliefCategory),
            default=BeliefCategory.WORLD.value,
            help="Its category.",
        ),
        option(
            "--confidence",
            type=SHARE,
            default=DEFAULT_CONFIDENCE,
            help="Confidence, from 0 to 1.",
        ),
        _stability(default=DEFAULT_STABILITY),
        run="selves.beliefs:add",
        examples=(
            'arbor self belief add Vega "Readings taken at low tide can be trusted." --about causality',
        ),
    ),
    agent_command(
        "revise",
        "Change a belief's confidence, stability or status.",
        argument("belief_id", metavar="ID"),
        option("--confidence", type=SHARE, help="Confidence, from 0 to 1."),
        _stability(),
        option("--status", type=one_of(BeliefStatus), help="Its status."),
        _audit_reason(),
        run="selves.beliefs:revise",
        examples=(
            "arbor self belief revise Vega 0c5512aa --confidence 0.4 --status questioned"
            ' --reason "two readings disagree"',
        ),
    ),
    agent_command(
        "filter",
        "Add a memory filter to a belief, or remove all its memory filters.",
        argument("belief_id", metavar="ID"),
        option("--effect", type=one_of(FilterEffect), help="Its effect on memories that match."),
        option(
            "--word",
            "patterns",
            multiple=True,
            help="A word or phrase of matching memories; `word*` matches its forms.",
        ),
        types_option("Only memories of these types match."),
        option("--clear", is_flag=True, help="Remove all memory filters of the belief."),
        _audit_reason(),
        run="selves.beliefs:edit_filters",
        examples=("arbor self belief filter Vega 0c5512aa --effect dim --word gossip",),
    ),
    agent_command(
        "drop",
        "Drop a belief. Its row is not deleted.",
        argument("belief_id", metavar="ID"),
        _audit_reason(),
        run="selves.beliefs:drop",
        examples=('arbor self belief drop Vega 0c5512aa --reason "it was never so"',),
    ),
    details="Beliefs come from templates, people and accepted proposals. Texts that an agent reads do not change"
    " beliefs directly; its heartbeats change them in small, audited steps.",
)

_identity = group(
    "identity",
    "Manage the aspects of an agent's identity. ID is an id, or the last characters of one.",
    agent_command(
        "list",
        "List the aspects of an agent's identity, the most stable first.",
        _include_all("dropped"),
        run="selves.identity:list_aspects",
        examples=("arbor self identity list Vega",),
    ),
    agent_command(
        "add",
        "Add an aspect to an agent's identity.",
        argument("content"),
        option(
            "--kind",
            type=one_of(AspectKind),
            default=AspectKind.SELF_CONCEPT.value,
            help="Its kind.",
        ),
        option(
            "--strength",
            type=SHARE,
            default=DEFAULT_STRENGTH,
            help="Strength of a trait, importance of a value, proficiency of a capability, from 0 to 1.",
        ),
        _stability(default=DEFAULT_STABILITY),
        run="selves.identity:add",
        examples=(
            'arbor self identity add Vega "I finish what I begin." --kind agency',
            "arbor self identity add Vega patient --kind trait --strength 0.8",
        ),
    ),
    agent_command(
        "revise",
        "Change an aspect's strength, stability or status.",
        argument("aspect_id", metavar="ID"),
        option("--strength", type=SHARE, help="Strength, importance or proficiency, from 0 to 1."),
        _stability(),
        option("--status", type=one_of(BeliefStatus), help="Its status."),
        _audit_reason(),
        run="selves.identity:revise",
        examples=("arbor self identity revise Vega 7712ab90 --strength 0.4",),
    ),
    agent_command(
        "drop",
        "Drop an aspect of an agent's identity. Its row is not deleted.",
        argument("aspect_id", metavar="ID"),
        _audit_reason(),
        run="selves.identity:drop",
        examples=("arbor self identity drop Vega 7712ab90",),
    ),
)


def _decision(name: str, summary: str) -> click.Command:
    return agent_command(
        name,
        summary,
        argument("proposal_id", metavar="ID"),
        option("--reason", default="", help="The reason, saved with the proposal."),
        run=f"selves.proposals:{name}_one",
        examples=(f"arbor self proposal {name} Vega 0c5512aa",),
    )


_proposal = group(
    "proposal",
    "Accept, reject or defer pending changes of an agent's self. ID is an id, or the last characters of one.",
    agent_command(
        "list",
        "List an agent's pending proposals, the latest first.",
        _include_all("decided"),
        run="selves.proposals:list_proposals",
        examples=("arbor self proposal list Vega",),
    ),
    agent_command(
        "add",
        "Add a proposal. The agent decides it at its next heartbeat, unless you use `accept` or `reject` first.",
        argument("text"),
        option(
            "--kind",
            type=one_of(_TEXT_KINDS),
            default=ProposalKind.FACT.value,
            help="Its kind.",
        ),
        option(
            "--confidence",
            type=SHARE,
            default=PERSON_CONFIDENCE,
            help="Your confidence, from 0 to 1.",
        ),
        run="selves.proposals:add",
        examples=('arbor self proposal add Vega "The river floods in March."',),
    ),
    _decision("accept", "Accept a proposal and apply its change."),
    _decision("reject", "Reject a proposal without applying its change."),
    _decision("defer", "Defer a proposal. It expires when deferred for the fifth time."),
)

_version = group(
    "version",
    "Compare the versions of an agent's self, and roll it back. Each act that changes the self makes a version; 1 is the birth.",
    agent_command(
        "list",
        "List the ten latest versions of an agent's self, and its birth.",
        run="selves.versions:list_versions",
        examples=("arbor self version list Vega",),
    ),
    agent_command(
        "diff",
        "Compare two versions of an agent's self.",
        argument("earlier", type=click.IntRange(min=1)),
        argument("later", type=click.IntRange(min=1), required=False),
        run="selves.versions:diff",
        examples=("arbor self version diff Vega 1", "arbor self version diff Vega 4 7"),
    ),
    agent_command(
        "rollback",
        "Restore an agent's self as it was at a version. The rollback is a version too, and can be undone.",
        argument("version", type=click.IntRange(min=1)),
        option(
            "--only",
            "parts",
            multiple=True,
            type=one_of(PartKind),
            help="Only parts of this kind.  [default: all]",
        ),
        _audit_reason(),
        run="selves.versions:restore",
        examples=('arbor self version rollback Vega 4 --only aspect --reason "too bold"',),
    ),
)

_self = group(
    "self",
    "Manage an agent's beliefs, identity and other parts of its self.",
    agent_command(
        "show",
        "Show an agent's traits, values and capabilities: what it knows about itself.",
        run="selves.versions:show",
        examples=("arbor self show Vega",),
    ),
    agent_command(
        "growth",
        "List the latest changes of an agent's self, the latest first.",
        option(
            "--last",
            type=click.IntRange(1, GROWTH_LOG),
            default=30,
            help="Maximum number of results.",
        ),
        run="selves.versions:list_growth",
        examples=("arbor self growth Vega --last 100",),
    ),
    agent_command(
        "calibration",
        "Show how an agent's accepted proposals proved, by kind, and the thresholds that follow.",
        run="selves.calibration:list_calibrations",
        examples=("arbor self calibration Vega",),
    ),
    agent_command(
        "drift",
        "Measure how far an agent's values and traits are from those of its birth.",
        run="selves.calibration:show_drift",
        examples=("arbor self drift Vega",),
    ),
    _version,
    _belief,
    _identity,
    _proposal,
    BOUNDARY,
    PREFERENCE,
    agent_command(
        "drives",
        "Show an agent's drives and their present levels.",
        run="selves.inner_state:show_drives",
        examples=("arbor self drives Vega",),
    ),
    agent_command(
        "mood",
        "Show an agent's mood, now and at its last heartbeats.",
        option(
            "--last",
            type=click.IntRange(1, 500),
            default=40,
            help="Maximum number of heartbeats.",
        ),
        run="selves.inner_state:show_mood",
        examples=("arbor self mood Vega --last 100",),
    ),
    agent_command(
        "experiences",
        "List an agent's actions with their outcomes and lessons, the latest first.",
        option(
            "--last",
            type=click.IntRange(1, 1000),
            default=30,
            help="Maximum number of results.",
        ),
        option("--failures", is_flag=True, help="Only failures."),
        run="selves.inner_state:list_experiences",
        examples=("arbor self experiences Vega --failures",),
    ),
)

COMMANDS = (_self,)
