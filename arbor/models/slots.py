"""Slots for calls to a provider: a limited number is sent at once, and further ones wait in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from arbor.errors import ConfigurationInvalid
from arbor.models.handles import Provider
from arbor.setting_lists import MAX_COUNT, name_values, parse_count

#: Calls that a self-hosted server answers at once; Ollama and llama.cpp compute a few at a time, vLLM batches.
SELF_HOSTED_CALLS = 2
VLLM_CALLS = 32
#: Calls to a hosted provider: its own rate limits come first.
HOSTED_CALLS = 1000


def parse_provider_calls(text: str) -> Mapping[Provider, int]:
    """Parse `ollama=2,openai=64`: calls sent at once, by provider. Raises ConfigurationInvalid."""
    calls: dict[Provider, int] = {}
    # The reflex policy sends no calls.
    providers = [provider for provider in Provider if provider is not Provider.REFLEX]
    for entry, name, number in name_values(text, setting="ARBOR_PROVIDER_CALLS"):
        count = parse_count(number)
        if name not in providers or count is None:
            raise ConfigurationInvalid(
                "ARBOR_PROVIDER_CALLS has entries PROVIDER=NUMBER, separated by commas: the provider is one of"
                f" {', '.join(providers)}, the number 1 to {MAX_COUNT:,}; got {entry!r}"
            )
        calls[Provider(name)] = count
    return MappingProxyType(calls)


@dataclass(frozen=True, kw_only=True)
class SlotFigures:
    """The use of a provider's slots in this process."""

    limit: int
    sent: int
    waiting: int


class Slots:
    """The slots of one provider in this process; thread-safe. Calls get them in the order of their arrival, urgent calls first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sent = 0
        #: The tickets of waiting calls in the order of their arrival: of urgent calls, and of the others.
        self._urgent: deque[object] = deque()
        self._others: deque[object] = deque()
        self._changed = threading.Condition()

    @property
    def figures(self) -> SlotFigures:
        """Return the numbers of sent and waiting calls."""
        with self._changed:
            waiting = len(self._urgent) + len(self._others)
            return SlotFigures(limit=self._limit, sent=self._sent, waiting=waiting)

    @contextmanager
    def slot(self, *, may_wait: Callable[[], bool], every_s: float, urgent: bool = False) -> Iterator[bool]:
        """Wait for a slot and occupy it; yield whether there is one.

        During the wait, `may_wait` is called every `every_s` seconds, and once at its end: if it returns False, the caller has
        lost its work and gets no slot. An `urgent` call goes before others.
        """
        if not self._occupy(may_wait, every_s, urgent=urgent):
            yield False
            return
        try:
            yield True
        finally:
            self._release()

    def _occupy(self, may_wait: Callable[[], bool], every_s: float, *, urgent: bool) -> bool:
        """Wait for a slot and occupy it; return False if the caller has lost its work."""
        ticket = object()
        with self._changed:
            if not self._line and self._sent < self._limit:
                self._sent += 1
                return True
            (self._urgent if urgent else self._others).append(ticket)
        try:
            while not self._next(ticket, every_s):
                if not may_wait():
                    self._leave(ticket)
                    return False
            if may_wait():
                return True
        except BaseException:
            self._leave(ticket)
            raise
        self._release()
        return False

    @property
    def _line(self) -> deque[object]:
        """Return the line whose first ticket is next; empty if no call waits."""
        return self._urgent or self._others

    def _next(self, ticket: object, within_s: float) -> bool:
        """Occupy a slot once the ticket is next; return False when the time is over."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._line[0] is ticket and self._sent < self._limit, within_s
            ):
                return False
            self._line.popleft()
            self._sent += 1
            self._changed.notify_all()
            return True

    def _leave(self, ticket: object) -> None:
        with self._changed:
            for line in (self._urgent, self._others):
                if ticket in line:
                    line.remove(ticket)
                    break
            else:
                # The call had a slot already.
                self._sent -= 1
            self._changed.notify_all()

    def _release(self) -> None:
        with self._changed:
            self._sent -= 1
            self._changed.notify_all()


class ProviderSlots:
    """The slots of each provider, created on first use."""

    def __init__(self, limit_of: Callable[[Provider], int]) -> None:
        self._limit_of = limit_of
        self._lock = threading.Lock()
        self._slots: dict[Provider, Slots] = {}

    def of(self, provider: Provider) -> Slots:
        """Return the slots of a provider."""
        with self._lock:
            if provider not in self._slots:
                self._slots[provider] = Slots(self._limit_of(provider))
            return self._slots[provider]

    def figures(self) -> dict[str, SlotFigures]:
        """Return the use of the slots of each provider that was called."""
        with self._lock:
            slots_of = dict(self._slots)
        return {provider.value: slots.figures for provider, slots in slots_of.items()}
