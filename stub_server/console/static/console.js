// Fills the page with what the control surface says of this sandbox.

async function ask(path) {
  const response = await fetch(path);
  const body = await response.json();
  if (!response.ok) throw new Error(body.message);
  return body;
}

function facts(sandbox) {
  return [
    ["Data", `scenario ${sandbox.scenario}, seed ${sandbox.seed}, ${sandbox.records} records`],
    ...(sandbox.parent === null ? [] : [["Fork of", sandbox.parent]]),
    ...(sandbox.expires_at === null ? [] : [["Lives until", sandbox.expires_at]]),
  ];
}

function show(rows) {
  for (const [name, value] of rows) {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    text.textContent = value;
    byId("facts").append(term, text);
  }
}

// A sandbox's page is two folders below the server's: the links hold whatever name the server goes by.
function link(name, root) {
  const item = document.createElement("a");
  item.href = name === "default" ? root : `${root}s/${name}/`;
  item.textContent = name;
  return item;
}

async function begin() {
  const { name, root } = document.body.dataset;
  const me = await ask("_sandbox/credentials");
  byId("state").textContent = `You are ${me.merchant.name}. Paste this into a terminal:`;
  byId("curl").textContent =
    `curl -s '${me.base_url}/v2/customers?limit=2' -H 'Authorization: Bearer ${me.private_key}'`;
  byId("command").hidden = false;
  show(facts((await ask(`_sandbox/sandboxes/${name}`)).sandbox));
  const { sandboxes, pagination } = await ask("_sandbox/sandboxes?limit=20");
  const names = new Set(["default", ...sandboxes.map((sandbox) => sandbox.name)]);
  for (const each of names) byId("sandboxes").append(link(each, root), " ");
  if (pagination.total > names.size) byId("sandboxes").append(`and ${pagination.total - names.size} more.`);
  byId("others").hidden = false;
}

begin().catch((error) => {
  byId("state").textContent = error instanceof TypeError ? "The server does not answer." : error.message;
});
