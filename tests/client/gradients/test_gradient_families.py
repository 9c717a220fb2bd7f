"""The gradient of every op that TensorFlow has one for, family by family, against TensorFlow's on the same graph."""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType

import numpy as np
import pytest

from tests.client.client_programs import tf1_semantics
from tests.client.gradient_families import CASES, measure
from tests.client.gradients.gradient_oracle import compare, numeric
from toolkit import client as gm
from toolkit.client.construction.tensor import Tensor

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("name", CASES)
def test_gradient(tf: ModuleType, name: str, known: bool) -> None:
    row = CASES[name]
    if not known and not row.dynamic:
        known = True

    def build() -> tuple[list[Tensor], list[Tensor]]:
        xs = [
            gm.placeholder(value.dtype, value.shape if known else [None] * value.ndim, name=f"x{i}")
            for i, value in enumerate(row.feeds)
        ]
        made = row.build(*xs)
        ys = [m for y in (made if isinstance(made, list | tuple) else [made]) if (m := measure(y)) is not None]
        return ys, xs

    feeds = {f"x{i}": value for i, value in enumerate(row.feeds)}
    if row.why_differences:
        exact = row.feeds[0].dtype.itemsize >= 8
        found, wanted = numeric(build, feeds, 1e-6 if exact else 1e-2)
        for mine, other in zip(found, wanted, strict=True):
            # central differences of float32 lose half of the digits, and more by subtraction
            np.testing.assert_allclose(mine, other, rtol=1e-6 if exact else 5e-3, atol=1e-7 if exact else 5e-3)
        return
    with tf1_semantics(tf) if row.v1 else nullcontext():
        compare(tf, build, feeds, run_ours=row.run_ours)


# -- the registry -----------------------------------------------------------------------------------------

#: differentiable for TensorFlow, and why not here
NOT_HERE = {
    "no kernel on a CPU, or only for devices and clusters that are not here": """
        AllToAll CollectivePermute CopyToMesh CopyToMeshGrad CrossReplicaSum NcclAllReduce
        NcclBroadcast NcclReduce Relayout RelayoutLike TPUEmbeddingActivations XlaClusterOutput XlaEinsum XlaSharding
        XlaSpmdFullToShardShape XlaSpmdShardToFullShape""",
    "Python's or the debugger's own": """
        _EagerConst DebugGradientIdentity DebugGradientRefIdentity DebugIdentityV2""",
    "its function only returns None: here it has none": """
        ArgMax ArgMin Ceil Floor FloorDiv LoopCond Rint Round TruncateDiv""",
}
#: of no registered op, or for TPUs
NO_OPS = """
    AudioMicrofrontend Queue ScatterNdDiv ScatterNdMul StatelessRandomShuffle TPUReplicatedInput XlaVariadicReduce"""


def test_every_gradient_of_tensorflow_is_here_or_listed(tf: ModuleType) -> None:
    import importlib
    import pkgutil

    from tensorflow.python import ops as package
    from tensorflow.python.framework import ops as framework

    from toolkit.client.gradients import registry

    for module in pkgutil.iter_modules(package.__path__):
        if module.name.endswith("_grad") or module.name in ("while_v2", "cond_v2"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    theirs = framework.gradient_registry
    missing: set[str] = set()
    for name in theirs.list():
        kind = "none" if theirs.lookup(name) is None else "function"
        if registry.kind_of(name) != kind:
            missing.add(name)
    listed = {name for names in (*NOT_HERE.values(), NO_OPS) for name in names.split()}
    # tests beside this one register gradients of their own, and so does whoever calls a tf.custom_gradient
    unknown = {name for name in missing - listed if not name.startswith(("Test", "CustomGradient-"))}
    assert unknown == set(), "TensorFlow has gradients that are neither here nor in the lists above"
    assert listed - set(theirs.list()) == set() and listed <= missing, "listed, but here, or not TensorFlow's"
