"""Keywords of clusters: usual in their memories and rare elsewhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.text.keywords import default_name, keywords, terms_in
from arbor.memory.text.lexical import term_index, term_of


def test_keywords_are_usual_here_and_rare_elsewhere() -> None:
    texts = ["She was baking bread, and it smelled.", "We bake on Sundays.", "Baking bread, we talked."]
    df = {term_index(term_of(word)): count for word, count in (("bake", 3), ("bread", 2), ("talked", 90))}
    assert keywords(texts, df, 100) == ("baking", "bread")
    assert default_name(("baking", "bread", "oven", "crust")) == "baking, bread, oven"
    assert default_name(()) == "(no words)"
    assert keywords([], {}, 0) == keywords(["of the and 42"], {}, 5) == ()
    assert keywords(["Bread."], {}, 0) == ()
    assert term_index(term_of("bread")) in terms_in(texts)


def test_ids_and_refusals_are_no_keywords() -> None:
    refusal = "I could not remember: not done: no grant of yours covers arbor://actions/execute/remember."
    texts = [
        f"Heartbeat {n}. I heard: “The crane delegates its step 01a220c1-9c52-71b2-8478-f250d90b9e52.” {refusal}"
        for n in range(3)
    ]
    assert keywords(texts, {}, 30) == ("crane",)


def test_the_fixed_phrases_of_narratives_are_no_keywords() -> None:
    told = "I had goals but no plan. I thought: “{}” I did nothing. I spent 0 energy and have 20 left."
    narratives = [f"Heartbeat {n}. {told.format('The crane stands still.')}" for n in range(3)]
    assert keywords(narratives, {}, 30) == ("crane", "stands", "still")
    assert keywords([f"Heartbeat {n}. {told.format('')}" for n in range(3)], {}, 30) == ()
    did = "I noticed: Fog at noon. I connected a memory with another as supports."
    assert keywords([f"Heartbeat {n}. {did}" for n in range(3)], {}, 30) == ("fog", "noon")
    lost = "Not taken of what I said: goal_updates[0].progress: expected fog. I tried to call mcp.post and do not know how it ended: sent; without effect: fog."
    assert keywords([f"Heartbeat {n}. {lost}" for n in range(3)], {}, 30) == (
        "expected",
        "fog",
        "mcp",
        "post",
        "sent",
    )
    assert "energy" in keywords(["Energy is dear."] * 3, {}, 30)


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(0, 50))
def test_keywords_never_fail_and_are_few(texts: list[str], documents: int) -> None:
    words = keywords(texts, {}, documents)
    assert len(words) <= 8
    assert len(set(words)) == len(words)
