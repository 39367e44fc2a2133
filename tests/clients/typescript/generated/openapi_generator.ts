// Ten round trips with what openapi-generator (typescript-fetch) makes of the contract.
import { Configuration, CustomersApi, OrdersApi, PlansApi, ResponseError } from "./openapi/index";

export async function main(accessToken: string, projectId: string, planId: string) {
  const configuration = new Configuration({ accessToken });
  const customers = new CustomersApi(configuration);
  const orders = new OrdersApi(configuration);
  const plans = new PlansApi(configuration);
  const plan = (await plans.getPlan({ planId })).plan;
  const listed = (await plans.listPlans({ projectId, limit: 100 })).plans;
  const person = { name: "Marina Duarte", email: "marina@example.com", document: "529.982.247-25" };
  const { id: customerId } = (await customers.createCustomer({ customerCreate: person })).customer;
  await customers.updateCustomer({ customerId, customerUpdate: { name: "Marina Duarte Lima" } });
  const customer = (await customers.getCustomer({ customerId })).customer;
  const items = [{ description: plan.name, quantity: 1, amount: plan.amount }];
  const wanted = { projectId, planId, totalAmount: plan.amount, items, customer: person };
  const order = await orders.createPixOrder({ pixOrderCreate: wanted });
  const polled = await orders.getOrder({ orderId: order.id });
  const found = (await orders.listOrders({ customerId })).orders;
  const made = { projectId, name: "Plano Anual", amount: 499.9 };
  const created = (await plans.createPlan({ planCreate: made })).plan;
  const refused = await customers.createCustomer({ customerCreate: person }).catch((error) => error);
  return {
    listed: listed.some((each) => each.id === planId),
    customer: customer.name,
    polled: [polled.status, polled.lastTransaction.qrCode?.slice(0, 6)],
    orders: found.map((each) => each.id === order.id),
    interval: created.interval,
    refused: refused instanceof ResponseError ? (await refused.response.json()).code : String(refused),
  };
}
