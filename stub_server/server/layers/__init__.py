"""The layers that a request passes, in the order of `app.py`. Connexion and ASGI are known here.

Begin with `context.py`, the outermost layer, which sends every answer; the list of layers is in
docs/architecture.md. What a layer raises is rendered by `server/reply.py`, what it hands on is
listed in `way.py`.
"""

import warnings

with warnings.catch_warnings():
    # It imports what its libraries have deprecated, which is an error where somebody's filters make
    # it one.
    warnings.simplefilter("ignore")
    import connexion as connexion
