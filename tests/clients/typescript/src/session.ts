// Two typed clients of one world: the API with a credential, and the controls of the sandbox around it.
import createClient, { type Client, type Middleware } from "openapi-fetch";
import type { components as ApiComponents, paths as ApiPaths } from "./api.js";
import type { paths as ControlPaths } from "./control.js";

export type Schemas = ApiComponents["schemas"];
export type Api = Client<ApiPaths>;
export type Control = Client<ControlPaths>;

/** What a refused call throws: the one error shape, typed. */
export class Refused extends Error {
  constructor(readonly problem: Schemas["Error"]) {
    super(problem.message);
  }
}

/** The data of a success; a refusal is thrown. */
export function expectData<T>(answer: { data?: T; error?: Schemas["Error"] }): T {
  if (answer.error !== undefined) throw new Refused(answer.error);
  if (answer.data === undefined) throw new Error("An answer without a body.");
  return answer.data;
}

export interface Session {
  api: Api;
  control: Control;
  called: Set<string>;
}

export async function openSession(base: string): Promise<Session> {
  const called = new Set<string>();
  const record: Middleware = {
    onRequest({ request, schemaPath }) {
      called.add(`${request.method} ${schemaPath}`);
    },
  };
  const control = createClient<ControlPaths>({ baseUrl: `${base}/_sandbox` });
  const credentials = expectData(await control.GET("/credentials"));
  const api = createClient<ApiPaths>({
    baseUrl: base,
    headers: { Authorization: `Bearer ${credentials.jwt}` },
  });
  api.use(record);
  return { api, control, called };
}
