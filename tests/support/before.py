"""A directory of format 4, as the server of before SQL tables left it when it was killed: `worlds` and `states`.

It has the sandbox default with four customers, whose fifth a rewind has taken back, and a snapshot `kept` of the first
three; its fork twin with a fifth customer of its own; and the sandbox other with none.
"""

import tarfile
from pathlib import Path

PRIVATE_KEY = "sk_sandbox_2FGjDS28f6eKEfKVQ7PbhGwcyIFlhWShVqAs2E8J"  # of the sandbox other


def unpacked(folder: Path) -> Path:
    """A copy of the directory."""
    with tarfile.open(Path(__file__).with_name("format-4.tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    (folder / "store").chmod(0o700)
    return folder / "store"
