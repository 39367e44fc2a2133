"""Every small change that could be made to a module."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One change: the text between two places of a module, and what stands there instead.

    Columns count bytes.
    """

    module: str
    line: int
    column: int
    end_line: int
    end_column: int
    before: str
    after: str
    code: str
    """The line on which it begins, without its indentation."""
    nth: int
    """How many changes of the module are the same, word for word and on the same line,
    before this one.
    """

    @property
    def change(self) -> str:
        """What it does, on one line."""
        return f"{_short(self.before)}  =>  {_short(self.after)}"

    def __str__(self) -> str:
        """Where it is and what it does, on one line."""
        return f"{self.module}:{self.line}: {self.change}"

    def applied(self, source: str) -> str:
        """The module with the change."""
        lines = source.encode().splitlines(keepends=True)
        head = lines[self.line - 1][: self.column]
        tail = lines[self.end_line - 1][self.end_column :]
        lines[self.line - 1 : self.end_line] = [head + self.after.encode() + tail]
        return b"".join(lines).decode()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:69] + "…"


def mutants(source: str, module: str) -> Iterator[Mutant]:
    """Every change to one module, in its order."""
    lines = source.encode().splitlines(keepends=True)
    tree = ast.parse(source)
    seen: Counter[tuple[str, str, str]] = Counter()
    for node, changed in sorted(
        _changes(tree), key=lambda pair: (pair[0].lineno, pair[0].col_offset, pair[1])
    ):
        end_line = node.end_lineno or 0
        end_column = node.end_col_offset or 0
        text = lines[node.lineno - 1 : end_line]
        text[-1] = text[-1][:end_column]  # before the first is cut: both may be one line
        text[0] = text[0][node.col_offset :]
        before = b"".join(text).decode()
        code = lines[node.lineno - 1].decode().strip()
        nth = seen[code, before, changed]
        seen[code, before, changed] += 1
        yield Mutant(
            module, node.lineno, node.col_offset, end_line, end_column, before, changed, code, nth
        )


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Nodes that run, with what may stand in their place: no annotation, decorator,
    docstring or wording.
    """
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "type_comment"):
                continue
            if name == "slice" and ast.unparse(node).startswith("Literal["):
                continue  # a type with a name
            pending += [
                each
                for each in (value if isinstance(value, list) else [value])
                if isinstance(each, ast.AST)
            ]
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Constant):
                pending.remove(node.value)
            elif isinstance(node.value, ast.Call):
                yield node, "pass"
        elif isinstance(node, ast.Return):
            if node.value is not None and ast.unparse(node.value) != "None":
                yield node, "return None"
        elif isinstance(node, ast.If | ast.While):
            yield node.test, f"(not ({ast.unparse(node.test)}))"
        elif isinstance(node, ast.expr):
            if isinstance(node, ast.JoinedStr):
                pending = [each for each in pending if each not in node.values]
            yield from ((node, f"({ast.unparse(other)})") for other in _others(node))


def _others(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARED:
            yield ast.Compare(node.left, [_COMPARED[type(op)]()], node.comparators)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left, ast.BitOr(), _):
            yield left
        case ast.BinOp(left, op, right) if type(op) in _COMPUTED and not isinstance(
            left, ast.Constant | ast.JoinedStr
        ):
            yield ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if value.isidentifier():
            # a name is looked up; a sentence is only read
            yield ast.Constant(value + "_")
