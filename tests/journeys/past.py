"""The steps that journeys through time share."""

import httpx2

from ..support.make import Json, done

READ = (
    "/v2/customers", "/v2/projects", "/v2/plans", "/v2/products", "/v2/orders", "/v2/subscriptions", "/v2/webhooks",
    "/v2/webhooks/logs", "/api-keys",
)  # fmt: skip


def everything(api: httpx2.Client, control: httpx2.Client, **headers: str) -> dict[str, bytes]:
    """What the API's lists answer, and the events; with `X-Sandbox-As-Of` the lists alone."""
    found = {}
    for path in READ:
        for page in (1, 2):
            response = api.get(path, params={"limit": 100, "page": page}, headers=headers)
            assert response.status_code == 200, response.text
            found[f"{path} {page}"] = response.content
    if not headers:
        found["events"] = control.get("/events", params={"limit": 100}).content
    return found


def step_of(control: httpx2.Client) -> int:
    """The number of the newest step."""
    newest: list[Json] = done(control.get("/steps", params={"limit": 1}))["steps"]
    return int(newest[0]["step"]) if newest else 0


def rewind(control: httpx2.Client, **where: object) -> Json:
    """Go back; answers what the server says."""
    return done(control.post("/rewind", json=where))
