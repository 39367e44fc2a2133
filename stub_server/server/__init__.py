"""The sandboxes of one server, and the way of a request to one of them.

Imports `storage` and above. Begin with `request.py` (what arrived), `work.py` (the sandbox that
it is for, and what a handler reads and writes), `reply.py` (what is answered) and `lists.py` (a
page of records). `server.py` has what all requests share, `views.py` what the control surface
shows. `layers/` has the layers in the order of a request, below them `protocol.py` extends uvicorn;
`sandboxes/` creates and finds sandboxes, `journal/` reads the requests that were kept, `explain/`
finds the nearest request that succeeds.
"""
