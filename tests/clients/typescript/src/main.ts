// The whole app against one world; answers what it saw.
import { buy, choosePlan } from "./checkout.js";
import { keepOffice, told } from "./office.js";
import { beRefused } from "./refusals.js";
import { openSession, type Schemas } from "./session.js";

export async function main(base: string, payloads: Schemas["WebhookPayload"][]) {
  const { api, control, called } = await openSession(base);
  const plan = await choosePlan(api);
  return {
    checkout: await buy(api, control),
    refusals: await beRefused(api),
    office: await keepOffice(api, plan.projectId),
    told: payloads.map(told),
    called: [...called].sort(),
  };
}
