// Copies the page's command. The button shows where there is a script.
const byId = (id) => document.getElementById(id);

async function copy() {
  const text = byId("curl").textContent;
  try {
    await navigator.clipboard.writeText(text); // only on https and this machine's own addresses
  } catch {
    getSelection().selectAllChildren(byId("curl"));
    document.execCommand("copy");
  }
  byId("copy").textContent = "Copied";
  setTimeout(() => { byId("copy").textContent = "Copy"; }, 2000);
}

byId("copy").addEventListener("click", copy);
byId("copy").hidden = false;
