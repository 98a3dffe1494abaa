"""`arbor memory`: its commands, by what they are about."""

from __future__ import annotations

import click

from config.cli.memory import (
    adding,
    episodes,
    graph,
    holding,
    keeping,
    learning,
    listing,
    ordering,
    present,
    relating,
    showing,
    similar,
    themes,
    upkeep,
)


@click.group()
def memory() -> None:
    """An agent's memory. ID is an id, or the last characters of one (eight or more).

    \b
    Examples:
      arbor memory list Vega --type semantic --min-importance 0.6
      arbor memory show Vega 4cd01f7e
      arbor memory episodes Vega
    """


for each in (
    listing.list_them,
    showing.show_one,
    similar.similar,
    adding.add,
    learning.practise,
    learning.source,
    keeping.archive_them,
    keeping.restore_them,
    keeping.purge_them,
    keeping.forget,
    episodes.episodes,
    themes.themes,
    themes.concepts,
    ordering.tip,
    ordering.name_theme,
    ordering.refresh_theme,
    ordering.assign_one,
    ordering.link_one,
    ordering.place_concept,
    ordering.merge_two,
    relating.relate_them,
    relating.unrelate_them,
    graph.causes,
    graph.evidence,
    graph.connected,
    graph.path,
    graph.contradictions,
    present.mind,
    holding.buffer,
    holding.hold_it,
    holding.promote_one,
    upkeep.health,
):
    memory.add_command(each)
