"""Names as numbers: the sessions, roles and types of a mind, each text once."""

from __future__ import annotations

import sys
from collections.abc import Sequence

#: The number of the empty name: no session, no role.
UNNAMED = 0


class Names:
    """Texts by number and numbers by text; numbers never change."""

    def __init__(self, texts: Sequence[str] = ("",)) -> None:
        self._texts = list(texts)
        self._numbers = {text: number for number, text in enumerate(self._texts)}

    def copy(self) -> Names:
        """Return names to which others can be added."""
        return Names(self._texts)

    def numbers_of(self, texts: Sequence[str]) -> list[int]:
        """Return the number of each text, a new one for a new text."""
        for text in dict.fromkeys(texts):
            if text not in self._numbers:
                self._numbers[text] = len(self._texts)
                self._texts.append(text)
        return list(map(self._numbers.__getitem__, texts))

    def number_of(self, text: str) -> int | None:
        """Return the number of a text; None for one that does not occur."""
        return self._numbers.get(text)

    def texts_of(self, numbers: Sequence[int]) -> list[str]:
        """Return the text of each number."""
        return list(map(self._texts.__getitem__, numbers))

    @property
    def nbytes(self) -> int:
        """Roughly its size."""
        return sum(map(sys.getsizeof, self._texts)) + 100 * len(self._texts)
