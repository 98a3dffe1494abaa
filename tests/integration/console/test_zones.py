"""Times of pages: each is in UTC, in an element that the script rewrites in the viewer's time zone."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.support.console_crawls import OwnerCrawl

_MOMENT = re.compile(r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d|\b[A-Z][a-z]{2,8}\.? \d{1,2}, 20\d\d")
#: A time at the end of a text, as rows and their titles write it: the script finds it by this form.
_WRITTEN = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC( \| [\w ]+ \| Arbor)?$")
#: Elements that show stored values as they are, such as JSON.
_STORED = frozenset({"pre", "textarea", "script", "code"})
_VOID = frozenset({"br", "img", "input", "link", "meta", "hr"})


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
