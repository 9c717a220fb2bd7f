"""What a first step imports: nothing that its graph does not need."""

from __future__ import annotations

import subprocess
import sys

_GRAPH = """
import sys
import numpy as np
from toolkit import client as gm
from toolkit.runtime.session import Session
with gm.Graph().as_default() as graph:
    x = gm.placeholder(gm.float32, [64, 48], name="x")
    w = gm.Variable(gm.constant(np.full((48, 32), 0.5, np.float32)))
    y = gm.reduce_sum(gm.ops.relu(gm.ops.mat_mul(x, w)))
    train = gm.train.GradientDescent(0.1).minimize(y)
    init = gm.global_variables_initializer()
with Session(graph) as session:
    session.run(init)
    session.run([y, train], {"x:0": np.ones((64, 48), np.float32)})
print([name for name in sys.modules if name.startswith(tuple(sys.argv[1:]))])
"""
#: families of the compiler for loops, recurrent layers and quantized numbers, its text form and what makes sure of it;
#: and what looks for installed plugins
NOT_NEEDED = (
    "toolkit.compiler.backends.cpu.loops", "toolkit.compiler.backends.cpu.recurrent.replace",
    "toolkit.compiler.backends.cpu.integers.rules", "toolkit.compiler.backends.kernels", "toolkit.compiler.explain",
    "toolkit.compiler.ir.text", "toolkit.compiler.ir.structure", "importlib.metadata",
)  # fmt: skip


def test_a_training_step_imports_no_more_than_it_needs() -> None:
    environment = {"PATH": "/usr/bin:/bin"}  # the tests' own settings ask for the text form and the verifier
    done = subprocess.run(
        [sys.executable, "-c", _GRAPH, *NOT_NEEDED], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_families_are_where_the_test_looks() -> None:
    import importlib

    for name in NOT_NEEDED:
        importlib.import_module(name)
