// A form that tries a call shows the answer and the code beside it, without leaving the page.

import { enhance } from "./shell.js";

const form = document.querySelector("form[data-try]");
let waiting = null;
let number = 0;

async function load(values) {
  const mine = ++number;
  const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(values) });
  if (mine !== number) return undefined; // a newer one is on its way
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const link of page.querySelectorAll("a[href]")) link.href = new URL(link.getAttribute("href"), form.action);
  return page.getElementById("answer") ? page : null;
}

function take(page, id) {
  const open = document.querySelector(`#${id} details[open] > summary`)?.textContent;
  document.getElementById(id).replaceChildren(...page.getElementById(id).childNodes);
  enhance(document.getElementById(id));
  for (const each of document.querySelectorAll("#code details")) {
    if (id === "code" && open) each.open = each.querySelector("summary").textContent === open;
  }
}

function valuesFor(only) {
  const values = new FormData(form);
  values.set("only", only);
  return values;
}

async function send() {
  clearTimeout(waiting);
  form.setAttribute("aria-busy", "true");
  try {
    const page = await load(valuesFor(""));
    if (page) {
      take(page, "answer");
      take(page, "code");
      document.getElementById("answer").scrollIntoView({ block: "nearest" });
    }
    else if (page === null) location.assign(form.action); // it asks for a key, or this form is too old
  } finally {
    form.removeAttribute("aria-busy");
  }
}

async function code() {
  const page = await load(valuesFor("code"));
  if (page) take(page, "code");
}

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter?.value === "code") code();
    else send();
  });
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(code, 500);
  });
  form.querySelector("[data-code]").hidden = true; // it follows what is written
}
