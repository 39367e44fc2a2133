"""Running sums and counts of a table, updated with every write."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ..kernel.record import Body
from .spec import Member, Parts, TableSpec, plain


class Tallies:
    """What `sums` and `distinct` of a table's spec ask for, by name and group."""

    def __init__(self, spec: TableSpec, positions: Mapping[str, int]) -> None:
        """`positions` says where each index's value stands among a record's values."""
        self.sums: dict[str, dict[Hashable, int]] = {name: {} for name in spec.sums}
        self.distinct: dict[str, dict[Hashable, dict[Hashable, int]]] = {name: {} for name in spec.distinct}
        added: dict[Member, list[tuple[dict[Hashable, int], int]]] = {}
        for name, rule in spec.sums.items():
            added.setdefault(rule.member, []).append((self.sums[name], positions[rule.group]))
        self._sums = [(member.side, member.name, targets) for member, targets in added.items()]
        self._distinct = [
            (self.distinct[name], positions[rule.group], plain(rule.member)) for name, rule in spec.distinct.items()
        ]

    def count(self, values: Sequence[Any], public: Body, hidden: Body, sign: int) -> None:
        """Add a record (+1) or take it away (-1); `values` are its values in the indexes."""
        for side, name, targets in self._sums:
            value = (hidden if side else public).get(name)
            if value:
                for sums, position in targets:
                    _add(sums, values[position], sign * value)
        for groups, position, member_of in self._distinct:
            member = member_of(public, hidden)
            if member is not None:
                _count(groups, values[position], member, sign)

    def fill(self, columns: Sequence[Sequence[Any]], parts: Sequence[Parts]) -> None:
        """Add many records; `columns` are their values in each of the indexes."""
        for side, name, targets in self._sums:
            amounts = [part[side].get(name) for part in parts]
            if any(amounts):
                for sums, position in targets:
                    for group, amount in zip(columns[position], amounts, strict=True):
                        if amount:
                            _add(sums, group, amount)
        for groups, position, member_of in self._distinct:
            for group, (public, hidden) in zip(columns[position], parts, strict=True):
                member = member_of(public, hidden)
                if member is not None and group is not None:
                    members = groups.setdefault(group, {})
                    members[member] = members.get(member, 0) + 1

    def move(self, was: Sequence[Any], old: tuple[Body, Body], now: Sequence[Any], new: tuple[Body, Body]) -> None:
        """Take a version away and add the one after it: what counts the same in both is left alone."""
        public, hidden = old
        after, hidden_after = new
        for side, name, targets in self._sums:
            before = (hidden if side else public).get(name) or 0
            value = (hidden_after if side else after).get(name) or 0
            if before or value:
                for sums, position in targets:
                    group, group_now = was[position], now[position]
                    if group == group_now:
                        if before != value:
                            _add(sums, group, value - before)
                    else:
                        _add(sums, group, -before)
                        _add(sums, group_now, value)
        for groups, position, member_of in self._distinct:
            member, member_now = member_of(public, hidden), member_of(after, hidden_after)
            group, group_now = was[position], now[position]
            if member != member_now or group != group_now:
                _count(groups, group, member, -1)
                _count(groups, group_now, member_now, +1)

    def copy_to(self, twin: "Tallies") -> None:
        """Give another one, of the same spec and empty, the same figures."""
        for name, sums in self.sums.items():
            twin.sums[name].update(sums)
        for name, groups in self.distinct.items():
            twin.distinct[name].update((group, members.copy()) for group, members in groups.items())


def _add(sums: dict[Hashable, int], group: Hashable, amount: int) -> None:
    """A group whose sum is nothing takes no room."""
    if group is not None and amount:
        total = sums.get(group, 0) + amount
        if total:
            sums[group] = total
        else:
            del sums[group]


def _count(groups: dict[Hashable, dict[Hashable, int]], group: Hashable, member: Hashable, sign: int) -> None:
    if member is None or group is None:
        return
    members = groups.get(group)
    if members is None:
        members = groups[group] = {}
    left = members.get(member, 0) + sign
    if left:
        members[member] = left
    else:
        del members[member]
