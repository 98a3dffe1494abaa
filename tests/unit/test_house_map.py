"""The README's map shows the house as it is."""

from __future__ import annotations

from tests.house_map import BEGIN, END, README, modules, purpose, render


def test_every_module_says_in_one_line_what_it_is_for() -> None:
    assert [str(module) for module in modules() if not purpose(module)] == []


def test_the_map_in_the_readme_is_up_to_date() -> None:
    _, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    assert rest.partition(END)[0].strip() == render(), "run `python -m tests.house_map`"
