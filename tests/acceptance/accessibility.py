"""Rules of accessibility, checked in a browser: those of axe, and the width of pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.acceptance.browser import Browser

#: The rules that depend on colors.
COLORS = ("color-contrast",)
#: The criteria of WCAG 2.0, 2.1 and 2.2, levels A and AA.
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa")


def axe_source() -> str:
    """Return the script of axe, which the functions below need on a page."""
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "axe.min.js").read_text()


def find_violations(
    browser: Browser, *, rules: Sequence[str] = (), within: str = "html", colors: bool = True
) -> list[str]:
    """Return the violations of the page that is open: of the given rules, or of all of WCAG A and AA.

    `within` selects the part that is checked. Without `colors`, the rules about colors are left out, which take most of the time.
    """
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
    options: dict[str, Any] = {"runOnly": only}
    if not colors:
        options["rules"] = {rule: {"enabled": False} for rule in COLORS}
    return _run_axe(browser, json.dumps(within), options)


class ColorCheck:
    """Checks colors of text, each combination of colors, sizes and weights once, on whatever page it is."""

    def __init__(self) -> None:
        self._checked: set[str] = set()

    def find_violations(self, browser: Browser, *, within: str) -> list[str]:
        """Return the violations of the page that is open, in combinations that were not checked before."""
        styles: list[str] = browser.evaluate(f"{_COLORED}({json.dumps(within)})")
        new = {style: place for place, style in enumerate(styles) if style not in self._checked}
        if not new:
            return []
        self._checked |= new.keys()
        elements = f"{json.dumps([*new.values()])}.map(place => window.colored[place])"
        return _run_axe(browser, f"{{include: {elements}}}", {"runOnly": {"type": "rule", "values": COLORS}})


def _run_axe(browser: Browser, context: str, options: dict[str, Any]) -> list[str]:
    options |= {"resultTypes": ["violations"], "elementRef": False}
    found: list[dict[str, Any]] = browser.evaluate(
        f"axe.run({context}, {json.dumps(options)}).then(found => found.violations.map(violation => ({{"
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

#: A function that collects the visible elements with text below a selector, and returns for each what its contrast depends on.
_COLORED = """
((within) => {
  const styleOf = (element) => getComputedStyle(element);
  const drawn = new Map();
  const behind = (element) => {
    if (!element) return "";
    if (!drawn.has(element)) {
      const {backgroundColor, backgroundImage, opacity} = styleOf(element);
      const own = backgroundColor === "rgba(0, 0, 0, 0)" ? "" : backgroundColor;
      const image = backgroundImage === "none" ? "" : backgroundImage;
      drawn.set(element, [own, image, opacity === "1" ? "" : opacity].join("") + "/" + behind(element.parentElement));
    }
    return drawn.get(element);
  };
  const written = (element) => /^(INPUT|SELECT|TEXTAREA)$/.test(element.tagName)
    || [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  window.colored = [...document.querySelectorAll(`${within} *`)].filter((element) => written(element) && element.checkVisibility());
  return window.colored.map((element) => {
    const {color, fontSize, fontWeight, textShadow} = styleOf(element);
    return [color, fontSize, fontWeight, textShadow, behind(element).replaceAll(/\\/+/g, "/")].join(" ");
  });
})
"""
