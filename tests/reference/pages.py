"""Every reference page by the name of its file."""

from pathlib import Path

from . import commands, contract, errors, kit, operations

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def written() -> dict[str, str]:
    """The text of every page as the contract and the code have it now."""
    made = {
        "commands.md": commands.verbs(),
        "commands-more.md": commands.more_verbs(),
        "settings.md": commands.settings(),
        "controls.md": operations.controls(),
        "operations.md": operations.api(),
        "errors.md": errors.refusals(),
        "events.md": contract.events(),
        "pytest.md": kit.fixtures(),
    }
    return {name: f"{text.strip()}\n" for name, text in made.items()}
