// Ten round trips with what orval makes of the contract.
import * as api from "./orval/api.js";

export async function main(base: string, token: string, projectId: string, planId: string) {
  const { fetch } = globalThis; // the generated functions know paths alone, as a page of the same origin does
  globalThis.fetch = (path, init) => fetch(`${base}${path}`, init);
  const options = { headers: { Authorization: `Bearer ${token}` } };
  const plan = ok(await api.getPlan(planId, options), 200).plan;
  const listed = ok(await api.listPlans({ projectId, limit: 100 }, options), 200).plans;
  const body = { name: "Marina Duarte", email: "marina@example.com", document: "529.982.247-25" };
  const { id } = ok(await api.createCustomer(body, options), 201).customer;
  ok(await api.updateCustomer(id, { name: "Marina Duarte Lima" }, options), 200);
  const customer = ok(await api.getCustomer(id, options), 200).customer;
  const items = [{ description: plan.name, quantity: 1, amount: plan.amount }];
  const wanted = { projectId, planId, totalAmount: plan.amount, items, customer: body };
  const order = ok(await api.createPixOrder(wanted, options), 201);
  const polled = ok(await api.getOrder(order.id, options), 200);
  const orders = ok(await api.listOrders({ customerId: id }, options), 200).orders;
  const created = ok(await api.createPlan({ projectId, name: "Plano Anual", amount: 499.9 }, options), 201).plan;
  const refused = await api.createCustomer(body, options);
  return {
    listed: listed.some((each) => each.id === planId),
    customer: customer.name,
    polled: [polled.status, polled.last_transaction.qr_code?.slice(0, 6)],
    orders: orders.map((each) => each.id === order.id),
    interval: created.interval,
    refused: refused.status === 409 && refused.data.code,
  };
}

/** The data of the answer with a status; any other answer is thrown. */
function ok<A extends { status: number; data: unknown }, S extends A["status"]>(answer: A, status: S) {
  if (answer.status !== status) throw new Error(JSON.stringify(answer.data));
  return (answer as Extract<A, { status: S }>).data as Extract<A, { status: S }>["data"];
}
