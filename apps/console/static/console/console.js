// The content security policy forbids inline scripts and styles: pages carry data, and this file acts on it.
"use strict";

// htmx would add an inline style for its indicators; `console.css` has it.
if (window.htmx) window.htmx.config.includeIndicatorStyles = false;

// Alpine sets some styles as an attribute, which the policy forbids; as properties it permits them.
const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function (name, value) {
  if (name === "style" && this.style) this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

function applySizes(root) {
  for (const element of root.querySelectorAll("[data-width]")) element.style.width = `${element.dataset.width}%`;
  for (const element of root.querySelectorAll("[data-left]")) element.style.left = `${element.dataset.left}%`;
  for (const element of root.querySelectorAll("[data-indent]")) element.style.paddingLeft = `${element.dataset.indent}px`;
}

// Pages write times in UTC; here they are written in the zone of the viewer.
const WRITTEN_TIME = /\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC$/;
const pad = (number) => String(number).padStart(2, "0");
const hasSeconds = (written) => /\d:\d\d:\d\d/.test(written);
function localTime(moment, withSeconds = true) {
  const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" })
    .formatToParts(moment)
    .find((part) => part.type === "timeZoneName").value;
  const day = `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())}`;
  const seconds = withSeconds ? `:${pad(moment.getSeconds())}` : "";
  return `${day} ${pad(moment.getHours())}:${pad(moment.getMinutes())}${seconds} ${zone}`;
}
function applyZone(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    element.title = localTime(moment);
    if ("exact" in element.dataset) element.textContent = localTime(moment);
    if ("clock" in element.dataset) element.textContent = `${pad(moment.getHours())}:${pad(moment.getMinutes())}`;
  }
  // Django writes the times of rows, and of their titles, as texts.
  for (const area of root.querySelectorAll("#result_list, .form-rows, h1")) {
    const texts = document.createTreeWalker(area, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      const utc = text.data.trim().match(WRITTEN_TIME)?.[0];
      if (!utc || text.parentElement.closest("time, pre")) continue;
      text.data = text.data.replace(utc, localTime(new Date(`${utc.slice(0, -4).replace(" ", "T")}Z`), hasSeconds(utc)));
      text.parentElement.title ||= utc;
    }
  }
  // Texts around a time in UTC: the titles of cells and bars.
  for (const element of root.querySelectorAll("[data-utc]")) {
    const utc = element.dataset.utc;
    const text = `${utc} UTC`;
    const moment = new Date(`${utc.replace(" ", "T")}Z`);
    if (Number.isNaN(moment.getTime())) continue;
    const local = localTime(moment, hasSeconds(utc));
    if (element.title) element.title = element.title.replace(text, local);
    else element.textContent = element.textContent.replace(text, local);
  }
}

// Some of Unfold's controls answer clicks only: they get a role, a place in the order of the focus, and the keys of a button.
const CONTROLS = "a[href], button, input, select, textarea, summary";
const NAMES = { "sidebarToggle()": "Open or close the menu", "showPassword = !showPassword": "Show or hide the password" };
function applyKeyboard(root) {
  for (const element of root.querySelectorAll("[x-on\\:click]")) {
    if (element.matches(CONTROLS) || element.querySelector(CONTROLS) || !element.textContent.trim()) continue;
    element.tabIndex = 0;
    element.setAttribute("role", "button");
    const name = NAMES[element.getAttribute("x-on:click")];
    if (name) element.setAttribute("aria-label", name);
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      element.click();
    });
  }
}

document.addEventListener("DOMContentLoaded", () => applyKeyboard(document));
document.addEventListener("DOMContentLoaded", () => (applySizes(document), applyZone(document)));
document.addEventListener("htmx:afterSwap", (event) => (applySizes(event.target), applyZone(event.target)));
// The tenant in which the page was opened; another tab may have chosen another one since.
function pageTenant() {
  return document.querySelector('meta[name="page-tenant"]')?.content ?? "";
}
document.addEventListener(
  "submit",
  ({ target: form }) => {
    if (form.method !== "post" || form.querySelector('input[name="page_tenant"]')) return;
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: "page_tenant", value: pageTenant() });
    form.append(field);
  },
  true,
);
// A double click sends a form once. The same form may be sent again later: an export leaves its page open.
const DOUBLE_CLICK_MS = 1000;
const sentAt = new WeakMap();
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.question || event.target.dataset.question;
  const isDouble = performance.now() - (sentAt.get(event.target) ?? -Infinity) < DOUBLE_CLICK_MS;
  if (isDouble || (question && !window.confirm(question))) event.preventDefault();
  else {
    sentAt.set(event.target, performance.now());
    storeTyped(event.target);
  }
});

// The page that shows why a form was refused gets back what was typed into it, except confirmations, and secrets, which addresses may contain too;
// never in another tenant.
const TYPED = "arbor-typed";
const FIELDS = "textarea, select, input:not([type=hidden], [type=password], [type=file], [type=checkbox], [type=radio])";
const LEFT_OUT = /secret|password|token|key|url|target|confirm/;
const typedFields = (form) => [...form.elements].filter((field) => field.matches(FIELDS) && !LEFT_OUT.test(field.name));
const describeForm = (form) => `${pageTenant()} ${location.pathname} ${form.getAttribute("action")} ${form.querySelector("input[name=act]")?.value}`;
function storeTyped(form) {
  if (form.method !== "post") return;
  const values = typedFields(form).map((field) => field.value);
  sessionStorage.setItem(TYPED, JSON.stringify({ place: [...document.forms].indexOf(form), described: describeForm(form), values }));
}
document.addEventListener("DOMContentLoaded", () => {
  const { place, described, values } = JSON.parse(sessionStorage.getItem(TYPED) ?? "{}");
  sessionStorage.removeItem(TYPED);
  const form = document.forms[place];
  if (!form || describeForm(form) !== described || !document.querySelector(".errornote")) return;
  typedFields(form).forEach((field, index) => {
    const isOffered = !field.options || [...field.options].some((option) => option.value === values[index]);
    if (isOffered && (field.options || !field.value)) field.value = values[index] ?? "";
  });
  form.closest("details")?.setAttribute("open", "");
});

// On a narrow screen, the tabs of a section scroll to the current one.
document.addEventListener("DOMContentLoaded", () => {
  const current = document.querySelector("#section-tabs [aria-current]");
  if (current) current.parentElement.scrollLeft = current.offsetLeft - current.parentElement.offsetLeft - 16;
});

// Menus close by Escape too. Unfold's close by a click outside of them.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.ar-tenant[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  document.body.click();
});
