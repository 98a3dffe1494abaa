"""The options that several commands share."""

from __future__ import annotations

import click

from arbor.memory.relations import MAX_HOPS
from arbor.memory.values import MemoryType
from config.cli.kit.declarations import one_of, option
from config.cli.kit.values import CostType, LimitType, MomentType, NumberRange

SHARE = NumberRange(0, 1)


def limit_option(most: int, default: int = 20, *, short: str = "-k") -> click.Option:
    return option(
        *filter(None, [short, "--limit"]),
        type=click.IntRange(1, most),
        default=default,
        help="Maximum number of results.",
    )


def hops_option(default: int) -> click.Option:
    return option(
        "--hops",
        type=click.IntRange(1, MAX_HOPS),
        default=default,
        help="Maximum number of edges to follow.",
    )


def types_option(help_text: str = "Only memories of these types.") -> click.Option:
    return option("--type", "types", multiple=True, type=one_of(MemoryType), help=help_text)


def reason_option() -> click.Option:
    return option("--reason", required=True, metavar="TEXT", help="The reason, for the audit log.")


def time_options() -> tuple[click.Option, click.Option]:
    return (
        option("--since", type=MomentType(), help="Only events at or after this time, such as 2026-05-01."),
        option("--until", type=MomentType(), help="Only events before this time."),
    )


def concept_option() -> click.Option:
    return option("--concept", metavar="NAME", help="Only cases of a concept, or of a narrower one.")


def energy_options() -> tuple[click.Option, ...]:
    return (
        option(
            "--regeneration", type=LimitType(float), help="Energy regained at each heartbeat; 10 unless set."
        ),
        option("--max-energy", type=LimitType(float), help="Maximum energy; 20 unless set."),
        option(
            "--cost",
            "costs",
            type=CostType(),
            multiple=True,
            metavar="ACTION=N",
            help="Energy that an action costs; ACTION=none restores the default. Can be repeated.",
        ),
    )
