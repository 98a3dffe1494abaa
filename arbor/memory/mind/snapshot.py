"""A snapshot of the database: the transactions whose changes a statement saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot by the numbers of transactions, as PostgreSQL's `pg_snapshot` has it."""

    #: Every transaction below had ended; none from `until` on had.
    since: int
    until: int
    #: Those between the two that had not ended.
    running: tuple[int, ...]

    @classmethod
    def parse(cls, text: str, *, own: int | None) -> Self:
        """Read `since:until:running,running`. `own` is the reader's own transaction, which had not ended either."""
        since, until, running = text.split(":")
        numbers = {int(number) for number in running.split(",") if number}
        if own is not None:
            numbers.add(own)
        return cls(
            since=min(int(since), *numbers) if numbers else int(since),
            until=int(until),
            running=tuple(sorted(numbers)),
        )

    def saw(self, revision: int) -> bool:
        """Return whether the writes of a transaction were visible, if it was not rolled back."""
        return revision < self.since or (revision < self.until and revision not in self.running)
