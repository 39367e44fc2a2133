// On top of pages that work without it: copy buttons, parts that follow the sandbox, a key for the finder.

function copied(button) {
  button.classList.add("is-done");
  setTimeout(() => button.classList.remove("is-done"), 1500);
}

async function copy(button) {
  const text = button.dataset.copy ?? button.parentElement.querySelector("pre").textContent;
  try {
    await navigator.clipboard.writeText(text); // only on https and this machine's own addresses
  } catch {
    const field = document.body.appendChild(Object.assign(document.createElement("textarea"), { value: text }));
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  copied(button);
}

function showCopyButtons(root) {
  for (const button of root.querySelectorAll("[data-copy], .command > button")) button.hidden = false;
}

// JSON with names, texts and numbers told apart.
const token = /("(?:[^"\\]|\\.)*"?)(:?)|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

function colour(block) {
  const text = block.textContent;
  const found = [];
  let at = 0;
  for (const match of text.matchAll(token)) {
    const [whole, quoted, colon, word] = match;
    const kind = colon ? "name" : quoted ? "text" : word ? "word" : "number";
    const piece = Object.assign(document.createElement("span"), { className: `j-${kind}`, textContent: whole });
    found.push(text.slice(at, match.index), piece);
    at = match.index + whole.length;
  }
  block.replaceChildren(...found, text.slice(at));
}

export function enhance(root) {
  showCopyButtons(root);
  for (const block of root.querySelectorAll(".json:not(.is-text)")) colour(block);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy], .command > button");
  if (button) copy(button);
  for (const open of document.querySelectorAll("details.switcher[open]")) {
    if (!open.contains(event.target)) open.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.querySelector("details.switcher[open] summary")?.click();
  if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  document.querySelector(".finder input")?.focus();
});

// A part with data-live="request step" is taken anew from the server when one of these happens.
const parts = [...document.querySelectorAll("[data-live]")];
const kinds = new Set(parts.flatMap((part) => part.dataset.live.split(" ")));
let stream = null;
let waiting = null;

async function refresh() {
  waiting = null;
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = page.getElementById(part.id);
    if (!next || part.contains(document.activeElement)) continue;
    const known = new Set([...part.querySelectorAll("[data-key]")].map((row) => row.dataset.key));
    const open = new Set([...part.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
    part.replaceChildren(...next.childNodes);
    for (const each of part.querySelectorAll("details > summary")) each.parentElement.open ||= open.has(each.textContent);
    for (const row of part.querySelectorAll("[data-key]")) row.classList.toggle("is-new", !known.has(row.dataset.key));
    enhance(part);
  }
}

function refreshSoon() {
  waiting ??= setTimeout(refresh, 300);
}

function follow() {
  stream = new EventSource(document.body.dataset.stream);
  for (const kind of kinds) stream.addEventListener(kind, refreshSoon);
  const light = (on) => document.querySelectorAll(".live").forEach((each) => each.classList.toggle("is-on", on));
  stream.onopen = () => { light(true); refreshSoon(); }; // the stream does not tell what happened since the page was read
  stream.onerror = () => light(false);
}

function unfollow() {
  stream?.close();
  stream = null;
}

// A tab that nobody sees takes no place among the readers of the stream.
if (parts.length) {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) unfollow();
    else if (!stream) follow();
  });
  addEventListener("pagehide", unfollow);
  addEventListener("pageshow", (event) => { // going back shows a page as the browser kept it
    if (event.persisted && !stream) follow();
  });
  if (!document.hidden) follow();
}

const current = document.querySelector(".side [aria-current]");
if (current?.offsetParent) current.parentElement.scrollIntoView({ block: "nearest" });
enhance(document);
for (const time of document.querySelectorAll("time[datetime]")) {
  time.title = [time.title, `${new Date(time.dateTime).toLocaleString()} on your clock`].filter(Boolean).join("\n");
}

// The time of a clock that runs.
const begun = new WeakMap();

function tick() {
  for (const time of document.querySelectorAll("[data-tick]")) {
    if (!begun.has(time)) begun.set(time, Date.parse(time.dateTime) - performance.now());
    const now = new Date(begun.get(time) + performance.now() + Number(document.body.dataset.zone));
    const [, day, month, year, clock] = now.toUTCString().split(" ");
    const date = time.querySelector(".date");
    if (date) {
      date.textContent = `${Number(day)} ${month} ${year},`;
      date.nextSibling.data = ` ${clock}`;
    } else {
      time.textContent = `${Number(day)} ${month} ${year}, ${clock}`;
    }
  }
}

setInterval(tick, 1000);

// The list of operations follows what is written.
document.querySelector("[data-filter]")?.addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll(".list tr")) {
    const text = `${row.textContent} ${row.querySelector("a").href}`.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  for (const each of document.querySelectorAll(".controls")) each.open ||= words.join("") !== "";
  for (const card of document.querySelectorAll(".card:has(.list)")) card.hidden = !card.querySelector("tr:not([hidden])");
});
