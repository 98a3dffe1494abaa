"""Links, paths and tables of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.queues import QUEUE_OF, Task

ROOT = Path(__file__).resolve().parents[2]
README_BYTES = 8_192
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", flags=re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = page.read_text(encoding="utf-8")
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in _HEADING.findall(text)
    }


def broken_links(page: Path) -> Iterator[str]:
    """Yield the relative links of a page that lead nowhere."""
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page, of mine\n[a](page.md#a-page-of-mine) [b](other.md) [c](#nowhere) [d](https://x.org/e)"
    )
    assert list(broken_links(page)) == ["other.md", "#nowhere"]


def test_the_table_of_jobs_lists_the_schedule() -> None:
    scheduled = re.findall(r"\bTask\.(\w+):", (ROOT / "workers/schedule.py").read_text(encoding="utf-8"))
    assert scheduled
    guide = (ROOT / "docs/how-to/operate.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(arbor\.[\w.]+)` \| `(\w+)` \|", guide, flags=re.MULTILINE)
    expected = {(Task[name].value, QUEUE_OF[Task[name]].value) for name in scheduled}
    assert sorted(listed) == sorted(expected)


def test_documents_that_files_name_exist() -> None:
    folders = ("arbor", "apps", "workers", "config", "bench", "scripts", "tests")
    files = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".sh", ".html", ".md")
    ]
    files += [
        ROOT / name for name in (".env.example", "compose.yaml", "Makefile", "pyproject.toml", "CHANGELOG.md")
    ]
    named = {
        (path.relative_to(ROOT), document)
        for path in files
        for document in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert sorted(f"{path}: {document}" for path, document in named if not (ROOT / document).exists()) == []


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs") for page in PAGES if page.is_relative_to(ROOT / "docs")]
    missing = [
        str(page)
        for page in pages
        if page.parts[0] not in ("decisions", "README.md") and f"({page})" not in index
    ]
    assert missing == []


def test_the_readme_stays_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= README_BYTES


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


def described_packages() -> set[str]:
    """Return the packages that the table describes."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = text.partition("\n## Packages\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+/)` \| .+ \|$", section, flags=re.MULTILINE))


def test_every_package_is_described() -> None:
    assert sorted(packages() - described_packages()) == []


def test_every_described_package_exists() -> None:
    assert sorted(described_packages() - packages()) == []


def test_files_of_the_walkthroughs_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:arbor|apps|workers|config)/[\w/]+\.py)`", text))
    assert len(named) > 20
    assert sorted(path for path in named if not (ROOT / path).exists()) == []
