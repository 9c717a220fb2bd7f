"""Sessions over several devices give the numbers of one device; partition folders run."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import perturbation
from tests.patience import HUNG
from tests.runtime.executors.test_control_flow import _emit, _programs
from tests.runtime.oracle import Both
from toolkit.errors import InvalidArgumentError
from toolkit.formats.folders.partitions import read_partitions, write_partitions
from toolkit.formats.models.model import from_graph
from toolkit.graph.device import DeviceSpec
from toolkit.passes.partitioning.partition import by_task, join, split
from toolkit.passes.placement.place import Place
from toolkit.runtime.jobs.loading import load
from toolkit.runtime.session import Session

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("each_worker")]
CPUS = ["/device:CPU:0", "/device:CPU:1"]
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def two_devices(tf: ModuleType) -> Both:
    def build(v1: Any) -> None:
        with v1.device(CPUS[0]):
            x = v1.placeholder("float32", [2, 3], name="x")
            w = v1.fill([3, 4], 0.5)
        with v1.device(CPUS[1]):
            y = v1.matmul(x, w, name="y")
            with v1.control_dependencies([w]):
                late = v1.constant(3.0)
        with v1.device(CPUS[0]):
            v1.add(v1.reduce_sum(y) * late, y, name="z")

    return Both(tf, build)


def test_two_devices(tf: ModuleType) -> None:
    both = two_devices(tf)
    both.check(["z:0", "y:0"], {"x:0": X}, devices={"CPU": 2})
    stages = Session(both.graph, devices={"CPU": 2}).compiled(["z:0"], ["x"]).stages
    assert sorted(name[-5:] for name in stages.partitions) == ["CPU:0", "CPU:1"]
    assert sum(node.op == "_Send" for part in stages.partitions.values() for node in part) == 5  # x, w, ^w, y, late


def test_loop_over_two_devices(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [2, 3], name="x")
        n = v1.placeholder("int32", [], name="n")

        def body(i: Any, y: Any) -> Any:
            with v1.device(CPUS[1]):
                z = v1.tanh(y) + x
            with v1.device(CPUS[0]):
                return i + 1, z * 0.5

        with v1.device(CPUS[0]):
            v1.identity(v1.while_loop(lambda i, y: i < n, body, [v1.constant(0), x])[1], name="out")

    both = Both(tf, build)
    for n in (0, 1, 5):
        both.check(["out:0"], {"x:0": X, "n:0": n}, devices={"CPU": 2})


def test_error_on_one_device_ends_the_step(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        with v1.device(CPUS[0]):
            x = v1.placeholder("float32", None, name="x")
        with v1.device(CPUS[1]):
            bad = v1.reshape(x, [5], name="bad")
        with v1.device(CPUS[0]):
            v1.identity(bad, name="out")

    session = Session(Both(tf, build).graph, devices={"CPU": 2})
    with pytest.raises(InvalidArgumentError, match="node 'bad'"):
        session.run("out:0", {"x:0": X})
    np.testing.assert_array_equal(session.run("out:0", {"x:0": np.zeros(5)}), np.zeros(5))


def test_partition_folder_runs(tf: ModuleType, tmp_path: Path) -> None:
    both = two_devices(tf)
    devices = [DeviceSpec.parse(f"/job:{job}/replica:0/task:0/device:CPU:0") for job in ("worker", "ps")]
    graph = both.graph.copy()
    for node in graph:
        node.device = node.device.replace("/device:CPU:0", "/job:ps").replace("/device:CPU:1", "/job:worker")
    placed = Place(devices, allow_soft_placement=True).apply(graph).graph
    folder = str(tmp_path / "parts")
    write_partitions(folder, split(placed, by_task), from_graph(placed), "task")
    write_partitions(folder, split(placed, by_task), from_graph(placed), "task")  # replaces the older one
    assert [p.name for p in tmp_path.iterdir()] == ["parts"]
    assert set(read_partitions(folder).graphs) == {"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"}
    loaded = load(folder)
    got = Session(loaded.model, devices=loaded.devices).run(["z:0"], {"x:0": X})
    perturbation.assert_close(both.graph, ["z:0"], {"x:0": X}, [got, Session(both.graph).run(["z:0"], {"x:0": X})])


@settings(max_examples=40, deadline=None)
@given(program=_programs(3), seed=st.integers(0, 1000))
def test_random_placements_of_random_programs(tf: ModuleType, program: Any, seed: int) -> None:
    """Scatter the nodes of random programs over two devices: same numbers, and join undoes split."""

    def build(v1: Any) -> None:
        env = {name: v1.placeholder("float32", [2], name=name) for name in ("x", "y")}
        v1.identity(_emit(v1, program, env), name="out")

    both = Both(tf, build)
    rng = np.random.default_rng(seed)
    for node in both.graph:
        node.device = CPUS[rng.integers(2)]
    feeds = {"x:0": np.array([0.5, -1.0], np.float32), "y:0": np.array([1.5, 0.25], np.float32)}
    expected = Session(both.graph).run(["out:0"], feeds)
    session = Session(both.graph, devices={"CPU": 2})
    # compiled loops have a tanh of their own, a few units in the last place from NumPy's
    got = session.run(["out:0"], feeds, timeout_ms=int(1000 * HUNG))
    perturbation.assert_close(both.graph, ["out:0"], feeds, [got, expected])
    placed = session.compiled("out:0", list(feeds)).stages.placed
    joined = join(split(placed))
    assert {n.name: (n.op, n.input_refs()[: len(n.inputs)], {c.name for c in n.control_inputs}) for n in joined} == {
        n.name: (n.op, n.input_refs()[: len(n.inputs)], {c.name for c in n.control_inputs}) for n in placed
    }
