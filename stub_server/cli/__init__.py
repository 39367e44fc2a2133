"""The command: `serve` with its terminal, and the verbs beside it, most of which are clients of a
running server.

A verb is one function with its flags. `command.py` has the command and `serve`, `options.py` what
verbs share; `Target` in `running_server.py` asks the server, and is the only HTTP client here. It
may import `app.py` and every room above, but inside functions: each command imports all verbs.
Begin with `command.py`, then `control_verbs.py`.
"""
