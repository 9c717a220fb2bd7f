"""What a first step imports: nothing that its graph does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from toolkit import client as gm
from toolkit.formats.models.model import from_graph, write_model

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


_COMMAND = """
import sys
from commands.main import run
code = run(["run", sys.argv[1], "--feed", "x=[[1,2]]", "--fetch", "y"])
print(code, [name for name in sys.modules if name.startswith(tuple(sys.argv[2:]))])
"""
#: what other options of the command ask for, and what learns
OF_OPTIONS = (
    "toolkit.graph.summary", "toolkit.passes.models.surroundings",
    "toolkit.runtime.analysis.compare", "toolkit.runtime.probes.calibration", "toolkit.runtime.probes.dump",
    "toolkit.runtime.probes.measure", "toolkit.runtime.probes.numerics", "toolkit.runtime.probes.profile",
    "toolkit.runtime.probes.trace", "toolkit.runtime.saving.saved_model", "toolkit.runtime.steps.timing",
    "toolkit.runtime.training.hooks.checkpoint", "toolkit.runtime.training.hooks.logging",
    "toolkit.compiler.backends.cpu.learning.rows", "toolkit.compiler.backends.cpu.learning.training",
    "toolkit.compiler.backends.cpu.learning.updates", "toolkit.runtime.training.hooks.progress",
    "toolkit.runtime.training.session_manager", "numpy.random",
)  # fmt: skip


def test_a_run_imports_nothing_for_options_that_are_not_given(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    with gm.Graph().as_default() as graph:
        gm.ops.relu(gm.placeholder(gm.float32, [1, 2], name="x"), name="y")
    write_model(from_graph(graph.core), path)
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, str(path), *OF_OPTIONS],
        capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_the_families_are_where_the_test_looks() -> None:
    import importlib

    for name in (*NOT_NEEDED, *OF_OPTIONS):
        importlib.import_module(name)
