"""A headless Chromium, driven by its debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

import pytest
from tornado.websocket import WebSocketClientConnection, websocket_connect

#: Names of the Chromium program, in order of preference: the shell without an interface takes a third less processor time.
NAMES = (
    "chromium-headless-shell",
    "headless_shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
)
#: Chromium runs as root in containers, without a screen, and connects to the page's own server only.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
PATIENCE_S = 60.0
#: Keys that are no letters: their codes, and the text that they type.
_KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), " ": (32, " "), "ArrowDown": (40, "")}
_RECORD_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(
  `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`));
"""


#: The path of a Chromium; None: there is none.
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium was found on this machine")


class Browser:
    """A Chromium with one tab."""

    def __init__(self, *, width: int = 1440, height: int = 900) -> None:
        assert CHROMIUM is not None, "no Chromium was found on this machine"
        self._folder = Path(tempfile.mkdtemp(prefix="arbor-chromium-"))
        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={self._folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Its program may be a script that does not pass signals on.
            process_group=0,
        )
        self._loop = asyncio.new_event_loop()
        self._calls = 0
        self._socket: WebSocketClientConnection = self._do(self._connect())
        self._width, self._height = width, height
        self._command("Page.enable")
        self.run_on_each_page(_RECORD_VIOLATIONS)
        self._resize(height)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        try:
            self._do(self._disconnect())
            self._loop.close()
        finally:
            os.killpg(self._process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)

    # --- What a test does --------------------------------------------------------------------------------

    def open(self, url: str) -> None:
        """Go to an address, and wait until the page is loaded."""
        self._command("Page.navigate", url=url)
        self.wait_until_loaded()

    def evaluate(self, script: str) -> Any:
        """Return the JSON value of an expression in the page."""
        answer = self._command(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"the page could not evaluate {script!r}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def run_on_each_page(self, script: str) -> None:
        """Run a script on each page that is opened from now on, before the page's own."""
        self._command("Page.addScriptToEvaluateOnNewDocument", source=script)

    def text(self, selector: str = "body") -> str:
        """Return the visible text of the first element that matches; fails when there is none."""
        value = self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")
        assert value is not None, f"nothing on {self.address} matches {selector}"
        return str(value)

    def count(self, selector: str) -> int:
        """Count the elements that match."""
        return int(self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def fill(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")

    def click(self, selector: str) -> None:
        """Click, and wait for the page that follows."""
        self.evaluate("window.stillHere = true")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        self.wait_for("window.stillHere === undefined")
        self.wait_until_loaded()

    def press(self, key: str) -> None:
        """Press and release a key: `Tab`, `Enter`, `Escape`, ` ` or a letter."""
        code, text = _KEYS.get(key, (ord(key[0].upper()), key))
        pressed = {"key": key, "windowsVirtualKeyCode": code}
        self._command("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
        self._command("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def view(self, *, width: int | None = None, dark: bool = False, scripts: bool = True) -> None:
        """Change the width, the color scheme that the person prefers, and whether pages run scripts."""
        self._width = width or self._width
        self._resize(self._height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", features=[scheme])
        self._command("Emulation.setScriptExecutionDisabled", value=not scripts)

    def wait_for(self, condition: str) -> None:
        """Wait until an expression in the page is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < deadline, (
                f"{condition} is not true on {self.address} within {PATIENCE_S} s"
            )
            self._do(asyncio.sleep(0.03))

    def wait_until_loaded(self) -> None:
        """Wait until the page is shown with its fonts."""
        # Alpine shows the page once started.
        self.wait_for(
            "document.readyState === 'complete' && getComputedStyle(document.documentElement).display !== 'none'"
        )
        self.evaluate("document.fonts.ready.then(() => true)")

    def set_zone(self, name: str) -> None:
        """Change the time zone of the person; empty: that of the machine."""
        self._command("Emulation.setTimezoneOverride", timezoneId=name)

    def violations(self) -> list[str]:
        """Return what the content security policy has blocked on the page."""
        blocked: list[str] = self.evaluate("window.violations")
        return blocked

    @property
    def address(self) -> str:
        """Return the address of the open page."""
        return str(self.evaluate("location.href"))

    def screenshot(self, path: Path, *, highest: int = 20_000) -> Path:
        """Save a screenshot of the whole page, or of its upper part."""
        self._resize(min(int(self.evaluate("document.documentElement.scrollHeight")), highest))
        answer = self._command("Page.captureScreenshot", format="png")
        self._resize(self._height)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def picture(self, folder: Path, name: str) -> Path:
        """Save a screenshot, and check that the page fits the screen and violates no content security policy.

        Pictures are stored in the folder that KEEP_PICTURES names, or else in `folder`.
        """
        path = self.screenshot(Path(os.environ.get("KEEP_PICTURES") or folder) / f"{name}.png")
        wide = self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name} is wider than the screen"
        assert self.violations() == [], name
        return path

    # --- The protocol ------------------------------------------------------------------------------------

    def _resize(self, height: int) -> None:
        self._command(
            "Emulation.setDeviceMetricsOverride",
            width=self._width,
            height=max(height, self._height),
            deviceScaleFactor=1,
            mobile=False,
        )

    def _command(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._do(self._send(method, parameters))

    async def _send(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._calls += 1
        await self._socket.write_message(
            json.dumps({"id": self._calls, "method": method, "params": parameters})
        )
        while True:
            line = await asyncio.wait_for(self._socket.read_message(), PATIENCE_S)
            assert line is not None, "the browser has gone"
            answer = json.loads(line)
            if answer.get("id") == self._calls:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    async def _connect(self) -> WebSocketClientConnection:
        deadline = time.monotonic() + PATIENCE_S
        port_file = self._folder / "DevToolsActivePort"
        while not port_file.exists() or not port_file.read_text().strip():
            assert self._process.poll() is None, "the browser did not start"
            assert time.monotonic() < deadline, "the browser does not answer"
            await asyncio.sleep(0.05)
        port = port_file.read_text().splitlines()[0]
        with urlopen(Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")) as answer:
            target = json.load(answer)
        return await websocket_connect(target["webSocketDebuggerUrl"], max_message_size=64 * 1024 * 1024)

    async def _disconnect(self) -> None:
        self._socket.close()
        # The closing frame of the peer ends the connection; without it the loop would end with an open socket.
        while await asyncio.wait_for(self._socket.read_message(), PATIENCE_S) is not None:
            pass

    def _do[Value](self, work: Coroutine[Any, Any, Value]) -> Value:
        return self._loop.run_until_complete(work)
