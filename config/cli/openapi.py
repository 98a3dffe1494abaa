"""Print the OpenAPI document of the API."""

from __future__ import annotations

import json
from pathlib import Path

import click

from apps.api.api import api
from arbor.errors import Invalid
from config.environment import BASE_DIR

#: The committed document, with which clients are generated.
DOCUMENT = BASE_DIR / "docs" / "reference" / "openapi.json"


def openapi(check: bool) -> None:
    """Print the document; with `--check`, compare it with the committed one instead."""
    text = document()
    if not check:
        click.echo(text, nl=False)
        return
    if not DOCUMENT.exists() or DOCUMENT.read_text(encoding="utf-8") != text:
        raise Invalid(f"{_relative(DOCUMENT)} is not up to date: arbor openapi > {_relative(DOCUMENT)}")


def document() -> str:
    """Return the OpenAPI document as it is committed."""
    return json.dumps(api.get_openapi_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _relative(path: Path) -> str:
    return str(path.relative_to(BASE_DIR))
