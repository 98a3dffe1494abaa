"""Parse settings that are lists of NAME=VALUE, separated by commas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from arbor.errors import ConfigurationInvalid

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


#: The largest number in a list, and the limit of settings with decimals: a `timedelta` has at most this number of days.
MAX_COUNT = 999_999_999


def name_values(text: str, *, setting: str) -> Iterator[tuple[str, str, str]]:
    """Yield each entry of a list with its name and its value, which is empty without an equals sign.

    Raises ConfigurationInvalid for a repeated name, whose first value would have no effect.
    """
    names: set[str] = set()
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in entry.partition("="))
        if name in names:
            raise ConfigurationInvalid(f"{setting} names {name} twice; name it once")
        names.add(name)
        yield entry, name, value


def parse_count(text: str) -> int | None:
    """Return the number from 1 to MAX_COUNT that a text writes in digits; None for another text."""
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(MAX_COUNT)):
        return None
    return int(text) or None


def parse_weights_of[W: DataclassInstance](text: str, *, setting: str, default: W, highest: float) -> W:
    """Parse weights such as `association=0.1, mood=0`; other weights are those of `default`.

    Raises ConfigurationInvalid for an unknown or repeated name, and for a value that is not a weight.
    """
    names = [field.name for field in fields(default)]
    weights: dict[str, float] = {}
    for entry, name, value in name_values(text, setting=setting):
        if name not in names:
            raise ConfigurationInvalid(
                f"{setting} has NAME=NUMBER, separated by commas, got {entry!r}; names are {', '.join(names)}"
            )
        try:
            weights[name] = float(value)
        except ValueError as error:
            raise ConfigurationInvalid(
                f"{setting} has a number from 0 to {highest:g} after {name}=, got {value!r}"
            ) from error
    return replace(default, **weights)
