"""Rules of accessibility, checked in a browser: those of axe, and the width of pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.acceptance.browser import Browser

#: The rules that depend on colours.
COLORS = ("color-contrast",)
#: The criteria of WCAG 2.0, 2.1 and 2.2, levels A and AA.
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa")


@cache
def _axe_source() -> str:
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "axe.min.js").read_text()


def find_violations(
    browser: Browser, *, rules: Sequence[str] = (), within: str = "html", colors: bool = True
) -> list[str]:
    """Return the violations of the page that is open: of the given rules, or of all of WCAG A and AA.

    `within` selects the part that is checked. Without `colors`, the rules about colours are left out, which take most of the time.
    """
    if not browser.evaluate("Boolean(window.axe)"):
        browser.evaluate(f"{_axe_source()}; true")
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
    options: dict[str, Any] = {"runOnly": only, "resultTypes": ["violations"], "elementRef": False}
    if not colors:
        options["rules"] = {rule: {"enabled": False} for rule in COLORS}
    found: list[dict[str, Any]] = browser.evaluate(
        f"axe.run({json.dumps(within)}, {json.dumps(options)}).then(found => found.violations.map(violation => ({{"
        "rule: violation.id, nodes: violation.nodes.map(node => "
        "`${node.target.join(' ')} ${node.html.slice(0, 160)} ${(node.any[0] || node.all[0] || node.none[0])?.message ?? ''}`)})))"
    )
    return [f"{violation['rule']}: {node}" for violation in found for node in violation["nodes"]]


def find_overflow(browser: Browser) -> list[str]:
    """Return the elements that make the page wider than the screen."""
    wider: list[str] = browser.evaluate(_WIDER)
    return wider


_WIDER = """
(() => {
  const screen = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= screen) return [];
  const contained = (element) => {
    for (let box = element.parentElement; box && box !== document.body; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== "visible") return true;
    return false;
  };
  return [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > screen + 1 && !contained(element))
    .map((element) => element.outerHTML.slice(0, 120)).slice(0, 5).concat([`${document.documentElement.scrollWidth}`]);
})()
"""
