// The merchant's own pages: lists page by page, a plan, a key, a webhook and its log, figures.
import { expectData, type Api, type Schemas } from "./session.js";

/** Every order of a state, newest first, page by page. */
export async function* ordersIn(api: Api, status: Schemas["Order"]["status"]): AsyncGenerator<Schemas["Order"]> {
  for (let page = 1; ; page += 1) {
    const answer = expectData(
      await api.GET("/v2/orders", { params: { query: { status, page, limit: 50, sort: "-createdAt" } } }),
    );
    yield* answer.orders;
    if (!answer.pagination.has_next) return;
  }
}

/** One line for each event that a webhook may receive; the type of `data` follows from the type of the event. */
export function told(event: Schemas["WebhookPayload"]): string {
  switch (event.type) {
    case "order.paid":
      return `${event.data.order.code} paid ${event.data.order.totalAmount.toFixed(2)}, was ${event.data.previous_status}`;
    case "subscription.past_due":
      return `${event.data.subscription.customer.name} owes a renewal`;
    case "customer.created":
      return `${event.data.customer.name} is new`;
    default:
      return event.type;
  }
}

export async function keepOffice(api: Api, projectId: string) {
  let paid = 0;
  let revenue = 0;
  for await (const order of ordersIn(api, "paid")) {
    paid += 1;
    revenue += order.totalAmount;
  }
  const first = expectData(await api.GET("/v2/orders", { params: { query: { status: "paid", limit: 1 } } }));
  const { plan } = expectData(
    await api.POST("/v2/plans", { body: { projectId, name: "Trimestral", amount: 99.9, interval: "month", interval_count: 3 } }),
  );
  const cleared = expectData(
    await api.PUT("/v2/plans/{planId}", { params: { path: { planId: plan.id } }, body: { max_subscribers: null } }),
  ).plan;
  const made = expectData(await api.POST("/api-keys", { body: { name: "Loja", scopes: ["orders:read"] } }));
  const merchant = expectData(
    await api.GET("/api-keys/merchant/{publicKey}", { params: { path: { publicKey: made.api_key.public_key } } }),
  ).merchant;
  const { webhook } = expectData(
    await api.POST("/v2/webhooks", { body: { url: "https://hooks.example.com/ts", events: ["order.*", "webhook.test"] } }),
  );
  const catalogue = expectData(await api.GET("/v2/webhooks/events"));
  const logs = expectData(
    await api.GET("/v2/webhooks/{webhookId}/logs", { params: { path: { webhookId: webhook.id } } }),
  );
  const { stats } = expectData(
    await api.GET("/v2/projects/{projectId}/stats", { params: { path: { projectId } } }),
  ).data;
  expectData(await api.DELETE("/v2/plans/{planId}", { params: { path: { planId: plan.id } } }));
  return {
    paid: paid === first.pagination.total,
    revenue: revenue > 0,
    plan: [plan.interval, plan.interval_count, cleared.max_subscribers, plan.currency],
    key: made.api_key.private_key.startsWith("sk_sandbox_"),
    expires: made.api_key.expires_at,
    merchant: merchant.currency,
    signing: webhook.signing_key.slice(0, 6),
    events: catalogue.events.length,
    logs: logs.pagination.total,
    subscribers: stats.subscribers.active >= 0,
  };
}
