"""`run --limit`, and runs that would exhaust the machine: in processes of their own, with limits around them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from commands.main import run
from schemas.graph_pb2 import GraphDef
from schemas.types_pb2 import DT_FLOAT
from toolkit import client as c
from toolkit.client import ops
from toolkit.client.construction.graph import Graph

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: str, memory: int = 6 << 30) -> subprocess.Popen[str]:
    """A run in a process that can map so much memory at most."""

    def confine() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    return subprocess.Popen(
        [sys.executable, "-m", "commands.main", "run", *arguments], cwd=ROOT, text=True, preexec_fn=confine,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip


def endless(folder: Path) -> str:
    graph = Graph()
    with graph.as_default():
        x = c.placeholder("float32", [4], name="x")

        def turn(i: Any, a: Any) -> Any:
            ready = c.with_dependencies([ops.print_v2("turning")], i)
            return ready * 1, a * 0.5 + x

        c.identity(c.while_loop(lambda i, a: i < 10, turn, [c.constant(0), x])[1], name="y")
    return _write(graph.as_graph_def(), folder)


def doubling(folder: Path, depth: int) -> str:
    """Functions that each call the next one twice: 2^depth additions in a few kilobytes."""
    graph = GraphDef()
    node = graph.node.add(name="x", op="Placeholder")
    node.attr["dtype"].type = DT_FLOAT
    node.attr["shape"].shape.SetInParent()
    _call(graph.node.add(name="y", input=["x"]), "f0")
    for number in range(depth):
        function = graph.library.function.add()
        function.signature.name = f"f{number}"
        function.signature.input_arg.add(name="a", type=DT_FLOAT)
        function.signature.output_arg.add(name="r", type=DT_FLOAT)
        if number == depth - 1:
            function.node_def.add(name="sum", op="AddV2", input=["a", "a"]).attr["T"].type = DT_FLOAT
            function.ret["r"] = "sum:z:0"
        else:
            _call(function.node_def.add(name="p", input=["a"]), f"f{number + 1}")
            _call(function.node_def.add(name="q", input=["p:output:0"]), f"f{number + 1}")
            function.ret["r"] = "q:output:0"
    return _write(graph, folder)


def _call(node: Any, function: str) -> None:
    node.op = "PartitionedCall"
    for name in ("Tin", "Tout"):
        node.attr[name].list.type.append(DT_FLOAT)
    node.attr["f"].func.name = function


def tile(folder: Path) -> str:
    graph = Graph()
    with graph.as_default():
        c.tile(c.constant([1.0, 2.0]), c.placeholder("int64", [1], name="times"), name="y")
    return _write(graph.as_graph_def(), folder)


def _write(graph: GraphDef, folder: Path) -> str:
    path = folder / "model.pb"
    path.write_bytes(graph.SerializeToString())
    return str(path)


def test_limits_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tile(tmp_path)
    command = ["run", model, "--fetch", "y", "--feed"]
    assert run([*command, "times=[2]", "--limit", "memory=1G,tensor=1K,time=10min"]) == 0
    assert capsys.readouterr().out == "y = [1., 2., 1., 2.]\n"
    assert run([*command, "times=[1000]", "--limit", "tensor=1K"]) == 3
    told = capsys.readouterr().err
    assert told.startswith(f"graphmill: error: {model}: node 'y': Tile wants float32[1000, 2], 7.8 KiB, ")
    assert told.count("\n") == 1
    assert run([*command, "times=[2]", "--limit", "memory=1Q"]) == 2
    assert "'Q' is not a unit in 'memory=1Q'" in capsys.readouterr().err
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert run([*command, "times=[2]", "--limit", "memory=1G"]) == 0
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize(
    ("times", "more"), [(1 << 36, []), (1 << 50, ["--tokens"]), (1 << 61, ["--limit", "memory=64M"])]
)
def test_a_tensor_that_no_machine_has_room_for(tmp_path: Path, times: int, more: list[str]) -> None:
    process = start(tile(tmp_path), "--feed", f"times=[{times}]", "--fetch", "y", *more)
    told = process.communicate(timeout=120)[1]
    assert process.returncode == 3, told
    assert "node 'y': Tile" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("tokens", [False, True])
def test_a_deadline_ends_a_loop_without_end(tmp_path: Path, tokens: bool) -> None:
    more = ["--tokens"] if tokens else []
    process = start(endless(tmp_path), "--feed", "x=[1,2,3,4]", "--fetch", "y", "--limit", "time=2s", *more)
    told = process.communicate(timeout=120)[1]
    assert process.returncode == 3
    assert told.endswith("graphmill: error: the run took longer than the limit of time, 2 s\n"), told[-500:]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_a_loop_without_end(tmp_path: Path, number: signal.Signals) -> None:
    process = start(endless(tmp_path), "--feed", "x=[1,2,3,4]", "--fetch", "y")
    assert process.stderr is not None
    assert process.stderr.readline() == "turning\n"
    process.send_signal(number)
    drained = threading.Thread(target=process.communicate)
    drained.start()
    drained.join(timeout=120)
    assert process.returncode == 130


def test_functions_that_call_each_other_twice(tmp_path: Path) -> None:
    """Two to the fortieth calls take their time, but neither memory nor more than one signal to end."""
    process = start(doubling(tmp_path, 40), "--feed", "x=1", "--fetch", "y", "--limit", "time=8s", memory=2 << 30)
    told = process.communicate(timeout=120)[1]
    assert (process.returncode, told) == (3, "graphmill: error: the run took longer than the limit of time, 8 s\n")


def test_functions_that_call_each_other_twice_give_their_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", doubling(tmp_path, 6), "--feed", "x=1", "--fetch", "y"]) == 0
    assert capsys.readouterr().out == "y = 4.2949673e+09\n"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--threads", "1000000000"], "--threads: there cannot be 1000000000 threads; expected 1 to 1024"),
        (["--inter-op", "1000000000"], "--inter-op: there cannot be 1000000000 threads; expected 1 to 1024"),
        (["--devices", "CPU=1000000000"], "there cannot be 1,000,000,000 devices; expected at most "),
        (["--devices", "CPU=" + "9" * 5000], "--devices wants TYPE=COUNT"),
    ],
)
def test_more_than_any_machine_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str], said: str
) -> None:
    assert run(["run", tile(tmp_path), "--fetch", "y", "--feed", "times=[2]", *option]) == 2
    assert said in capsys.readouterr().err
