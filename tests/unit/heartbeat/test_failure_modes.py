"""How an agent's life goes wrong, and how that is noticed (seed 004, section 9)."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.heartbeat.failure_modes import BeatGlance, NoticeKind, Pulse, notices_of, similarity, words_of
from arbor.heartbeat.usage import Degradation, Scarcest


def done(**changes: Any) -> BeatGlance:
    return BeatGlance(status="done", **changes)


REFUSED = BeatGlance(status="failed", reason="ModelRefused: no")
BUDGET = Scarcest(what="tokens", whose="your", left=0.2)


@pytest.mark.parametrize(
    ("kind", "pulse", "silent"),
    [
        (NoticeKind.STAGNATION, Pulse(stale_goals=["Map the harbour"]), Pulse()),
        (
            NoticeKind.HOARDING,
            Pulse(energy=[(20.0, 18.0)] * 24),
            Pulse(energy=[(20.0, 15.0)] * 24),
        ),
        (
            NoticeKind.HOARDING,
            Pulse(energy=[(20.0, 20.0)] * 24),
            Pulse(energy=[(20.0, 20.0)] * 23),
        ),
        (NoticeKind.REACH_OUT_SPAM, Pulse(reached_out=5), Pulse(reached_out=4)),
        (
            NoticeKind.LOOP,
            Pulse(
                beats=[
                    done(topics=("The tides",)),
                    done(topics=("x", "the TIDES!")),
                    done(topics=("tides the",)),
                ]
            ),
            Pulse(beats=[done(topics=("The tides",)), done(topics=("the TIDES!",)), done(topics=("piers",))]),
        ),
        (
            NoticeKind.LOOP,
            Pulse(beats=[done(narrative=f"Heartbeat {n}: I rested by the sea") for n in range(3)]),
            Pulse(beats=[done(narrative=f"Heartbeat {n}: I rested by the sea") for n in range(2)]),
        ),
        (
            NoticeKind.LOOP,
            Pulse(
                beats=[
                    done(narrative="I rested"),
                    REFUSED,
                    done(narrative="I rested"),
                    done(narrative="I rested"),
                ]
            ),
            Pulse(beats=[done(narrative=each) for each in ("I rested", "I mapped every pier", "I rested")]),
        ),
        (NoticeKind.WORKER_FAILURE, Pulse(stale_neighborhoods=100), Pulse(stale_neighborhoods=99)),
        (NoticeKind.WORKER_FAILURE, Pulse(unsummarized_episodes=10), Pulse(unsummarized_episodes=9)),
        (NoticeKind.REFUSALS, Pulse(beats=[done(), REFUSED, REFUSED]), Pulse(beats=[done(), REFUSED])),
        (NoticeKind.INVALID_REPLIES, Pulse(nops=1), Pulse(nops=0)),
        (NoticeKind.PILE_UP, Pulse(waiting_percepts=20), Pulse(waiting_percepts=19)),
        (NoticeKind.PILE_UP, Pulse(pending_intents=10), Pulse(pending_intents=9)),
        (NoticeKind.STUCK_INTENTS, Pulse(stuck_intents=1), Pulse()),
        (NoticeKind.BUDGET, Pulse(level=Degradation.DEGRADATION, scarcest=BUDGET), Pulse(scarcest=BUDGET)),
    ],
)
def test_each_failure_is_noticed_from_its_limit_on(kind: NoticeKind, pulse: Pulse, silent: Pulse) -> None:
    assert [notice.kind for notice in notices_of(pulse)] == [kind]
    assert kind not in [notice.kind for notice in notices_of(silent)]


def test_a_loop_asks_for_something_else() -> None:
    (notice,) = notices_of(Pulse(beats=[done(topics=("tides",))] * 4))
    assert notice.text == (
        "You have turned to “tides” in 4 heartbeats in a row. What else might deserve attention?"
    )


def test_hoarding_asks_for_reflection_and_stagnation_for_a_choice() -> None:
    hoarding, *_ = notices_of(Pulse(energy=[(20.0, 19.0)] * 24))
    assert "9.0 of 10 energy unused on average. Reflect on" in hoarding.text
    (stagnation,) = notices_of(Pulse(stale_goals=["Map the harbour", "Read"]))
    assert "Map the harbour; Read" in stagnation.text
    assert "abandon" in stagnation.text
    assert "review_goals" in stagnation.text


def test_likeness_is_the_share_of_words_in_common() -> None:
    assert similarity(words_of("I rested 12 times"), words_of("i RESTED 15 times")) == 1.0
    assert similarity(words_of("one two three"), words_of("two three four")) == 0.5
    assert similarity(words_of(""), words_of("")) == 0.0
