"""Ten round trips with what openapi-generator (python) makes of the contract, run by
`test_openapi_generator.py`.

Its arguments are the folder of the generated package, a token, a project and a plan.
"""

import importlib
import json
import sys
from typing import Any


def main(folder: str, token: str, project: str, plan_id: str) -> dict[str, Any]:
    """Call the server that the contract names. Returns what was seen."""
    sys.path.insert(0, folder)
    made: Any = importlib.import_module("openapi_client")
    with made.ApiClient(made.Configuration(access_token=token)) as client:
        customers = made.CustomersApi(client)
        orders = made.OrdersApi(client)
        plans = made.PlansApi(client)
        plan = plans.get_plan(plan_id).plan
        listed = plans.list_plans(project_id=project, limit=100).plans
        person = {
            "name": "Marina Duarte",
            "email": "marina@example.com",
            "document": "529.982.247-25",
        }
        customer_id = customers.create_customer(made.CustomerCreate(**person)).customer.id
        customers.update_customer(customer_id, made.CustomerUpdate(name="Marina Duarte Lima"))
        customer = customers.get_customer(customer_id).customer
        wanted = made.PixOrderCreate(
            projectId=project,
            planId=plan_id,
            totalAmount=plan.amount,
            items=[made.OrderItemInput(description=plan.name, quantity=1, amount=plan.amount)],
            customer=made.OrderCustomerInput(**person),
        )
        order = orders.create_pix_order(wanted)
        polled = orders.get_order(order.id)
        found = orders.list_orders(customer_id=customer_id).orders
        created = plans.create_plan(
            made.PlanCreate(projectId=project, name="Plano Anual", amount=499.9)
        ).plan
        refused = None
        try:
            customers.create_customer(made.CustomerCreate(**person))
        except made.ApiException as error:
            refused = json.loads(error.body)["code"]
    return {
        "listed": any(str(each.id) == plan_id for each in listed),
        "customer": customer.name,
        "polled": [polled.status, polled.last_transaction.qr_code[:6]],
        "orders": [each.id == order.id for each in found],
        "interval": created.interval,
        "refused": refused,
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
