"""Settings and pages of the console that the documentation names, and its examples in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from apps.console.navigation import SECTIONS
from tests.unit.config.test_deployment import COMPOSE_ONLY, INTERNAL, settings_read

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "clients/python/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OWN_PACKAGES = ("apps", "arbor", "arbor_client", "config")
_SETTING = re.compile(r"\bARBOR_[A-Z0-9_]*[A-Z0-9]\b")
#: A place of the console: *Memory → Recall*, or Memory, *Recall*.
_PLACE = re.compile(r"([A-Z][a-z]+(?: [a-z]+)*)(?: → |, \*)([A-Z][A-Za-z -]+)")
#: Buttons that documents name after their section.
BUTTONS = {"Pause all agents"}
_EXAMPLE = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def unknown_settings(text: str) -> set[str]:
    """Return the settings of Arbor in a text that no part of it reads; each may come from a file: NAME_FILE."""
    known = settings_read() | COMPOSE_ONLY | INTERNAL
    return {
        name
        for name in _SETTING.findall(text)
        if name not in known and name.removesuffix("_FILE") not in known
    }


def unknown_places(text: str) -> Iterator[str]:
    """Yield the places in a text that begin with a section of the console and name no page of it."""
    pages = {section.title: {page.title for page in section.pages} | BUTTONS for section in SECTIONS}
    for section, page in _PLACE.findall(text):
        if section in pages and page.strip() not in pages[section]:
            yield f"{section} → {page}"


def examples() -> Iterator[tuple[Path, str]]:
    """Yield the examples in Python with their pages."""
    for page in PAGES:
        for code in _EXAMPLE.findall(page.read_text(encoding="utf-8")):
            yield page.relative_to(ROOT), code


def missing_names(code: str) -> Iterator[str]:
    """Yield the names that an example imports from Arbor and that do not exist. Raises SyntaxError."""
    tree = compile(code, "example", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OWN_PACKAGES:
            module = import_module(node.module)
            yield from (f"{node.module}.{name.name}" for name in node.names if not hasattr(module, name.name))


def test_named_settings_exist() -> None:
    unknown = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in unknown_settings(page.read_text(encoding="utf-8"))
    }
    assert sorted(unknown) == []


def test_an_unknown_setting_is_reported() -> None:
    assert unknown_settings("ARBOR_MASTER_KEY_FILE, `ARBOR_NOWHERE=1`, ARBOR_API_PORT") == {"ARBOR_NOWHERE"}


def test_examples_compile_and_import_what_exists() -> None:
    found = list(examples())
    assert len(found) > 5
    missing = [f"{page}: {name}" for page, code in found for name in missing_names(code)]
    assert missing == []


def test_a_missing_name_of_an_example_is_reported() -> None:
    code = "from arbor_client import Arbor, Nobody\nawait x\nimport numpy"
    assert list(missing_names(code)) == ["arbor_client.Nobody"]
    with pytest.raises(SyntaxError):
        list(missing_names("def f(:"))


def test_named_pages_of_the_console_exist() -> None:
    places = [place for page in PAGES for place in _PLACE.findall(page.read_text(encoding="utf-8"))]
    assert sum(section in {part.title for part in SECTIONS} for section, _ in places) > 10
    unknown = [f"{page}: {place}" for page in PAGES for place in unknown_places(page.read_text("utf-8"))]
    assert unknown == []


def test_an_unknown_page_of_the_console_is_reported() -> None:
    text = (
        "*Memory → Recall*, Self and proposals, *Proposals*; *Audit → Audit log*, *Goals → Workflows → Add*"
    )
    assert list(unknown_places(text)) == ["Audit → Audit log"]
