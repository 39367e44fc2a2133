"""Write every reference page to docs/reference/."""

from .pages import FOLDER, written

if __name__ == "__main__":
    for name, text in written().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
