"""The gradient of every op that has one is the slope of its function, of first and of second order, in float64.

`numeric_oracle` says how that is compared, and how far the two may be apart.
"""

from __future__ import annotations

import pytest

from tests.client.gradients.numeric_oracle import check
from tests.client.numeric_families import ROWS
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.gradients import registry
from toolkit.errors import GraphError
from toolkit.graph import opdefs

#: rows of an op in every run, from the first to the last; the long one takes all
FEW = 3

#: ops that have their gradient from the function of another, which has rows
SAME_FUNCTION = {
    "DebugIdentity": "Identity", "RefIdentity": "Identity", "RefSwitch": "Switch", "RefMerge": "Merge",
    "RefEnter": "Enter", "RefExit": "Exit", "RefNextIteration": "NextIteration", "PrintV2": "Print",
    **{
        f"TensorArray{what}{version}": f"TensorArray{what}V3"
        for what in ("Concat", "Gather", "Read", "Scatter", "Split", "Write")
        for version in ("", "V2")
    },
}  # fmt: skip

#: ops whose gradient is not what their values' differences say, and why; test_gradient_families compares them with
#: TensorFlow's
NO_SLOPE = {
    "rounded: the gradient goes straight through": """
        FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel QuantizeAndDequantize
        QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4 QuantizeAndDequantizeV4Grad""",
    "samples that may be rejected: the gradient is that of their distribution": """
        RandomGamma StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessParameterizedTruncatedNormal""",
}
#: ops whose gradient function says that there is none, here and in TensorFlow
REFUSED = {"PreventGradient", "SparseDenseCwiseAdd", "SparseMatrixMul", "SparseSparseMaximum", "SparseSparseMinimum"}


@pytest.fixture(autouse=True)
def node_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row's program runs a few times: compiling it would take longer."""
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")


def _chosen(op: str) -> list[int]:
    count = len(ROWS[op])
    return sorted({round(i * (count - 1) / max(min(FEW, count) - 1, 1)) for i in range(min(FEW, count))})


def _check(op: str, i: int) -> None:
    row = ROWS[op][i]
    found = check(row, i)
    assert op in found.ops, f"the row '{row.about}' of {op} does not ask for its gradient"


@pytest.mark.parametrize("op", ROWS)
def test_slopes(op: str) -> None:
    for i in _chosen(op):
        _check(op, i)


@pytest.mark.long
@pytest.mark.parametrize("op", ROWS)
def test_slopes_of_all_rows(op: str) -> None:
    for i in sorted({*range(len(ROWS[op]))} - {*_chosen(op)}):
        _check(op, i)


def test_every_gradient_has_a_row() -> None:
    """Who adds a gradient adds a row: in tests/client/numeric_families, in the file of its family."""
    theirs = {op for op in registry.registered() if opdefs.origin(op) is not None}  # of plugins, in the tests of those
    named = {op for op in registry.registered() if not opdefs.is_known(op)}  # by programs, for themselves
    with_function = {op for op in registry.registered() if registry.kind_of(op) == "function"} - theirs - named
    no_slope = {op for names in NO_SLOPE.values() for op in names.split()}
    excused = no_slope | REFUSED | SAME_FUNCTION.keys()
    assert with_function - ROWS.keys() - excused == set(), "no row"
    assert excused & ROWS.keys() == set(), "excused, and has a row"
    assert (excused | ROWS.keys()) - with_function == set(), "no gradient"


@pytest.mark.parametrize("op", SAME_FUNCTION)
def test_gradients_of_one_function(op: str) -> None:
    entries = registry._entries  # pyright: ignore[reportPrivateUsage] -- which function it is, nobody else asks
    assert entries[op].function is entries[SAME_FUNCTION[op]].function


@pytest.mark.parametrize("op", sorted(REFUSED - {"SparseMatrixMul"}))
def test_refused(op: str) -> None:
    with gm.Graph().as_default():
        x = gm.placeholder(gm.float64, [2])
        places, sizes = gm.constant([[0], [1]], "int64"), gm.constant([2], "int64")
        if op == "PreventGradient":
            y = ops.prevent_gradient(x, message="not this way")
        elif op == "SparseDenseCwiseAdd":
            y = ops.sparse_dense_cwise_add(places, x, sizes, gm.constant([1.0, 2.0], "float64"))
        else:
            y = ops.function(op)(places, x, sizes, places, x, sizes)[1]
        with pytest.raises(GraphError, match="not this way" if op == "PreventGradient" else "has no gradient"):
            gm.grad(y, x)


def test_a_scaled_sparse_matrix_is_refused() -> None:
    with gm.Graph().as_default():
        x = gm.placeholder(gm.float64, [2])
        places, sizes = gm.constant([[0, 0], [1, 1]], "int64"), gm.constant([2, 2], "int64")
        matrix = ops.sparse_matrix_mul(
            ops.sparse_tensor_to_csr_sparse_matrix(places, x, sizes), gm.constant(2.0, "float64")
        )
        y = ops.csr_sparse_matrix_to_dense(matrix, type=gm.float64)
        with pytest.raises(
            GraphError, match="SparseMatrixMul has no gradient, in TensorFlow neither; convert to dense"
        ):
            gm.grad(y, x)
