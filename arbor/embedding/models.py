"""Embedding models: vectors are comparable only within one model and length."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from arbor.errors import ConfigurationInvalid

#: What the rows keep of a model's name, less what they put before and after it.
NAME_LENGTH = 80


@dataclass(frozen=True, kw_only=True)
class EmbeddingModel:
    """An embedder, by the name it has in `ARBOR_EMBEDDING_MODEL`, and the length of the vectors it is asked for.

    Raises ConfigurationInvalid for a name or a dimension that no embedder can have.
    """

    name: str
    dimension: int

    def __post_init__(self) -> None:
        """Refuse what could not be kept beside a vector."""
        if not 1 <= len(self.name) <= NAME_LENGTH:
            raise ConfigurationInvalid(
                f"an embedding model's name is 1 to {NAME_LENGTH} characters, got {len(self.name)}"
            )
        if self.dimension < 1:
            raise ConfigurationInvalid(f"an embedding's dimension is at least 1, got {self.dimension}")

    def __str__(self) -> str:
        """Return it as messages show it."""
        return f"{self.name} of {self.dimension} dimensions"


class AtStorage(StrEnum):
    """The time of embedding: when memories are stored, or later by maintenance."""

    #: It waits where this process makes the vector, and never for a network.
    AUTO = "auto"
    #: It waits, for a remote embedder as long as its deadline.
    ALWAYS = "always"
    #: It never waits.
    NEVER = "never"

    @classmethod
    def parse(cls, text: str) -> AtStorage:
        """Return the setting's value; raises ConfigurationInvalid."""
        try:
            return cls(text.strip().lower())
        except ValueError:
            raise ConfigurationInvalid(f"ARBOR_EMBED_AT_STORAGE is {', '.join(cls)}, got {text!r}") from None

    def waits(self, *, in_process: bool) -> bool:
        """Return whether storing waits for an embedder, in this process or remote."""
        return self is AtStorage.ALWAYS or (self is AtStorage.AUTO and in_process)
