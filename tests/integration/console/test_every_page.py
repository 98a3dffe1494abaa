"""Every page, rendered once for its viewer and for its owner: pages open, escape texts, run few queries and change no row."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tests.support.console_crawls import OwnerCrawl, ViewerCrawl

#: A test that renders all pages needs more time on a busy machine.
pytestmark = pytest.mark.timeout(300)

#: The most queries of a page, those of the session and the user included.
QUERIES_AT_MOST = 30
LIST_QUERIES_AT_MOST = 9
#: Relations end in five tables: one more query reads the ends, for all rows of the page.
LIST_WITH_ONE_MORE_QUERY = "/admin/memories/edge/"

_MOMENT = re.compile(r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d|\b[A-Z][a-z]{2,8}\.? \d{1,2}, 20\d\d")
#: A time at the end of a text, as rows and their titles write it: the script finds it by this form.
_WRITTEN = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC( \| [\w ]+ \| Arbor)?$")
#: Elements that show stored values as they are, such as JSON.
_STORED = frozenset({"pre", "textarea", "script", "code"})
_VOID = frozenset({"br", "img", "input", "link", "meta", "hr"})


def test_every_page_opens(viewer_crawl: ViewerCrawl, owner_crawl: OwnerCrawl) -> None:
    for page in (*viewer_crawl.pages, *owner_crawl.few, *owner_crawl.many):
        assert page.status == 200, page.address
        assert page.templates, page.address


def test_every_part_of_a_self_has_a_page_and_a_list(viewer_crawl: ViewerCrawl) -> None:
    pages = [page for page in viewer_crawl.pages if "/selves/" in page.address]
    names = ("belief", "beliefevidence", "boundary", "experience", "identityaspect", "peermodel")
    for name in (*names, "preference", "proposal", "selfchange"):
        addresses = [page.address for page in pages if f"/selves/{name}/" in page.address]
        assert {address.endswith("/change/") for address in addresses} == {True, False}, name


def test_every_page_of_goals_has_few_queries(viewer_crawl: ViewerCrawl) -> None:
    pages = [page for page in viewer_crawl.pages if "/goals/" in page.address]
    assert len(pages) >= 14
    for page in pages:
        assert len(page.queries) <= QUERIES_AT_MOST, page.address


def test_no_page_names_another_tenant(viewer_crawl: ViewerCrawl) -> None:
    for page in viewer_crawl.pages:
        assert "globex" not in page.text.casefold(), page.address
        assert str(viewer_crawl.other_agent) not in page.text, page.address


class _ScriptCollector(HTMLParser):
    """A parser that collects the parts of a page that a browser would run."""

    def __init__(self) -> None:
        super().__init__()
        self.run: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        for name, value in attrs:
            if name.startswith(("on", "x-", "@", "hx-", "style", "src")):
                self.run.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.run.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False


def test_scripts_in_stored_texts_are_escaped(viewer_crawl: ViewerCrawl) -> None:
    for page in viewer_crawl.pages:
        collector = _ScriptCollector()
        collector.feed(page.text)
        assert len(collector.run) > 10, page.address
        assert not [statement for statement in collector.run if "alert" in statement], page.address
        assert "14' on" not in page.text, page.address
    texts = {page.address: page.text for page in viewer_crawl.pages}
    for address in viewer_crawl.of_agent:
        assert "&lt;script&gt;alert(1)" in texts[address]


def test_the_private_half_of_a_key_is_on_no_page_and_in_no_query(owner_crawl: OwnerCrawl) -> None:
    for page in owner_crawl.few:
        assert "Y2lwaGVydGV4dA" not in page.text, page.address
        assert "sealed_private_key" not in page.text, page.address
        assert page.queries, page.address
        assert not [query for query in page.queries if "sealed_private_key" in query], page.address


def test_no_page_changes_a_row(owner_crawl: OwnerCrawl) -> None:
    assert owner_crawl.before == owner_crawl.after != {}
    assert owner_crawl.recalled == 3


def test_no_page_asks_the_broker(owner_crawl: OwnerCrawl) -> None:
    assert owner_crawl.broker_connections == 0


def test_a_pages_queries_do_not_grow_with_its_rows(owner_crawl: OwnerCrawl) -> None:
    few, many = (
        {page.address: len(page.queries) for page in pages} for pages in (owner_crawl.few, owner_crawl.many)
    )
    assert many == few
    assert max(many.values()) <= QUERIES_AT_MOST
    lists = {page: count for page, count in many.items() if page.count("/") == 4 and page.endswith("/")}
    assert len(lists) > 10
    assert lists.pop(LIST_WITH_ONE_MORE_QUERY) <= LIST_QUERIES_AT_MOST + 1
    assert max(lists.values()) <= LIST_QUERIES_AT_MOST


def test_no_page_counts_a_whole_table(owner_crawl: OwnerCrawl) -> None:
    for page in owner_crawl.few:
        for count in (query for query in page.queries if "COUNT(" in query):
            # The calls of one agent in a week are few, and have an index.
            of_agent = '"calls_ledgerentry"."agent_id" =' in count and '"calls_ledgerentry"."at" >=' in count
            bounded = "LIMIT" in count or "GROUP BY" in count or of_agent
            assert bounded, f"{page.address}: {count}"


class _MomentCollector(HTMLParser):
    """A parser that collects the times of a page that the script does not rewrite."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        marked = tag in _STORED or tag == "time" or "data-utc" in names or "value" in names
        title = names.get("title") or ""
        if _MOMENT.search(title) and not marked:
            self.found.append(f"{tag} title={title[:80]}")
        if tag not in _VOID:
            self._open.append((tag, marked))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if _WRITTEN.search(data.strip()):
            return
        if _MOMENT.search(data) and not any(marked for _, marked in self._open):
            self.found.append(data.strip()[:80])


def test_every_time_is_written_in_the_viewers_zone(owner_crawl: OwnerCrawl) -> None:
    unmarked: dict[str, list[str]] = {}
    for page in owner_crawl.many:
        collector = _MomentCollector()
        collector.feed(page.text)
        if collector.found:
            unmarked[page.address] = collector.found[:4]
    assert unmarked == {}, "\n".join(f"{address}: {found}" for address, found in unmarked.items())
