"""The choice of a tokenizer for models, by the setting that names the files of tokenizers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from arbor.errors import ConfigurationInvalid
from arbor.models.handles import Provider
from arbor.setting_lists import name_values

#: Counts the tokens of a text.
type CountTokens = Callable[[str], int]

#: The providers whose models have tokenizers.
_PROVIDERS = tuple(provider for provider in Provider if provider is not Provider.REFLEX)
NO_TOKENIZERS: Mapping[str, CountTokens] = MappingProxyType({})


def parse_tokenizers(text: str) -> Mapping[str, Path]:
    """Parse `ollama=/models/llama.json,openai/gpt-oss=/models/oss.json`: files by provider or beginning of a handle.

    Raises ConfigurationInvalid, also for a file that does not exist.
    """
    files: dict[str, Path] = {}
    for entry, name, path in name_values(text, setting="ARBOR_TOKENIZERS"):
        if name.partition("/")[0] not in _PROVIDERS or not path:
            raise ConfigurationInvalid(
                f"tokenizers are written PROVIDER=PATH or PROVIDER/MODEL=PATH, of {', '.join(_PROVIDERS)}; got {entry!r}"
            )
        # `Path.is_file` raises an error for a path that is too long.
        if not os.path.isfile(path):
            raise ConfigurationInvalid(
                f"the tokenizer of {name} must be a file `tokenizer.json`; there is none at {path}"
            )
        files[name] = Path(path)
    return MappingProxyType(files)


def shared_tokenizer(handles: Sequence[str], tokenizers: Mapping[str, CountTokens]) -> str:
    """Return the name of the tokenizer that all these models share; empty if there is none."""
    if not tokenizers:
        return ""
    names = [_name_for(handle, tokenizers) for handle in handles]
    if not names or not all(names) or len({id(tokenizers[name]) for name in names}) > 1:
        return ""
    return names[0]


def _name_for(handle: str, tokenizers: Mapping[str, CountTokens]) -> str:
    """Return the longest name that is the handle's provider or its beginning; empty without any."""
    matches = [
        name
        for name in tokenizers
        if (handle.startswith(name) if "/" in name else name == handle.partition("/")[0])
    ]
    return max(matches, key=len, default="")
