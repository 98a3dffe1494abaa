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
const pad = (number) => String(number).padStart(2, "0");
function localTime(moment) {
  const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" })
    .formatToParts(moment)
    .find((part) => part.type === "timeZoneName").value;
  const day = `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())}`;
  return `${day} ${pad(moment.getHours())}:${pad(moment.getMinutes())}:${pad(moment.getSeconds())} ${zone}`;
}
function applyZone(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    element.title = localTime(moment);
    if ("exact" in element.dataset) element.textContent = localTime(moment);
    if ("clock" in element.dataset) element.textContent = `${pad(moment.getHours())}:${pad(moment.getMinutes())}`;
  }
  // Texts around a time in UTC: the titles of cells and bars.
  for (const element of root.querySelectorAll("[data-utc]")) {
    const utc = element.dataset.utc;
    const text = `${utc} UTC`;
    const local = localTime(new Date(`${utc.replace(" ", "T")}Z`));
    if (element.title) element.title = element.title.replace(text, local);
    else element.textContent = element.textContent.replace(text, local);
  }
}

document.addEventListener("DOMContentLoaded", () => (applySizes(document), applyZone(document)));
document.addEventListener("htmx:afterSwap", (event) => (applySizes(event.target), applyZone(event.target)));
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.question;
  if (question && !window.confirm(question)) event.preventDefault();
});
