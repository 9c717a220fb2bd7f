"""The table of elementwise ops: every row is complete, and nobody keeps another one."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from toolkit.compiler.ir.elementwise import ELEMENTWISE, ElementwiseOpDef
from toolkit.kernels.cpu.native.operations import OPERATORS

_COMPILER = Path(__file__).parents[3] / "toolkit" / "compiler"
#: the table, and what says of many more ops how they are made channels last
_TABLES = {"ir/elementwise.py", "transforms/layout.py"}


def test_every_op_that_has_machine_code_has_a_row() -> None:
    assert OPERATORS.keys() - ELEMENTWISE.keys() == set()


@pytest.mark.parametrize("row", ELEMENTWISE.values(), ids=lambda row: row.op)
def test_rows_are_complete(row: ElementwiseOpDef) -> None:
    assert bool(row.numpy) == bool(row.kinds)
    if row.numpy:
        function = getattr(np, row.numpy)
        assert isinstance(function, np.ufunc)
        operands = max(row.python.count("{}"), row.python.count("{0}") and 1) if row.python else function.nin - row.zero
        assert function.nin == operands + row.zero
    assert not (row.zero and not row.numpy)
    assert not (row.commutative and row.binary is None)
    assert not (row.binary is not None and row.post_ops)
    assert not (row.hides_nan and not row.post_ops)
    assert not (row.takes_value and not (row.gradient and row.post_ops))
    assert not (row.gradient and not row.same_shapes)
    assert not (row.one_thread and not row.single)


def test_there_is_no_other_table() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted(_COMPILER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Set | ast.Tuple | ast.List | ast.Dict):
                listed = node.keys if isinstance(node, ast.Dict) else node.elts
                ops = [item.value for item in listed if isinstance(item, ast.Constant) and item.value in ELEMENTWISE]
                if len(ops) > 4:
                    found.setdefault(path.relative_to(_COMPILER).as_posix(), []).append(", ".join(map(str, ops)))
    assert found.keys() - _TABLES == set(), found
