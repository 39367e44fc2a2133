"""`python -m tests.size` counts what it says, and follows a request through the files."""

from pathlib import Path

import pytest

from ..size.counting import Size, by_room, changes, longest_functions, modules_of, never_imported, never_used, written
from ..size.way import ways

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


def test_what_nobody_needs_is_found(package: Path) -> None:
    (package / "attic" / "lost.py").write_text("def find():\n    return 1\n", encoding="utf-8")
    modules = modules_of(package)
    assert ["attic/lost.py", "start.py"] == never_imported(modules)
    assert ["attic/lost.py:1 find"] == never_used(modules)


@pytest.mark.check
def test_the_way_of_an_order_is_longer_than_that_of_a_list() -> None:
    order, listed = ways().values()
    assert "http/routing.py" in set(order) & set(listed)
    assert "operations/orders.py" in set(order) & set(listed)
    assert len(set(order)) > len(set(listed)) > 10
    assert changes(order) > changes(listed)
