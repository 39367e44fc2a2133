// A checkout: choose a plan, order by PIX, poll until it is paid, read the subscription.
import { expectData, type Api, type Control, type Schemas } from "./session.js";

function sellsByPix(plan: Schemas["Plan"]): boolean {
  const unlimited = plan.max_subscribers === null;
  return plan.billing_type === "recurring" && plan.payment_methods.includes("pix") && unlimited;
}

/** The first plan on sale with room for everybody. */
export async function choosePlan(api: Api): Promise<Schemas["Plan"]> {
  const { projects } = expectData(await api.GET("/v2/projects", { params: { query: { status: "active" } } })).data;
  for (const project of projects) {
    const { plans } = expectData(
      await api.GET("/v2/plans", { params: { query: { projectId: project.id, status: "active", limit: 100 } } }),
    );
    const plan = plans.find(sellsByPix);
    if (plan !== undefined) return plan;
  }
  throw new Error("Nothing is for sale.");
}

export function placeOrder(api: Api, plan: Schemas["Plan"], buyer: Schemas["OrderCustomerInput"], key: string) {
  return api.POST("/v2/orders/pix", {
    params: { header: { "Idempotency-Key": key } },
    body: {
      projectId: plan.projectId,
      planId: plan.id,
      paymentMethod: "pix",
      totalAmount: plan.amount,
      items: [{ description: plan.name, quantity: 1, amount: plan.amount }],
      customer: buyer,
      metadata: { origem: "site" },
    },
  });
}

/** What the page shows while it waits. */
export function payable(order: Schemas["Order"]): { copyAndPaste: string; picture: string; until: Date } {
  const { qr_code, qr_code_url, expires_at } = order.last_transaction;
  if (qr_code === undefined || qr_code_url === undefined || expires_at === undefined) {
    throw new Error(`Order ${order.code} cannot be paid by PIX.`);
  }
  return { copyAndPaste: qr_code, picture: qr_code_url, until: new Date(expires_at) };
}

export async function waitUntilSettled(api: Api, orderId: string, tries = 50): Promise<Schemas["Order"]> {
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const order = expectData(await api.GET("/v2/orders/{orderId}", { params: { path: { orderId } } }));
    if (order.status !== "pending") return order;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`Order ${orderId} is still pending.`);
}

export async function buy(api: Api, control: Control) {
  const plan = await choosePlan(api);
  const buyer = { name: "Marina Duarte", email: "marina.ts@example.com", document: "529.982.247-25" };
  const placed = expectData(await placeOrder(api, plan, buyer, "checkout-1"));
  const again = expectData(await placeOrder(api, plan, buyer, "checkout-1"));
  const shown = payable(placed);
  const polling = waitUntilSettled(api, placed.id);
  expectData(await control.POST("/orders/{orderId}/pay", { params: { path: { orderId: placed.id } } }));
  const settled = await polling;
  const { subscriptions } = expectData(
    await api.GET("/v2/subscriptions", { params: { query: { orderId: placed.id } } }),
  );
  const [subscription] = subscriptions;
  return {
    placed: placed.status,
    replayed: again.id === placed.id,
    code: shown.copyAndPaste.slice(0, 6),
    settled: settled.status,
    subscription: subscription?.status,
    plan: subscription?.plan.name === plan.name,
    interval: plan.interval,
  };
}
