// Refusals: each is told by its code, and a wrong form field by field.
import { expectData, type Api, type Schemas } from "./session.js";

/** What a form shows beside its fields. */
export function byField(problem: Schemas["Error"]): Map<string, string> {
  return new Map(problem.details.map((detail) => [detail.field, detail.message]));
}

/** What the program does about a refusal. Every code is one of the contract's; a misspelt one would not compile. */
export function remedy(problem: Schemas["Error"]): "form" | "reuse" | "wait" | "give up" {
  switch (problem.code) {
    case "validation_error":
      return "form";
    case "duplicate_document":
      return "reuse";
    case "rate_limited":
      return "wait";
    default:
      return "give up";
  }
}

export async function beRefused(api: Api) {
  const body = { name: "Marina Duarte", email: "marina.refused@example.com", document: "390.533.447-05" };
  const { customer } = expectData(await api.POST("/v2/customers", { body }));
  const twice = await api.POST("/v2/customers", { body });
  const wrong = await api.PUT("/v2/customers/{customerId}", {
    params: { path: { customerId: customer.id } },
    body: { name: "", document: "111.111.111-11" },
  });
  const nobody = await api.GET("/v2/customers/{customerId}", {
    params: { path: { customerId: "00000000-0000-4000-8000-000000000000" } },
  });
  const moved = await api.PUT("/v2/customers/{customerId}", {
    params: { path: { customerId: customer.id } },
    body: { phones: { mobile_phone: { country_code: "55", area_code: "11", number: "987654321" } } },
  });
  return {
    twice: twice.error && [twice.response.status, twice.error.code, remedy(twice.error)],
    wrong: wrong.error && [remedy(wrong.error), ...byField(wrong.error).keys()],
    nobody: nobody.error && [nobody.error.status, nobody.error.code, remedy(nobody.error)],
    moved: moved.data?.customer.phones.mobile_phone?.number,
  };
}
