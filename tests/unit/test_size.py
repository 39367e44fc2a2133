"""`python -m tests.size` counts what it says, and follows a request through the files."""

from pathlib import Path

import pytest

from ..size.counting import Size, by_room, longest_functions, modules_of, written

SHOP = '''from .till import take


class Shop:
    """Sells."""

    def sell(self, prices):
        return [take(price) for price in prices if price]

    def close(self):
        return None if self.sell([1]) else 0
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two rooms, of which one has a module that nobody needs."""
    for name, source in {
        "shop/shop.py": SHOP,
        "shop/till.py": "def take(price):\n    return price\n",
        "attic/lost.py": "LOST = 1\n",
        "start.py": "from .shop.shop import Shop\n\nShop().close()\n",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(source, encoding="utf-8")
    return tmp_path


def test_what_there_is_to_understand_is_counted_by_room(package: Path) -> None:
    modules = modules_of(package)
    rooms = by_room(modules)
    assert ["shop", "(top)", "attic"] == [*rooms]
    shop = rooms["shop"]
    assert (13, 1, 1, 9) == (shop.lines, shop.comprehensions, shop.conditionals, shop.statements)
    assert 2 == shop.used_once  # Shop and take
    assert Size.of(modules, written(modules)).nodes == sum(room.nodes for room in rooms.values())
    assert [(2, "shop/till.py:1 take"), (2, "shop/shop.py:7 sell"), (2, "shop/shop.py:10 close")] == longest_functions(
        modules, 9
    )
