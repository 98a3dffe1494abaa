"""`make pictures`: the pictures of the documentation, taken anew from a demo installation of its own."""

from __future__ import annotations

import struct
import sys
import tempfile
import zlib
from pathlib import Path

from config.servers.ports import free_port

# Removes the developer's variables, which would choose a model or a server.
from tests import environment  # noqa: F401
from tests.acceptance.browser import CHROMIUM, Browser
from tests.acceptance.installation import ROOT, Installation

IMAGES = ROOT / "docs" / "images"
#: The heartbeats of all agents before the pictures are taken: at least two of each, as the demo's six agents take turns.
HEARTBEATS, WITHIN_S = 14, 600.0
#: The size of the browser, and the greatest height of a picture.
WIDTH, HEIGHT, HIGHEST = 1440, 900, 1500
PASSWORD = "pictures-of-the-console"
SERVERS = ("WEB", "FLOWER", "POSTGRES", "VALKEY")
#: By the name of the picture: the page to open, and the selector of a link on it that leads to the pictured page; empty: the page itself.
PAGES: dict[str, tuple[str, str]] = {
    "fleet": ("", ""),
    "operations": ("operations/", ""),
    "heartbeat": (
        "heartbeats/heartbeat/?status__exact=done",
        "#result_list tbody a[href*='/heartbeats/heartbeat/']",
    ),
}


def main() -> int:
    """Take the pictures; return the exit code."""
    if CHROMIUM is None:
        sys.stderr.write("no Chromium was found: install one, such as the package `chromium`\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="arbor-pictures-") as folder:
        ports = {f"ARBOR_{server}_PORT": str(free_port()) for server in SERVERS}
        demo = Installation(Path(folder), **ports, ARBOR_OPERATOR="ann", ARBOR_OPERATOR_PASSWORD=PASSWORD)
        demo.start(within_s=WITHIN_S)
        try:
            demo.wait_for_heartbeats(HEARTBEATS, within_s=WITHIN_S)
            with Browser(width=WIDTH, height=HEIGHT) as browser:
                save_pictures(browser, f"http://127.0.0.1:{ports['ARBOR_WEB_PORT']}", folder=IMAGES)
        finally:
            demo.stop()
    return 0


def save_pictures(browser: Browser, address: str, *, folder: Path) -> None:
    """Save all pictures of an installation, as its operator sees them."""
    browser.view(dark=False)
    browser.open(f"{address}/admin/")
    browser.fill("#id_username", "ann")
    browser.fill("#id_password", PASSWORD)
    browser.click("#login-form button[type=submit]")
    folder.mkdir(parents=True, exist_ok=True)
    for name, (page, link) in PAGES.items():
        browser.open(f"{address}/admin/{page}")
        if link:
            browser.open(browser.evaluate(f"document.querySelector({link!r}).href"))
        path = browser.screenshot(folder / f"{name}.png", highest=HIGHEST)
        path.write_bytes(compress_png(path.read_bytes()))
        sys.stdout.write(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1024} kB\n")


def compress_png(png: bytes) -> bytes:
    """Return a PNG with its data compressed for size; a browser compresses for speed."""
    parts, at, pixels = [png[:8]], 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, whole = png[at + 4 : at + 8], png[at : at + 12 + length]
        at += 12 + length
        if kind == b"IDAT":
            pixels += whole[8:-4]
        elif kind == b"IEND":
            data = zlib.compress(zlib.decompress(pixels), 9)
            checksum = struct.pack(">I", zlib.crc32(b"IDAT" + data))
            parts += [struct.pack(">I", len(data)), b"IDAT", data, checksum, whole]
        else:
            parts.append(whole)
    return b"".join(parts)


if __name__ == "__main__":
    sys.exit(main())
