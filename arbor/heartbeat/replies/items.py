"""Read a reply's items leniently: valid values are used, others are listed with a reason."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from arbor.clock import to_utc
from arbor.errors import Invalid
from arbor.goals.plans import MAX_ESTIMATE
from arbor.models.json_text import storable
from arbor.quotations import counted

# Characters of a dropped value that are shown, the most values listed one by one, and characters of an id.
SHOWN_LENGTH = 200
MAX_LISTED = 50
ID_LENGTH = 100

# The length of 2026-01-31 and 2026-W05-6.
_LONGEST_DATE = 10
_INDEX = re.compile(r"\[\d+\]")
#: The beginning of the reason of `ReplyReader.dropped` for items that are not listed one by one.
_COUNT = re.compile(r"[\d,]+ further (item was|items were) dropped\b")


class Dropped(BaseModel, frozen=True):
    """A dropped item of a reply: its path, its beginning and the reason."""

    path: str
    value: str
    reason: str

    @property
    def in_words(self) -> str:
        """Return the reason, after the path if there is one."""
        return f"{self.path}: {self.reason}" if self.path else self.reason

    @property
    def counts_others(self) -> bool:
        """Return whether this entry counts the dropped items beyond `MAX_LISTED`."""
        return not self.path and _COUNT.match(self.reason) is not None


class Unfit(Exception):
    """The item cannot be used; the message names the expected form."""


class ReplyReader:
    """Collects dropped items and repairs while a reply is read."""

    def __init__(self) -> None:
        self.repairs: list[str] = []
        #: The paths of a list's items, by the path of the list, if items before them were dropped.
        self.item_paths: dict[str, list[str]] = {}
        self._listed: list[Dropped] = []
        #: The reasons of the items beyond `MAX_LISTED`, with their numbers.
        self._unlisted: Counter[str] = Counter()

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Return the dropped items; beyond `MAX_LISTED`, the last one counts the rest by their reasons."""
        if not self._unlisted:
            return tuple(self._listed)
        count = counted(self._unlisted.total(), "further item was", "further items were")
        reasons = "; ".join(
            f"{reason} ({number:,})" for reason, number in self._unlisted.most_common(MAX_LISTED)
        )
        return (*self._listed, Dropped(path="", value="", reason=f"{count} dropped: {reasons}"))

    def drop(self, path: str, value: Any, reason: str) -> None:
        if len(self._listed) < MAX_LISTED:
            self._listed.append(Dropped(path=path, value=show(value), reason=reason))
        else:
            self._unlisted[reason] += 1

    def add_repair(self, repair: str) -> None:
        if repair not in self.repairs:
            self.repairs.append(repair)

    def text(self, path: str, value: Any, longest: int) -> str | None:
        """Return a stripped text or None; a number counts as text; the cut-off rest of a long text is listed."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if value is None:
            return None
        if not isinstance(value, str):
            self.drop(path, value, "expected a text")
            return None
        value = value.strip()
        if len(value) > longest:
            self.drop(path, value[longest:], f"cut to {longest:,} characters, it had {len(value):,}")
            value = value[:longest].rstrip()
        return value or None

    def items[T](self, path: str, value: Any, most: int, read: Callable[[Item], T]) -> list[T]:
        """Read a list item by item; an item for which `read` raises Unfit is dropped."""
        if value is None:
            return []
        if not isinstance(value, list):
            key = _INDEX.sub("", path)
            self.add_repair(f"a single value under {key} was taken as a list of one")
            value = [value]
        accepted: dict[str, T] = {}
        for index, item in enumerate(value):
            item_path = f"{path}[{index}]"
            if len(accepted) == most:
                left = value[index:]
                count = counted(len(left), "is", "are")
                self.drop(item_path, left, f"at most {most} are taken; {count} left over")
                break
            try:
                accepted[item_path] = read(Item(self, item_path, item))
            except Unfit as unfit:
                self.drop(item_path, item, str(unfit))
                self._forget_lists(item_path)
        if [*accepted] != places(path, len(accepted)):
            self.item_paths[path] = [*accepted]
        return [*accepted.values()]

    def _forget_lists(self, path: str) -> None:
        """Remove the paths of the items in the lists of a dropped item."""
        self.item_paths = {key: paths for key, paths in self.item_paths.items() if not key.startswith(path)}


class Item:
    """One item of a list, with its path; an invalid value is listed as dropped and read as None."""

    def __init__(self, reader: ReplyReader, path: str, value: Any) -> None:
        self.value = value
        self._reader = reader
        self._path = path

    def drop_key(self, key: str, reason: str) -> None:
        self._reader.drop(f"{self._path}.{key}", self.value[key], reason)

    def add_repair(self, repair: str) -> None:
        self._reader.add_repair(repair)

    def replaced(self, value: Any) -> Item:
        """Return an item with another value at the same path."""
        return Item(self._reader, self._path, value)

    def renamed(self, names: Mapping[str, str]) -> Item:
        """Return the item with synonyms of missing keys renamed."""
        value = dict(self.value)
        for name, right in names.items():
            if name in value and right not in value:
                value[right] = value.pop(name)
                self.add_repair(f"{name} was taken as {right}")
        return self.replaced(value)

    def require_object(self, otherwise: str) -> None:
        if not isinstance(self.value, dict):
            raise Unfit(otherwise)

    def drop_other_keys(self, *keys: str) -> None:
        """List every other key as dropped."""
        for key in self.value:
            if key not in keys:
                self.drop_key(key, f"unknown key; expected {', '.join(keys)}")

    def text(self, key: str, longest: int) -> str | None:
        """Return the text under a key, cut to the longest, as `ReplyReader.text` does."""
        return self._reader.text(f"{self._path}.{key}", self.value.get(key), longest)

    def identifier(self, key: str, longest: int = ID_LENGTH) -> str | None:
        """Return the id under a key; "null" and "none" count as missing."""
        identifier = self.text(key, longest)
        return None if identifier is None or identifier.lower() in ("null", "none") else identifier

    def choice[E: StrEnum](self, key: str, kind: type[E], also: Mapping[str, E] = {}) -> E | None:
        """Return the member under a key, whatever its case, blanks and hyphens; `also` are synonyms."""
        written = self.value.get(key)
        if written is None:
            return None
        name = snake(written) if isinstance(written, str) else written
        try:
            return also[name] if isinstance(name, str) and name in also else kind(name)
        except ValueError:
            self.drop_key(key, f"expected one of {', '.join(kind)}")
            return None

    def share(self, key: str) -> float | None:
        """Return a share from 0 to 1; a number above 1, or with a %, is a percentage."""
        written = self.value.get(key)
        percent = isinstance(written, str) and written.strip().endswith("%")
        value = self._number(
            key,
            written.strip().removesuffix("%") if percent else written,
            100,
            "a number from 0 to 1, or a percentage from 0 to 100",
        )
        if value is None or not (percent or value > 1):
            return value
        self.add_repair(f"{key} in percent was taken as a share of 1")
        return value / 100

    def whole(self, key: str, most: int) -> int | None:
        expected = f"a whole number from 0 to {most:,}"
        value = self._number(key, self.value.get(key), most, expected, step=1)
        return None if value is None else int(value)

    def amount(self, key: str) -> float | None:
        """Return the number under a key, from 0 to 1,000,000; any other value is dropped."""
        return self._number(key, self.value.get(key), MAX_ESTIMATE, f"a number from 0 to {MAX_ESTIMATE:,}")

    def _number(self, key: str, written: Any, most: int, expected: str, *, step: float = 0) -> float | None:
        """Return a number from 0 to `most`, also from a text; any other value is listed as dropped."""
        if written is None:
            return None
        value: Any = _finite(written.strip()) if isinstance(written, str) else written
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and 0 <= value <= most and not (step and value % step):
            return float(value)
        self.drop_key(key, f"expected {expected}")
        return None

    def moment(self, key: str) -> datetime | None:
        """Return the time under a key, UTC by default; a date is the end of that day."""
        written = self.value.get(key)
        if written is None or written == "":
            return None
        try:
            moment = datetime.fromisoformat(written.strip() if isinstance(written, str) else "")
            if len(written.strip()) <= _LONGEST_DATE:
                moment = datetime.combine(moment, time.max)
            return to_utc(moment)
        except (Invalid, ValueError):
            self.drop_key(key, "expected a moment such as 2026-01-31 or 2026-01-31T18:00")
            return None

    def lines(self, key: str, most: int, longest: int) -> list[str]:
        """Return the short texts of the list under a key."""
        return self.items(key, most, lambda item: item.line(longest))

    def line(self, longest: int) -> str:
        """Return the item as a short text, also if wrapped as {"text": …}; raises Unfit without a text."""
        item = self
        if isinstance(self.value, dict):
            self.drop_other_keys("text")
        else:
            item = self.replaced({"text": self.value})
        line = item.text("text", longest)
        if not line:
            raise Unfit("an entry is a text")
        return line

    def day(self, key: str) -> date | None:
        """Return the date under a key, without the time of day."""
        written = self.value.get(key)
        if written is None or written == "":
            return None
        try:
            return date.fromisoformat(written[:10] if isinstance(written, str) else "")
        except ValueError:
            self.drop_key(key, "expected a date such as 2026-01-31")
            return None

    def items[T](self, key: str, most: int, read: Callable[[Item], T]) -> list[T]:
        """Read the list under a key, as `ReplyReader.items` does."""
        return self._reader.items(f"{self._path}.{key}", self.value.get(key), most, read)


def places(path: str, number: int) -> list[str]:
    """Return the paths of the first items of a list, by its path."""
    return [f"{path}[{index}]" for index in range(number)]


def show(value: Any) -> str:
    """Return the beginning of a text, or of another value as JSON."""
    written = storable(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return written if len(written) <= SHOWN_LENGTH else written[: SHOWN_LENGTH - 1] + "…"


def snake(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").split())


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
