// Ten round trips with what @hey-api/openapi-ts makes of the contract.
import { client } from "./hey/client.gen.js";
import * as sdk from "./hey/sdk.gen.js";

export async function main(baseUrl: string, auth: string, projectId: string, planId: string) {
  client.setConfig({ baseUrl, auth, throwOnError: true });
  const plan = (await sdk.getPlan({ path: { planId }, throwOnError: true })).data.plan;
  const listed = (await sdk.listPlans({ query: { projectId, limit: 100 }, throwOnError: true })).data.plans;
  const body = { name: "Marina Duarte", email: "marina@example.com", document: "529.982.247-25" };
  const { id: customerId } = (await sdk.createCustomer({ body, throwOnError: true })).data.customer;
  const moved = { name: "Marina Duarte Lima" };
  await sdk.updateCustomer({ path: { customerId }, body: moved, throwOnError: true });
  const customer = (await sdk.getCustomer({ path: { customerId }, throwOnError: true })).data.customer;
  const items = [{ description: plan.name, quantity: 1, amount: plan.amount }];
  const wanted = { projectId, planId, totalAmount: plan.amount, items, customer: body };
  const order = (await sdk.createPixOrder({ body: wanted, throwOnError: true })).data;
  const polled = (await sdk.getOrder({ path: { orderId: order.id }, throwOnError: true })).data;
  const orders = (await sdk.listOrders({ query: { customerId }, throwOnError: true })).data.orders;
  const made = { projectId, name: "Plano Anual", amount: 499.9 };
  const created = (await sdk.createPlan({ body: made, throwOnError: true })).data.plan;
  const refused = await sdk.createCustomer({ body, throwOnError: false });
  return {
    listed: listed.some((each) => each.id === planId),
    customer: customer.name,
    polled: [polled.status, polled.last_transaction.qr_code?.slice(0, 6)],
    orders: orders.map((each) => each.id === order.id),
    interval: created.interval,
    refused: refused.error?.code,
  };
}
