"""The mistakes: for each place of a syntax tree, what a tired programmer could have written there instead.

| mistake                  | example                                                     |
|--------------------------|-------------------------------------------------------------|
| comparison               | `a < b` → `a <= b`, `a > b`                                 |
| arithmetic               | `a + b` → `a - b`, `a`, `b`                                 |
| logic                    | `a and b` → `a or b`, `a`; `not a` → `a`; a test negated    |
| function                 | `max` → `min`, `ceil` → `floor`; `clip(a, …)` → `a`         |
| constant                 | `1` → `2`, `0`; `0.5` → `1.0`, `0.485`; `True` → `False`    |
| argument                 | `f(a, b=c)` → `f(a)`                                        |
| statement                | a call, a refusal or a `+=` left out; a loop that ends early |
| answer                   | `return a * b` → twice it, .97 of it                        |
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Change = tuple[ast.AST | tuple[ast.AST, ast.AST], str]
"""A node, or the gap between two nodes, and the text that takes its place."""
Text = Callable[[ast.AST], str]

COMPARISONS: dict[type[ast.AST], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">=")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<=")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
ARITHMETIC: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
SWAPPED = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "floor": "ceil",
    "ceil": "floor",
    "all": "any",
    "any": "all",
    "exp": "expm1",
    "expm1": "exp",
    "log": "log1p",
    "log1p": "log",
    "cumsum": "sorted",
}
DROPPED = {"abs", "clip", "sqrt", "square", "minimum", "maximum", "min", "max", "ceil", "floor", "where", "sum"}
"""Calls whose first argument may stand for the whole."""
KEPT_ARGUMENTS = {"dtype", "out", "strict", "axis", "copy", "key", "default", "initial", "minlength", "encoding"}
"""Without these a program ends at once, or does the same."""
NUMBERS = ("float", "np.", "math.", "min", "max", "sum")
"""How calls begin that answer with numbers."""


def changes(node: ast.AST, text: Text) -> Iterator[Change]:
    """Every mistake that can be made at this node itself."""
    for kind, made in _BY_NODE.items():
        if isinstance(node, kind):
            yield from made(node, text)


def _compare(node: ast.Compare, text: Text) -> Iterator[Change]:
    operands = [node.left, *node.comparators]
    for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
        old, new = COMPARISONS[type(operator)]
        for other in new:
            yield (left, right), text((left, right)).replace(old, other, 1)  # type: ignore[arg-type]


def _binary(node: ast.BinOp, text: Text) -> Iterator[Change]:
    if type(node.op) not in ARITHMETIC or any(_is_text(side) for side in (node.left, node.right)):
        return
    old, new = ARITHMETIC[type(node.op)]
    gap = node.left, node.right
    yield gap, text(gap).replace(old, new, 1)  # type: ignore[arg-type]
    yield node, f"({text(node.left)})"
    if isinstance(node.op, ast.Add | ast.Mult):
        yield node, f"({text(node.right)})"


def _logic(node: ast.BoolOp, text: Text) -> Iterator[Change]:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    yield node, f" {new} ".join(f"({text(value)})" for value in node.values)
    for left_out in range(len(node.values)):
        yield node, f" {old} ".join(f"({text(v)})" for k, v in enumerate(node.values) if k != left_out)


def _unary(node: ast.UnaryOp, text: Text) -> Iterator[Change]:
    if not isinstance(node.op, ast.UAdd):
        yield node, f"({text(node.operand)})"


def _tested(node: ast.If | ast.While | ast.IfExp, text: Text) -> Iterator[Change]:
    yield node.test, f"(not ({text(node.test)}))"


def _filtered(node: ast.comprehension, text: Text) -> Iterator[Change]:
    for test in node.ifs:
        yield test, f"(not ({text(test)}))"


def _call(node: ast.Call, text: Text) -> Iterator[Change]:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in SWAPPED:
        whole = text(function)
        yield function, whole[: len(whole) - len(name)] + SWAPPED[name]
    if name in DROPPED:
        is_method = isinstance(function, ast.Attribute) and text(function.value) not in ("np", "math")
        subject = function.value if is_method else node.args[0] if node.args else None  # type: ignore[union-attr]
        if subject is not None and not isinstance(subject, ast.Starred | ast.GeneratorExp):
            yield node, f"({text(subject)})"
    arguments = [*node.args, *node.keywords]
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in KEPT_ARGUMENTS:
            others = ", ".join(text(argument) for argument in arguments if argument is not keyword)
            yield node, f"{text(function)}({others})"


def _constant(node: ast.Constant, text: Text) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield node, str(not value)
    elif isinstance(value, int):
        yield node, str(value + 1)
        yield node, f"({value - 1})"
    elif isinstance(value, float):
        yield node, repr(2.0 * value if value else 1.0)
        if value:
            yield node, repr(0.97 * value)


def _statement(node: ast.stmt, text: Text) -> Iterator[Change]:
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call):
        return
    yield node, "pass"


def _in_place(node: ast.AugAssign, text: Text) -> Iterator[Change]:
    yield node, "pass"
    if type(node.op) in ARITHMETIC:
        old, new = ARITHMETIC[type(node.op)]
        gap = node.target, node.value
        yield gap, text(gap).replace(old, new, 1)  # type: ignore[arg-type]


def _loop(node: ast.For, text: Text) -> Iterator[Change]:
    yield node.iter, f"list({text(node.iter)})[:1]"


def _answer(node: ast.Return, text: Text) -> Iterator[Change]:
    if isinstance(node.value, ast.BinOp) or _is_number(node.value):
        for factor in ("2", "0.97"):
            yield node.value, f"({text(node.value)}) * {factor}"


def _is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith(NUMBERS)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


_BY_NODE: dict[type[ast.AST] | tuple[type[ast.AST], ...], Callable[..., Iterator[Change]]] = {
    ast.Compare: _compare,
    ast.BinOp: _binary,
    ast.BoolOp: _logic,
    ast.UnaryOp: _unary,
    (ast.If, ast.While, ast.IfExp): _tested,
    ast.comprehension: _filtered,
    ast.Call: _call,
    ast.Constant: _constant,
    (ast.Expr, ast.Raise, ast.Continue, ast.Break): _statement,
    ast.AugAssign: _in_place,
    ast.For: _loop,
    ast.Return: _answer,
}
