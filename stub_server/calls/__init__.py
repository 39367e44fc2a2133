"""Floor 7: what operations get and give. A handler is a function of its Work that returns a Reply.

Imports sandboxes (`sandboxes/`), stores and floors below; knows nothing of ASGI. Begin with `work.py` and `reply.py`.
`request.py` is what arrived, `target.py` the sandbox that it is for, `credentials.py` turns a header into a Caller,
`server.py` has what all requests share, `views.py` what the control surface shows.
"""
