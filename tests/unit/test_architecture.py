"""The table of packages in `docs/architecture.md` shows the folders as they are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("arbor", "apps", "workers", "config")
#: Folders that Django prescribes.
PRESCRIBED = {"migrations", "management"}


def packages() -> set[str]:
    """Return the folders of the four layers that Python can import, as the table writes them."""
    return {
        f"{init.parent.relative_to(ROOT)}/"
        for layer in LAYERS
        for init in (ROOT / layer).rglob("__init__.py")
        if not PRESCRIBED & set(init.parent.parts)
    }


def described() -> dict[str, str]:
    """Return the table's packages with their lines."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = text.partition("\n## Packages\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+/)` \| (.+) \|$", section, flags=re.MULTILINE))


def test_every_package_has_its_line() -> None:
    assert sorted(packages() - described().keys()) == []


def test_every_line_has_its_package() -> None:
    assert sorted(described().keys() - packages()) == []


def test_files_of_the_walks_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:arbor|apps|workers|config)/[\w/]+\.py)`", text))
    assert len(named) > 20
    assert sorted(path for path in named if not (ROOT / path).exists()) == []
