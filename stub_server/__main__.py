"""`python -m stub_server`."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="stub-server")
