"""The parts of a self that a prompt shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from arbor.selves.salience import SelfPart, choose_salient

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def part(text: str, *, stability: float = 0.5, days: float = 100) -> SelfPart[str]:
    return SelfPart(row=text, text=text, stability=stability, changed_at=NOW - timedelta(days=days))


BORN = [part(f"Born trait {number}.", stability=0.8) for number in range(3)]
OLD = [part(f"Old habit {number}.", stability=0.5) for number in range(20)]


def test_all_are_shown_where_there_is_room() -> None:
    parts = [*BORN, *OLD[:3]]
    assert sorted(choose_salient(parts, about="", now=NOW, limit=6, firmest=3)) == sorted(
        part.row for part in parts
    )


def test_a_new_part_is_shown_among_many_firm_ones() -> None:
    new = part("I am patient with tides.", days=0.1)
    shown = choose_salient([*BORN, *OLD, new], about="", now=NOW, limit=6, firmest=3)
    assert new.row in shown
    assert {trait.row for trait in BORN} <= set(shown)
    assert len(shown) == 6


def test_an_old_part_is_shown_where_it_is_relevant() -> None:
    parts = [*BORN, *OLD, part("I fear deep water.", stability=0.1)]
    about = "Will you dive into the deep water with me tomorrow?"
    assert "I fear deep water." in choose_salient(parts, about=about, now=NOW, limit=6, firmest=3)
    assert "I fear deep water." not in choose_salient(
        parts, about="Good morning.", now=NOW, limit=6, firmest=3
    )


def test_firm_and_chosen_parts_alternate() -> None:
    new = part("I am patient with tides.", days=0.1)
    shown = choose_salient([*BORN, *OLD, new], about="", now=NOW, limit=6, firmest=3)
    assert shown[:3] == [BORN[0].row, new.row, BORN[1].row]


@given(
    st.lists(st.tuples(st.text(max_size=20), st.floats(0, 1), st.floats(-10, 4000)), max_size=20),
    st.text(max_size=50),
    st.integers(0, 8),
)
def test_parts_are_shown_once_and_up_to_the_limit(
    values: list[tuple[str, float, float]], about: str, limit: int
) -> None:
    parts = [
        SelfPart(row=place, text=text, stability=firm, changed_at=NOW - timedelta(days=days))
        for place, (text, firm, days) in enumerate(values)
    ]
    shown = choose_salient(parts, about=about, now=NOW, limit=limit, firmest=limit // 2)
    assert len(shown) == len(set(shown)) == min(limit, len(parts))
