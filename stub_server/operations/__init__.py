"""The API: one module for each tag of the contract, one function for each operationId, which `resolver.py` finds.

Floor 8: imports `calls/`, `engine/`, `domain/` and below. A function gets its work, the ids of the path and, if its
signature names them, `query` and `body`, all validated. It reads `work.store`, applies rules of `domain/`, writes to
`work.draft` and returns a `Reply`. The contract says what each operation answers and when it refuses; a docstring adds
only what is not there. Begin with `plans.py`, then `orders.py`. `control/` has the operations of `/_sandbox`.
"""
