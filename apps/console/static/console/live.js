// Requests the changing parts of a page at intervals and replaces them. Without this file a page stays as it was loaded.
"use strict";

const LONGEST_PAUSE_S = 60;
const TIMEOUT_MS = 15000;

class LivePage {
  constructor(bar) {
    this.bar = bar;
    this.every = Number(bar.dataset.live);
    this.words = bar.querySelector("[data-live-words]");
    this.alarm = bar.querySelector("[data-live-alarm]");
    this.button = bar.querySelector("button");
    this.updated = Date.now();
    this.failures = 0;
    this.paused = false;
    this.ended = false;
    this.raw = new Map();
    this.button.addEventListener("click", () => this.pause(!this.paused));
    document.addEventListener("visibilitychange", () => !document.hidden && this.plan(0));
    window.addEventListener("online", () => this.plan(0));
    setInterval(() => this.write(), 1000);
    bar.hidden = false;
    this.write();
    this.plan(this.every);
  }

  pause(paused) {
    this.paused = paused;
    this.button.textContent = paused ? "Resume updates" : "Pause updates";
    this.write();
    if (!paused) this.plan(0);
  }

  plan(seconds) {
    clearTimeout(this.timer);
    if (!this.ended) this.timer = setTimeout(() => this.ask(), seconds * 1000);
  }

  async ask() {
    if (this.paused || document.hidden) return;
    try {
      const answer = await fetch(location.href, {
        headers: { "X-Live": "1", "X-Page-Tenant": pageTenant() },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      // Whoever is signed out is led to another page, which has no parts.
      if (answer.redirected || answer.status === 403) return this.end("You are signed out, or may not see this any more. Reload the page.");
      if (answer.status === 409) return this.end("You work in another tenant now. Reload the page.");
      if (!answer.ok) throw new Error(answer.status);
      if (!this.paused) this.show(await answer.text());
      this.updated = Date.now();
      this.failures = 0;
      this.say("");
      if (answer.headers.get("X-Ended")) return this.end("");
      this.plan(this.every);
    } catch {
      this.failures += 1;
      this.say("Connection lost: what is shown may be out of date. Trying again.");
      this.plan(Math.min(this.every * 2 ** this.failures, LONGEST_PAUSE_S));
    }
    this.write();
  }

  end(alarm) {
    this.ended = true;
    this.button.hidden = true;
    this.say(alarm);
    this.write();
  }

  // Read out by assistive software, so only on a change.
  say(alarm) {
    if (this.alarm.textContent !== alarm) this.alarm.textContent = alarm;
    this.bar.classList.toggle("ar-stale", alarm !== "");
  }

  write() {
    const seconds = Math.round((Date.now() - this.updated) / 1000);
    const age = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
    this.words.textContent = this.ended && !this.failures ? "Ended: no more updates" : `${this.paused ? "Paused, updated" : "Updated"} ${age} ago`;
  }

  show(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-part]")) {
      const next = fresh.querySelector(`[data-part="${part.dataset.part}"]`);
      if (!next || this.raw.get(part.dataset.part) === next.innerHTML || isSelected(part)) continue;
      this.raw.set(part.dataset.part, next.innerHTML);
      const restore = remember(part);
      part.replaceChildren(...document.adoptNode(next).childNodes);
      applySizes(part);
      applyZone(part);
      restore();
    }
  }
}

function isSelected(part) {
  const selection = document.getSelection();
  return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
}

// Focus, open details and scrolled tables are as before: the new elements are found by their place and address.
function remember(part) {
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  const same = (element) => element.tagName === active.tagName && element.id === active.id && element.getAttribute("href") === active.getAttribute("href");
  const place = active ? [...part.querySelectorAll("*")].filter(same).indexOf(active) : -1;
  const open = [...part.querySelectorAll("details")].map((fold) => fold.open);
  const scrolled = [...part.querySelectorAll(".ar-scroll, .overflow-x-auto")].map((box) => box.scrollLeft);
  return () => {
    part.querySelectorAll("details").forEach((fold, index) => (fold.open = open[index] ?? fold.open));
    part.querySelectorAll(".ar-scroll, .overflow-x-auto").forEach((box, index) => (box.scrollLeft = scrolled[index] ?? 0));
    if (active) [...part.querySelectorAll("*")].filter(same)[place]?.focus({ preventScroll: true });
  };
}

document.addEventListener("DOMContentLoaded", () => {
  const bar = document.querySelector("[data-live]");
  if (bar) window.livePage = new LivePage(bar);
});
