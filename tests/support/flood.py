"""Very many events to a receiver that fails at random and dies in between, and whether each has arrived."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import httpx2
from standardwebhooks.webhooks import Webhook

from .fickle import Fickle
from .make import Json, created, customer_body

CLIENTS = 4
MOST_MOVES = 60


class Flood(NamedTuple):
    """What came of it: how many deliveries there are, how many attempts they took, and what is wrong."""

    deliveries: int
    attempts: int
    wrong: list[str]


def flood(api: httpx2.Client, control: httpx2.Client, receiver: Fickle, events: int) -> Flood:
    """Make so many events, kill the receiver over the second third of them, and let time bring all to an end."""
    body = {"url": receiver.url, "events": ["customer.created"]}
    webhook = created(api.post("/v2/webhooks", json=body))["webhook"]
    with ThreadPoolExecutor(CLIENTS) as pool:
        for third in range(3):
            if third == 1:
                receiver.kill()
            count = events // 3 + (events % 3 if third == 2 else 0)
            list(pool.map(lambda _: created(api.post("/v2/customers", json=customer_body())), range(count)))
            if third == 1:
                receiver.start()
    for _ in range(MOST_MOVES):
        drained = control.post("/webhooks/drain").json()
        assert drained["complete"] or drained["deliveries"]["due"]
        waiting = [_count(api, webhook, status) for status in ("pending", "retrying")]
        if not any(waiting):
            break
        due = control.get("/clock").json()["next_due"]
        if drained["complete"]:
            assert control.post("/clock/advance", json={"to": due}).status_code == 200
    return _judged(api, webhook, receiver)


def _count(api: httpx2.Client, webhook: Json, status: str) -> int:
    query = {"webhookId": webhook["id"], "status": status, "limit": "1"}
    total: int = api.get("/v2/webhooks/logs", params=query).json()["pagination"]["total"]
    return total


def _judged(api: httpx2.Client, webhook: Json, receiver: Fickle) -> Flood:
    wrong: list[str] = []
    received, verifier = receiver.received(), Webhook(webhook["signing_key"])
    for requests in received.values():
        for request in requests:
            verifier.verify(request["body"], request["headers"])
    deliveries = attempts = 0
    page = 1
    while True:
        query = {"webhookId": webhook["id"], "limit": "100", "page": str(page)}
        answer = api.get("/v2/webhooks/logs", params=query).json()
        for entry in answer["logs"]:
            log = api.get(f"/v2/webhooks/logs/{entry['id']}").json()["log"]
            arrived = received.pop(log["event_id"], [])
            deliveries += 1
            attempts += len(log["attempts"])
            errors = [attempt["error"] for attempt in log["attempts"]]
            if log["status"] != "delivered" or errors[-1] is not None or None in errors[:-1]:
                wrong.append(f"{log['event_id']} is {log['status']} after {errors}")
            most = 2 * len(errors)  # an attempt begins anew where a kept connection ends before an answer
            if not any(request["status"] == 200 for request in arrived) or len(arrived) > most:
                wrong.append(f"{log['event_id']} arrived {len(arrived)} times in {len(errors)} attempts")
        if not answer["pagination"]["has_next"]:
            break
        page += 1
    wrong += [f"{event_id} arrived and is not in the log" for event_id in received]
    return Flood(deliveries, attempts, wrong)
