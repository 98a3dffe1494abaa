"""A newcomer without a terminal: from an empty installation to a talking agent, and the first acts of an operator.

`KEEP_PICTURES=FOLDER pytest tests/acceptance/test_newcomer.py` stores the screenshots there.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.acceptance.browser import Browser, needs_chromium
from tests.acceptance.installation import Installation
from tests.support.provider_server import KEY, REST, ProviderServer, provider_server

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600), needs_chromium]

#: Answers, heartbeats and the silence of a killed process appear on pages within this time.
SHOWN_WITHIN_S = 90
PASSWORD = "ferry-on-the-river"
FACT = "The ferry to the north quay leaves at seven, and Ben keeps its log."
INSIGHT = "I value readings that were taken twice."


@dataclass(kw_only=True)
class Newcomer:
    """A person with a browser and a key of a provider, and the installation that somebody started for them."""

    browser: Browser
    url: str
    installation: Installation
    provider: ProviderServer
    pictures: Path
    #: The address of their agent's page.
    agent: str = ""

    def open(self, page: str) -> str:
        """Open a page of the console and return its text."""
        self.browser.open(f"{self.url}/{page}")
        return self.browser.text()

    def follow(self, selector: str) -> str:
        """Click a link or button and return the text of the page that follows."""
        self.browser.click(selector)
        return self.browser.text()

    def wait_for(self, page: str, words: str, selector: str = "body") -> None:
        """Load a page anew until it shows the words."""
        deadline = time.monotonic() + SHOWN_WITHIN_S
        while words not in self.shown(page, selector):
            assert time.monotonic() < deadline, f"{page} does not show {words!r}: {self.browser.text()}"
            time.sleep(0.5)

    def shown(self, page: str, selector: str) -> str:
        self.open(page)
        return self.browser.text(selector) if self.browser.count(selector) else ""

    def picture(self, name: str) -> None:
        """Save a screenshot, and check that the page fits the screen and violates no policy."""
        self.browser.picture(self.pictures, f"newcomer-{name}")


def propose(prompt: str) -> dict[str, Any]:
    """Decide a heartbeat: rest, and propose an insight that rests on the memories that the prompt shows."""
    evidence = list(dict.fromkeys(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", prompt)))
    insight = {"kind": "value", "content": INSIGHT, "confidence": 0.8, "evidence": evidence[-10:]}
    return {**REST, "identity_insights": [insight]}


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Iterator[Newcomer]:
    """Start an empty installation, and open its console."""
    with (
        django_db_blocker.unblock(),
        tempfile.TemporaryDirectory(prefix="arbor-new-") as folder,
        provider_server() as provider,
        Browser() as browser,
    ):
        provider.decide = propose
        installation = Installation(Path(folder), ARBOR_MODEL_ALLOW_PRIVATE="true")
        installation.use_migrated_cluster()
        try:
            installation.start("--no-demo", "--only", "dispatcher,heartbeat,model,maintenance,scheduler,web")
            yield Newcomer(
                browser=browser,
                url=f"{installation.status()['urls']['web']}admin",
                installation=installation,
                provider=provider,
                pictures=tmp_path_factory.mktemp("pictures"),
            )
        finally:
            if installation.process is not None and installation.process.poll() is None:
                installation.stop()
            for process in installation.processes():
                process.kill()


def test_the_first_steps_lead_to_a_tenant(newcomer: Newcomer) -> None:
    browser = newcomer.browser
    browser.open(f"{newcomer.url}/")
    newcomer.picture("sign-in")
    browser.fill("#id_username", "operator")
    browser.fill(
        "#id_password", (newcomer.installation.folder / "secrets" / "operator_password").read_text().strip()
    )
    assert "First steps" in newcomer.follow("#login-form button[type=submit]")
    newcomer.picture("empty")
    browser.fill("#new-tenant input[name=name]", "Harbour Office")
    assert "Created tenant Harbour Office." in newcomer.follow("#new-tenant button")
    newcomer.picture("first-steps")


def test_a_key_is_entered_and_tried(newcomer: Newcomer) -> None:
    browser = newcomer.browser
    newcomer.open("")
    assert "No language model is in use." in newcomer.follow("[data-step=model] a")
    newcomer.picture("models-empty")
    browser.fill("#new-key input[name=key]", "sk-mistyped-0123456789abcdef")
    browser.fill("#new-key input[name=base_url]", newcomer.provider.base_url)
    browser.fill("#new-key input[name=model]", "small-chat")
    assert "openai rejected the key: 401" in newcomer.follow("#new-key button")
    newcomer.picture("models-refused")
    browser.fill("#new-key input[name=key]", KEY)
    text = newcomer.follow("#new-key button")
    assert "The key of openai works and is stored. It lists 2 models." in text
    assert browser.text("#model-in-use") == "openai/small-chat"
    assert KEY not in browser.evaluate("document.documentElement.outerHTML")
    newcomer.picture("models")


def test_an_agent_is_created_and_talks(newcomer: Newcomer) -> None:
    browser = newcomer.browser
    newcomer.open("first-steps/")
    newcomer.follow("[data-step=agent] a")
    browser.fill("#id_name", "Vega")
    browser.evaluate("document.querySelector('#id_template').value = 'Monitor'")
    newcomer.picture("new-agent")
    newcomer.follow("#new-agent button[type=submit]")
    newcomer.agent = browser.address.removeprefix(f"{newcomer.url}/")
    newcomer.open("")
    newcomer.follow("[data-step=talk] a")
    chat = browser.address.removeprefix(f"{newcomer.url}/")
    browser.fill("#say textarea", FACT)
    browser.click("#say button[type=submit]")
    newcomer.wait_for(chat, newcomer.provider.reply)
    newcomer.picture("chat")
    header, body = next(
        (header, body)
        for header, body in newcomer.provider.asked("/v1/chat/completions")
        if FACT in str(body["messages"])
    )
    assert header == f"Bearer {KEY}"
    assert body["model"] == "small-chat"


def test_a_heartbeat_is_seen(newcomer: Newcomer) -> None:
    newcomer.open(newcomer.agent)
    newcomer.follow(".ar-acts form:has(input[value=run]) button")
    newcomer.wait_for("first-steps/", "done", "[data-step=heartbeat][data-done]")
    newcomer.picture("first-steps-done")
    newcomer.open("")
    assert newcomer.browser.count("#onboarding") == 0
    newcomer.picture("fleet")


@pytest.fixture(scope="module")
def killed_pid(newcomer: Newcomer) -> int:
    """Kill the maintenance worker and return its process id; a page shows its silence a while later."""
    part = newcomer.installation.part("maintenance")
    process = psutil.Process(part["pid"])
    for victim in [*process.children(recursive=True), process]:
        victim.kill()
    return process.pid


@pytest.mark.usefixtures("killed_pid")
def test_a_memory_and_its_score_are_found(newcomer: Newcomer) -> None:
    browser = newcomer.browser
    newcomer.open("memories/recall/")
    browser.fill(
        "#recall [name=agent]", browser.evaluate("document.querySelector('#agent-names option').value")
    )
    browser.fill("#recall input[name=q]", "When does the ferry leave?")
    newcomer.follow("#recall button[type=submit]")
    assert "leaves at seven" in browser.text("#recalled li")
    assert browser.count("#recalled li:first-child rect") >= 2
    newcomer.picture("recall")


def test_a_proposal_is_decided(newcomer: Newcomer) -> None:
    newcomer.wait_for(newcomer.agent, INSIGHT, "#proposals")
    newcomer.picture("proposal")
    assert "1 proposal accepted." in newcomer.follow("#proposals button[value^=accept]")
    newcomer.picture("agent")


def test_a_members_access_ends_at_once(newcomer: Newcomer) -> None:
    browser = newcomer.browser
    newcomer.open("tenants/user/add/")
    browser.fill("#id_username", "ben")
    browser.fill("#id_password", PASSWORD)
    assert "Created account ben." in newcomer.follow("#new-account button[type=submit]")
    newcomer.open("tenants/membership/")
    browser.fill("#new-member input[name=username]", "ben")
    newcomer.follow("#new-member button")
    with httpx.Client(follow_redirects=True, timeout=30) as ben:
        ben.get(f"{newcomer.url}/login/")
        form = {"username": "ben", "password": PASSWORD, "csrfmiddlewaretoken": ben.cookies["csrftoken"]}
        assert "Vega" in ben.post(f"{newcomer.url}/login/", data=form | {"next": "/admin/"}).text
        newcomer.open("tenants/membership/?q=ben")
        newcomer.follow("#result_list tbody a")
        newcomer.picture("member")
        browser.evaluate("window.confirm = () => true")
        assert "ben is no longer a member. Ended 1 session of ben." in newcomer.follow(
            "#member-acts button[value=end]"
        )
        answer = ben.get(f"{newcomer.url}/{newcomer.agent}")
        assert "/login/" in str(answer.url)
        assert "Vega" not in answer.text


def test_a_dead_worker_is_seen(newcomer: Newcomer, killed_pid: int) -> None:
    newcomer.wait_for("operations/", "silent", f"tr[data-process$='{killed_pid}']")
    newcomer.picture("operations")


def test_a_runaway_tenant_is_stopped(newcomer: Newcomer) -> None:
    browser = newcomer.browser
    newcomer.open("operations/")
    browser.fill("#pause-all input[name=confirm]", "harbour-office")
    assert "1 agent paused." in newcomer.follow("#pause-all button[value=pause-all]")
    assert "paused" in newcomer.shown(newcomer.agent, ".ar-head")
