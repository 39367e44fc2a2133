// The same shop in Node: it notes each paid order on its customer. --bug plants a mistake that is common there.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

const { values: asked } = parseArgs({
  options: { key: { type: "string" }, api: { type: "string" }, token: { type: "string" }, bug: { type: "string" } },
});
const key = Buffer.from(asked.key.replace(/^whsec_/, ""), "base64");
const seen = new Set();

function isGenuine(headers, body) {
  const stamp = headers["webhook-timestamp"];
  if (!(Math.abs(Date.now() / 1000 - Number(stamp)) <= 300)) return false;
  const signed = asked.bug === "raw_body" ? JSON.stringify(JSON.parse(body)) : body;
  const good = Buffer.from(
    "v1," + createHmac("sha256", key).update(`${headers["webhook-id"]}.${stamp}.`).update(signed).digest("base64"),
  );
  return (headers["webhook-signature"] ?? "").split(" ").some((signature) => {
    const given = Buffer.from(signature);
    return given.length === good.length && timingSafeEqual(given, good);
  });
}

async function act(payload) {
  if (payload.type !== "order.paid") return;
  const answer = await fetch(`${asked.api}/v2/customers/${payload.data.customerId}`, {
    method: "PUT",
    headers: { Authorization: `Bearer ${asked.token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ metadata: { last_order: payload.data.order.id } }),
  });
  if (!answer.ok) throw new Error(`the API answered ${answer.status}`);
}

async function receive(headers, body) {
  if (!isGenuine(headers, body)) return 401;
  const ident = headers["webhook-id"];
  if (asked.bug !== "duplicate" && seen.has(ident)) return 200;
  if (asked.bug === "simultaneous") {
    await act(JSON.parse(body));
    seen.add(ident);
    return 200;
  }
  seen.add(ident);
  try {
    await act(JSON.parse(body));
    return 200;
  } catch {
    seen.delete(ident);
    return 500;
  }
}

const server = createServer(async (request, response) => {
  const parts = [];
  try {
    for await (const part of request) parts.push(part);
  } catch {
    return; // the sender has gone
  }
  response.writeHead(await receive(request.headers, Buffer.concat(parts))).end();
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
