"""What is allowed between floats is derived, or its reason stands beside it: no test chooses a number in silence."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
#: parameters, keywords and names of numbers that say how far floats may be apart
_NAMES = frozenset(("rtol", "atol", "rel_tol", "abs_tol", "inaccurate"))
#: keywords only
_KEYWORDS = _NAMES | {"levels"}
#: calls that allow something of their own where nothing is said, and the keywords with which it is
_CLOSE = frozenset(("approx", "isclose", "allclose", "assert_allclose", "assert_almost_equal"))
#: what derives numbers
_DERIVING = frozenset(("tolerance", "rounding", "perturbation", "op_bounds"))
#: comparisons of these with a small number are tolerances too
_DISTANCES = frozenset(("abs", "absolute", "norm", "relative_error"))
_SMALL = 0.05


def chosen(source: str) -> list[int]:
    """The lines of numbers that are neither derived nor explained on the same line or the one before."""
    numbers = [each for node in ast.walk(ast.parse(source)) for each in _tolerances(node) if _is_chosen(each)]
    if not numbers:
        return []
    explained = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith(("# fmt", "# noqa", "# pyright", "# type:"))
    }
    lines = ((each.lineno, each.end_lineno or each.lineno) for each in numbers)
    return sorted({first for first, last in lines if not explained & set(range(first - 1, last + 1))})


def _tolerances(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that say how near something must be."""
    if isinstance(node, ast.Call):
        close = _name(node.func) in _CLOSE
        given = [k.value for k in node.keywords if k.arg in _KEYWORDS or (close and k.arg in ("rel", "abs"))]
        given += node.args[1 if _name(node.func) == "approx" else 2 :] if close else []
        yield from given
        if close and not given:
            yield node  # what the function allows by itself is nobody's decision
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None and any(_name(target).lower().strip("_") in _NAMES for target in targets):
            yield node.value
    elif isinstance(node, ast.arguments):
        named = [*node.posonlyargs, *node.args]
        pairs = [*zip(named[len(named) - len(node.defaults) :], node.defaults, strict=True)]
        pairs += [(a, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d is not None]
        yield from (default for argument, default in pairs if argument.arg in _NAMES)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in _NAMES:
                yield value
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE) and _is_distance(node.left):
        yield from (n for n in node.comparators[:1] if any(0 < number <= _SMALL for number in _numbers(n)))


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_distance(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) and _name(each.func) in _DISTANCES for each in ast.walk(node))


def _numbers(node: ast.AST) -> list[float]:
    constants = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return [abs(value) for value in constants if isinstance(value, float | int) and not isinstance(value, bool)]


def _is_chosen(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and _name(node.func) in _CLOSE:
        return True
    if any(_name(each) in _DERIVING for each in ast.walk(node)):
        return False
    return any(_numbers(node))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("check(a, b, rtol=1e-3)", [1]),
        ("check(a, b, rtol=0.0, atol=0)", []),
        ("check(a, b, rtol=1e-3)  # three digits are printed", []),
        ("# three digits are printed\ncheck(a, b, rtol=1e-3)", []),
        ("# of something else\n\ncheck(a, b, rtol=1e-3)  # fmt: skip", [3]),
        ("check(a, b, atol=2 * tolerance.gamma(3))", []),
        ("check(a, b, atol=1e-2 if dtype == 'float16' else None)", [1]),
        ("def check(a, *, rtol: float = 1e-4): ...", [1]),
        ("def check(a, rtol=0.0, atol=1e-4): ...", [1]),
        ("ATOL = {'float16': 1e-3}\nnear = {'rtol': 1e-3}", [1, 2]),
        (
            "assert x == approx(0.1)\nassert x == approx(0.1, 1e-3)\nassert x == approx(y, rel=tolerance.gamma(2))",
            [1, 2],
        ),
        ("np.testing.assert_allclose(a, b)\nnp.testing.assert_allclose(a, b, 1e-3)", [1, 2]),
        ("assert np.abs(a - b).max() < 1e-3\nassert np.abs(a).max() < 9", [1]),
    ],
)
def test_what_counts(text: str, lines: list[int]) -> None:
    assert chosen(text) == lines


def test_no_number_is_chosen_in_silence() -> None:
    found: list[str] = []
    for path in sorted(TESTS.rglob("*.py")):
        if path != Path(__file__):
            found += [f"{path.relative_to(TESTS)}:{line}" for line in chosen(path.read_text("utf8"))]
    text = "\n".join(found)
    assert not found, f"derive what these allow (tests/tolerance.py), or say why it is what it is:\n{text}"
