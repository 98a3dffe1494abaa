// Sends the files of a form one by one and shows the progress. Without this file the form sends all of them at once.
"use strict";

class Uploads {
  constructor(form) {
    this.form = form;
    this.shown = document.getElementById("uploads");
    this.bar = this.shown.querySelector("progress");
    this.words = this.shown.querySelector("[data-uploads-words]");
    this.errors = this.shown.querySelector("[data-uploads-errors]");
    this.link = this.shown.querySelector("a");
    form.addEventListener("submit", (event) => {
      const files = [...form.querySelector("input[type=file]").files];
      if (!files.length) return;
      event.preventDefault();
      this.send(files);
    });
  }

  async send(files) {
    this.form.querySelector("button[type=submit]").disabled = true;
    this.shown.hidden = false;
    this.errors.replaceChildren();
    const total = Math.max(1, files.reduce((sum, file) => sum + file.size, 0));
    let sent = 0;
    let added = 0;
    for (const [number, file] of files.entries()) {
      this.words.textContent = `${number + 1} of ${files.length}: ${file.name}`;
      const answer = await this.post(file, (bytes) => (this.bar.value = Math.min(1, (sent + bytes) / total)));
      sent += file.size;
      this.bar.value = sent / total;
      added += answer.documents.length;
      for (const error of answer.errors) this.showError(error);
    }
    if (added === files.length) {
      location.assign(this.link.href);
      return;
    }
    this.words.textContent = `Files added${added ? ", which are being indexed" : ""}: ${added} of ${files.length}.`;
    this.link.hidden = false;
    this.form.querySelector("button[type=submit]").disabled = false;
  }

  showError(error) {
    const line = document.createElement("li");
    line.textContent = error;
    this.errors.append(line);
  }

  post(file, progress) {
    const body = new FormData(this.form);
    body.delete("chosen");
    body.append("chosen", file);
    return new Promise((resolve) => {
      const request = new XMLHttpRequest();
      request.open("POST", this.form.action || location.href);
      request.setRequestHeader("Accept", "application/json");
      request.responseType = "json";
      request.upload.addEventListener("progress", (event) => progress(event.loaded));
      const refused = (reason) => resolve({ documents: [], errors: [`${file.name}: ${reason}`] });
      request.addEventListener("load", () => {
        if (request.response && request.response.documents) resolve(request.response);
        else if (request.status === 413) refused("the file is too large.");
        else refused(`the server answered ${request.status}. Reload the page and try again.`);
      });
      request.addEventListener("error", () => refused("the connection was lost, or the file is too large."));
      request.send(body);
    });
  }
}

document.addEventListener("DOMContentLoaded", () => {
  for (const form of document.querySelectorAll("form[data-uploads]")) new Uploads(form);
});
