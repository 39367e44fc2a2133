"""The verb `replay`; exit codes 0 the same answers, 1 another answer, 2 a file that cannot be
replayed or usage.
"""

import sys
from pathlib import Path

from ..core.record import Body
from .options import Unusable, read_file, show, yaml_text


def replay(file: Path, overlays: tuple[Path, ...], as_json: bool) -> None:
    """Send the requests of FILE (- for standard input) to a fresh sandbox, and compare every
    answer.
    """
    import asyncio

    from ..storage.package import BadFile
    from ..tools.replay.replaying import replay as replayed

    try:
        report = asyncio.run(replayed(read_file(file), overlays))
    except BadFile as error:
        raise Unusable("\n  ".join(error.lines)) from None
    show(report, _text(report), as_json=as_json)
    sys.exit(0 if report["ok"] else 1)


def _text(report: Body) -> str:
    """The report without what is empty, and the diffs below it."""
    shown = {name: value for name, value in report.items() if value not in (None, {})}
    diffs = shown.pop("diffs")
    text = yaml_text(shown)
    for each in diffs:
        text += f"\n\n{each['method']} {each['path']} ({each['id']})\n{each['diff']}"
    return text
