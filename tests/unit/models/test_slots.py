"""Slots of a provider: bounded, in order, and released when the work is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.models.handles import Provider
from arbor.models.slots import ProviderSlots, SlotFigures, Slots, parse_provider_calls

SOON_S = 10.0


def always() -> bool:
    return True


class Caller:
    """A thread that occupies a slot until it is released."""

    def __init__(
        self,
        slots: Slots,
        order: list[str],
        name: str,
        *,
        may_wait: Callable[[], bool] = always,
        urgent: bool = False,
    ) -> None:
        self.released = threading.Event()
        self.entered = threading.Event()
        #: Whether it got a slot; None: still waiting.
        self.got: bool | None = None
        self._slots, self._order, self._name = slots, order, name
        self._may_wait, self._urgent = may_wait, urgent
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self._slots.slot(may_wait=self._may_wait, every_s=0.01, urgent=self._urgent) as self.got:
            if self.got:
                self._order.append(self._name)
                self.entered.set()
                self.released.wait(SOON_S)

    def end(self) -> None:
        self.released.set()
        self.thread.join(SOON_S)


def wait_until(condition: Callable[[], bool]) -> None:
    ended = threading.Event()
    for _ in range(1000):
        if condition():
            return
        ended.wait(0.01)
    raise AssertionError("the condition was not met within 10 s")


def wait_for_figures(slots: Slots, *, sent: int, waiting: int) -> None:
    wait_until(lambda: slots.figures == SlotFigures(limit=1, sent=sent, waiting=waiting))


def test_calls_beyond_the_limit_wait_in_order() -> None:
    slots, order = Slots(1), list[str]()
    callers = []
    for place, name in enumerate(("a", "b", "c")):
        callers.append(Caller(slots, order, name))
        wait_for_figures(slots, sent=1, waiting=place)
    for caller in callers:
        assert caller.entered.wait(SOON_S)
        caller.end()
    assert order == ["a", "b", "c"]
    assert slots.figures == SlotFigures(limit=1, sent=0, waiting=0)


def test_people_go_first_in_the_order_of_their_arrival() -> None:
    slots, order = Slots(1), list[str]()
    callers = []
    for place, name in enumerate(("working", "heartbeat", "first person", "second person")):
        callers.append(Caller(slots, order, name, urgent=name.endswith("person")))
        wait_for_figures(slots, sent=1, waiting=place)
    working, heartbeat, first_person, second_person = callers
    for caller in (working, first_person, second_person, heartbeat):
        caller.end()
    assert order == ["working", "first person", "second person", "heartbeat"]


def test_a_caller_whose_work_is_lost_leaves_the_line() -> None:
    slots, order = Slots(1), list[str]()
    working = Caller(slots, order, "working")
    wait_for_figures(slots, sent=1, waiting=0)
    lost = Caller(slots, order, "lost", may_wait=lambda: False)
    lost.thread.join(SOON_S)
    assert lost.got is False
    assert slots.figures == SlotFigures(limit=1, sent=1, waiting=0)
    working.end()
    assert slots.figures.sent == 0


def test_work_lost_at_the_end_of_the_wait_frees_its_slot() -> None:
    slots, order = Slots(1), list[str]()
    working = Caller(slots, order, "working")
    wait_for_figures(slots, sent=1, waiting=0)
    lost = Caller(slots, order, "lost", may_wait=lambda: not working.released.is_set())
    wait_for_figures(slots, sent=1, waiting=1)
    working.end()
    lost.thread.join(SOON_S)
    assert lost.got is False
    assert slots.figures == SlotFigures(limit=1, sent=0, waiting=0)


def test_each_provider_has_slots_of_its_own() -> None:
    slots = ProviderSlots(lambda provider: 2 if provider is Provider.OLLAMA else 9)
    with slots.of(Provider.OLLAMA).slot(may_wait=always, every_s=1) as got:
        assert got
        assert slots.figures() == {"ollama": SlotFigures(limit=2, sent=1, waiting=0)}
    assert slots.of(Provider.OPENAI).figures.limit == 9


def test_limits_are_read_by_provider() -> None:
    assert parse_provider_calls(" ollama=3, openai = 64,") == {Provider.OLLAMA: 3, Provider.OPENAI: 64}
    for text in (
        "ollama",
        "ollama=0",
        "ollama=-1",
        "nobody=2",
        "reflex=2",
        "ollama=²",
        "=2",
        f"ollama={'9' * 5_000}",
    ):
        with pytest.raises(ConfigurationInvalid, match="ARBOR_PROVIDER_CALLS has entries PROVIDER=NUMBER"):
            parse_provider_calls(text)
