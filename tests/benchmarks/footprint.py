"""How much memory a process and a table take."""

import os
import resource
import sys
from pathlib import Path
from typing import Any

from stub_server.engine.tables.indexes import Index, Keys
from stub_server.engine.tables.table import Table

_TRACKED = 16  # what the collector keeps before a container


def resident(pid: int | None = None) -> int:
    """Bytes of memory that a process holds now, this one unless told; the most it ever held where
    none can be asked.
    """
    statm = Path(f"/proc/{pid or 'self'}/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def table_bytes(table: Table) -> int:
    """Bytes of a table's records and of everything that finds and sums them."""
    size = sys.getsizeof
    total = sum(
        _TRACKED + size(r) + size(r.id) + size(r.key) + size(r.public) + size(r.hidden)
        for r in table.rows.values()
    )
    total += size(table.rows) + size(table.keys) + _keys(table.order)
    for held in table.unique.values():
        total += size(held) + sum(map(size, held))
    kept = []
    for part in table.views.parts.values():
        if not isinstance(part, Index):
            kept.append(part.data)
            continue
        total += size(part.data) + sum(
            _value(value) + _keys(keys) for value, keys in part.data.items()
        )
    for order in table.views.sorts.values():
        total += _keys(order.data)
        total += sum(_TRACKED + size(pair) + size(pair[0]) for pair in order.data)
    return total + sum(
        size(groups) + sum(_value(value) for value in groups.values()) for groups in kept
    )


def _keys(keys: Keys) -> int:
    """The container alone: the keys are the records'."""
    return _TRACKED + sys.getsizeof(keys)


def _value(value: Any) -> int:
    inner = sum(map(sys.getsizeof, value)) if isinstance(value, dict) else 0
    return sys.getsizeof(value) + inner + (_TRACKED if isinstance(value, (tuple, dict)) else 0)
