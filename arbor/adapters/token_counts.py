"""Count tokens with a model's own tokenizer, from its file `tokenizer.json`."""

from __future__ import annotations

import importlib
from functools import lru_cache
from pathlib import Path

from arbor.errors import ConfigurationInvalid
from arbor.models.token_counts import CountTokens

#: The most texts whose counts a process caches: rules, actions, characters and skills recur in each prompt.
_CACHED_TEXTS = 512


def load_counter(file: Path) -> CountTokens:
    """Load the tokenizer of a file. Raises ConfigurationInvalid for one that is not a tokenizer.

    Takes up to a second for a large vocabulary.
    """
    # Imported here, because most installations configure no tokenizer.
    tokenizers = importlib.import_module("tokenizers")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # The library raises nothing narrower.
        raise ConfigurationInvalid(f"{file} is no tokenizer.json that can be read: {error}") from error

    @lru_cache(maxsize=_CACHED_TEXTS)
    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return count
