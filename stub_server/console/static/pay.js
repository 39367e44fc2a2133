// On top of a page that works without it: the time that is left, and what becomes of the order elsewhere.
const sheet = document.querySelector("[data-status]");
const left = document.getElementById("left");
const part = document.getElementById("part");
const EVERY = 2500;

function duration(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const days = seconds > 2 * 86400 ? Math.floor(seconds / 86400) : 0;
  const hours = Math.floor(seconds / 3600) - 24 * days;
  const clock = [hours, Math.floor(seconds / 60) % 60, seconds % 60].map(two).join(":");
  return days ? sheet.dataset.days.replace("{days}", days).replace("{clock}", clock) : clock;
}

if (left && "runs" in left.dataset) {
  const seconds = Number(left.dataset.seconds);
  const width = Number(part.getAttribute("width"));
  const began = performance.now();
  setInterval(() => {
    const now = Math.max(0, seconds - Math.floor((performance.now() - began) / 1000));
    left.textContent = duration(now);
    part.setAttribute("width", seconds ? (width * now) / seconds : 0);
  }, 250);
}

// The order may be paid, or expire, while the page is shown.
async function look() {
  if (document.hidden) return;
  try {
    const response = await fetch(sheet.dataset.path);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const status = page.querySelector("[data-status]")?.dataset.status;
    if (status && status !== sheet.dataset.status) location.replace(sheet.dataset.path);
  } catch {
    // the server is away for a moment
  }
}

if (sheet) setInterval(look, EVERY);
