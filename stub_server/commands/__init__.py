"""The verbs beside `serve`: most are clients of a running server, some need none.

Floor 12. A verb is one function with its flags. `options.py` has what verbs share: options, errors, printing and files;
`Target` in `running_server.py` asks the server, and is the only HTTP client here. It may import `app.py` and every
lower floor, but inside functions: each command imports all verbs. Begin with `control_verbs.py`.
"""
