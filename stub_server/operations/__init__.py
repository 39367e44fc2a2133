"""The API: one module for each tag of the contract, one function for each operationId.

Imports `server` and above; `control/` alone more than request, work, reply and lists of it. A
function gets its work, the ids of the path and, if its signature names them, `query` and `body`,
all validated. It reads `work.store`, applies rules of `domain`, writes to `work.draft` and returns
a `Reply`, a body alone, or nothing. The contract says what each operation answers and when it
refuses; a docstring adds only what is not there. `server/resolver.py` finds the functions. Begin
with `plans.py`, then `orders.py`. `control/` has the operations of `/_sandbox`.
"""
