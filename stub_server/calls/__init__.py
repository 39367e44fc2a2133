"""Floor 7: what operations get and give. A handler is a function of a Call that returns a Reply.

Imports sandboxes (`sandboxes/`), stores and floors below; knows nothing of ASGI. Begin with `call.py` and `reply.py`.
`credentials.py` turns a header into a Caller, `server.py` has what all requests share, `views.py` what the control
surface shows.
"""
