// Asks the control surface for a ready token and shows one request that works when pasted.
const state = document.getElementById("state");
const curl = document.getElementById("curl");

async function begin() {
  const response = await fetch("_sandbox/credentials");
  const body = await response.json();
  if (!response.ok) {
    state.textContent = body.message;
    return;
  }
  state.textContent = `${body.merchant.name}, sandbox “${body.sandbox}”: paste this.`;
  curl.textContent = `curl '${body.base_url}/v2/customers?limit=2' -H 'Authorization: Bearer ${body.private_key}'`;
  curl.hidden = false;
}

begin().catch(() => { state.textContent = "The server does not answer."; });
