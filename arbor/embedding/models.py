"""Embedding models: vectors are comparable only within one model and length."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from arbor.errors import ConfigurationInvalid

#: The length of the rows' column of model names, less the prefix and suffix that the rows add.
NAME_LENGTH = 80
#: The prefix of the model's name in a row whose text the model could not embed, though it embeds other texts.
REFUSED = "refused: "


def is_refused(made_by: str) -> bool:
    """Return whether a row's embedder refused its text, by the model's name in the row."""
    return made_by.startswith(REFUSED)


@dataclass(frozen=True, kw_only=True)
class EmbeddingModel:
    """An embedder's name, as in `ARBOR_EMBEDDING_MODEL`, and the length of its vectors.

    Raises ConfigurationInvalid for a name or a dimension that no embedder can have.
    """

    name: str
    dimension: int

    def __post_init__(self) -> None:
        """Check the name and the dimension."""
        if not 1 <= len(self.name) <= NAME_LENGTH:
            raise ConfigurationInvalid(
                f"an embedding model's name is 1 to {NAME_LENGTH} characters, got {len(self.name)}"
            )
        if self.dimension < 1:
            raise ConfigurationInvalid(f"an embedding's dimension is at least 1, got {self.dimension}")

    def __str__(self) -> str:
        """Format the model for messages."""
        return f"{self.name} of {self.dimension} dimensions"


class EmbedAtStorage(StrEnum):
    """The time of embedding: when memories are stored, or later by maintenance."""

    #: Storing waits for an embedder in this process, never for a remote one.
    AUTO = "auto"
    #: Storing waits; for a remote embedder until its deadline.
    ALWAYS = "always"
    #: Storing never waits.
    NEVER = "never"

    @classmethod
    def parse(cls, text: str) -> EmbedAtStorage:
        """Return the setting's value; raises ConfigurationInvalid."""
        try:
            return cls(text.strip().lower())
        except ValueError:
            raise ConfigurationInvalid(f"ARBOR_EMBED_AT_STORAGE is {', '.join(cls)}, got {text!r}") from None

    def waits(self, *, in_process: bool) -> bool:
        """Return whether storing waits for an embedder, in this process or remote."""
        return self is EmbedAtStorage.ALWAYS or (self is EmbedAtStorage.AUTO and in_process)
