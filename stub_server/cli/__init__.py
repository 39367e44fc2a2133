"""The command: `serve` with its terminal, and the verbs beside it, most of which are clients of a
running server.

`fixtures/command.yaml` lists the verbs with their flags, from which `described.py` makes them.
`command.py` has the command and `serve`, `options.py` what verbs share; `Target` in
`running_server.py` asks the server, and is the only HTTP client here. It may import `app.py` and
every room above. Begin with the list, then `asking.py`.
"""
