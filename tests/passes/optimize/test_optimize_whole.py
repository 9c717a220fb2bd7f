"""Passes over whole models: normal forms, names, releases, recomputation; and the command."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import main
from schemas.graph_pb2 import GraphDef
from tests.compiler.random.random_graphs import Piece
from tests.passes.optimize.equivalence import Case, apply, assert_same, made_graph, values
from toolkit import client as gm
from toolkit.errors import GraphError, UsageError
from toolkit.formats.models.model import from_graph, read_model, write_model
from toolkit.graph import releases
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.optimize.forms.canonical import Canonical, content_hash
from toolkit.passes.optimize.forms.for_release import ForRelease
from toolkit.passes.optimize.forms.obfuscate_names import ObfuscateNames, short_name
from toolkit.passes.optimize.kept import kept_by
from toolkit.passes.optimize.notation import parse_passes
from toolkit.passes.optimize.run import optimize
from toolkit.runtime.analysis import verify
from toolkit.runtime.session import Session

ops = gm.ops


def random_case(seed: int) -> Case:
    rng = random.Random(seed)
    pieces: list[Piece] = [
        (rng.randrange(1000), rng.randrange(1000), rng.randrange(1000), rng.randrange(100_000)) for _ in range(25)
    ]
    return Case(pieces, resource=bool(seed % 2), fed=None, count=2, flag=True)


def scrambled(case: Case, seed: int) -> Graph:
    """The same graph: in another order, with other names where nobody names a node."""
    rng = random.Random(seed)
    kept = case.kept()
    order = list(case.graph.nodes)
    rng.shuffle(order)
    out = case.graph.subgraph(())
    placed = {name for node in order for name in _placed_with(node)}
    copies: dict[Any, Any] = {}
    for count, node in enumerate(order):
        stays = node.name in kept.names or node.name in placed or "shared_name" in node.op_def.attrs
        copies[node] = out.add_copy(node, node.name if stays else f"other/{count}")
    for node, copy in copies.items():
        copy.inputs = [copies[source].output(index) for source, index in node.inputs]
        copy.control_inputs = [copies[source] for source in rng.sample(node.control_inputs, len(node.control_inputs))]
    return out


def _placed_with(node: Any) -> list[str]:
    return [value.decode()[5:] for value in node.attr_or("_class", [])]


def data(graph: Graph) -> bytes:
    return graph.to_proto().SerializeToString(deterministic=True)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_the_same_model_gives_the_same_bytes(seed: int) -> None:
    case = random_case(seed)
    other = scrambled(case, seed)
    passes = parse_passes("strip_defaults,canonical")
    mine, theirs = (optimize(graph, passes, case.kept()).graph for graph in (case.graph, other))
    assert data(mine) == data(theirs) != data(case.graph)
    assert_same(case.run(case.graph, 1), case.run(mine, 1))
    assert not optimize(mine, passes, case.kept()).modified


def test_hashes_tell_models_apart() -> None:
    def build(weight: float, name: str) -> MetaGraph:
        def make() -> None:
            x = gm.placeholder(gm.float32, [2], name="x")
            ops.identity(ops.mul(x, gm.constant(weight, name=f"{name}/w"), name=f"{name}/m"), name="y")

        return MetaGraph(made_graph(make))

    assert content_hash(build(2.0, "a")) == content_hash(build(2.0, "b")) != content_hash(build(3.0, "a"))


def test_tensors_are_written_one_way() -> None:
    graph = made_graph(lambda: ops.neg(gm.constant(np.full([4], 2.0, np.float32), name="c"), name="y"))
    short = graph.copy()
    proto = short.node("c").attrs.proto("value").tensor
    changed = type(proto)()
    changed.CopyFrom(proto)
    changed.ClearField("tensor_content")
    del changed.float_val[:]
    changed.float_val.append(2.0)
    short.node("c").attrs["value"] = changed
    assert data(short) != data(graph)
    assert data(apply(Canonical(), short, ["y"]).graph) == data(apply(Canonical(), graph, ["y"]).graph)


def test_names_without_meaning() -> None:
    assert [short_name(i) for i in (0, 25, 26, 27, 701, 702)] == ["a", "z", "aa", "ab", "zz", "aaa"]
    case = random_case(3)
    made = optimize(case.graph, [ObfuscateNames()], case.kept()).graph
    kept = case.kept().names
    assert not [n.name for n in made if "/" in n.name and n.name not in kept and "shared_name" not in n.op_def.attrs]
    assert kept <= {node.name for node in made}
    assert_same(case.run(case.graph, 1), case.run(made, 1))
    assert not optimize(made, [ObfuscateNames()], case.kept()).modified


def test_older_releases() -> None:
    def build() -> None:
        x = gm.placeholder(gm.float32, [2, 3, 4], name="x")
        z = ops.leaky_relu(ops.add_v2(x, 1.0), alpha=0.25)
        product = ops.batch_mat_mul_v2(z, ops.transpose(z, [0, 2, 1]))[:, :, :1]
        ops.select_v2(ops.greater(z, 0.0), product * z, z, name="y")

    graph = made_graph(build)
    made = apply(ForRelease(release="1.4"), graph, ["y"], ["x"]).graph
    assert releases.needs(GraphDef.FromString(data(made))).release == "1.4"
    assert releases.needs(GraphDef.FromString(data(graph))).release != "1.4"
    feeds = {"x:0": np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)}
    np.testing.assert_allclose(
        values(made, ["y:0"], feeds)[0], values(graph, ["y:0"], feeds)[0], rtol=1e-5  # products in another order
    )  # fmt: skip
    assert not apply(ForRelease(release=releases.releases()[-1]), graph, ["y"]).modified


def test_what_does_nothing_in_older_releases_goes() -> None:
    """Names for people, and what ends a way of reading that there was not."""

    def build() -> None:
        handle = ops.var_handle_op(dtype=gm.float32, shape=[2], shared_name="v", debug_name="a/v")
        with gm.control_dependencies([ops.disable_copy_on_read(handle, name="stop")]):
            ops.read_variable_op(handle, dtype=gm.float32, name="y")

    graph = made_graph(build)
    made = apply(ForRelease(release="1.15"), graph, ["y"]).graph
    assert [node.op for node in made] == ["VarHandleOp", "NoOp", "ReadVariableOp"]
    assert "debug_name" not in made.node("VarHandleOp").attrs and made.node("VarHandleOp").text("shared_name") == "v"
    assert made.node("y").control_inputs == [made.node("stop")]
    assert not releases.later_than("VarHandleOp", "1.15").is_op


def test_what_an_older_release_lacks_is_named() -> None:
    graph = made_graph(
        lambda: ops.identity(ops.einsum([gm.placeholder(gm.float32, [2, 2])], equation="ij->ji"), name="y")
    )
    with pytest.raises(GraphError, match=r"TensorFlow 1\.14 does not know Einsum \(from 1\.15 on\) at 'Einsum'"):
        apply(ForRelease(release="1.14"), graph, ["y"])
    with pytest.raises(UsageError, match=r"there is no release '3\.0'"):
        ForRelease(release="3.0")


def training_graph() -> tuple[Graph, list[str]]:
    with gm.Graph().as_default() as program:
        x = gm.placeholder(gm.float32, [64, 256], name="x")
        h = x
        for i in range(4):
            w = gm.get_variable(f"w{i}", [256, 256], initializer=gm.initializers.Constant(0.01 * (i + 1)))
            h = ops.relu(ops.tanh(ops.mat_mul(h, w.value())) * 1.5 + 0.1)
        loss = ops.mean(ops.square(h), [0, 1])
        train = gm.train.GradientDescent(0.1).minimize(loss)
        init = gm.global_variables_initializer()
        ops.identity(loss, name="loss")
    return Graph.from_proto(GraphDef.FromString(program.as_graph_def().SerializeToString())), [train.name, init.name]


def test_recomputed_results_need_less_memory_and_are_the_same() -> None:
    graph, (train, init) = training_graph()
    kept = kept_by(MetaGraph(graph), ["x"], ["loss"], [train, init])
    done = optimize(graph, parse_passes("recompute(min_bytes=1000)"), kept)
    report = done.passes[0].report
    assert report["recomputed"] >= 4 and report["bytes"] >= 4 * 64 * 256 * 4
    assert report["peak_after"] <= report["peak_before"]
    given = {"x:0": np.random.default_rng(1).normal(size=(64, 256)).astype(np.float32)}

    def losses(each: Graph) -> list[Any]:
        with pytest.MonkeyPatch.context() as patch, Session(each.copy()) as session:
            patch.setenv("GRAPHMILL_SEGMENTS", "off")
            session.run(init)
            return [session.run(["loss:0", train], given)[0] for _ in range(3)]

    assert_same(losses(graph), losses(done.graph))
    assert not optimize(graph, parse_passes("recompute(scope=nothing)"), kept).modified


# -- the command ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("optimize")
    (folder / "net.py").write_text(
        "from toolkit import client as gm\n"
        "x = gm.placeholder(gm.float32, [None, 4], name='x')\n"
        "w = gm.constant([[1.0] * 3] * 4) * 2.0\n"
        "y = gm.ops.relu(gm.ops.mat_mul(gm.identity(x) + 0.0, w))\n"
        "gm.ops.identity(y, name='y')\n"
        "gm.ops.neg(y, name='unused')\n"
    )
    assert main.run(["build", str(folder / "net.py"), "-o", str(folder / "net.pb")]) == 0
    return folder


def test_the_command(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, out, report = str(model / "net.pb"), str(model / "o.pb"), str(model / "r.json")
    line = ["optimize", net, "--fetch", "y", "--feed", "x", "--verify", "random", "--report", report, "-o", out]
    assert main.run(line) == 0
    said = capsys.readouterr().err
    assert "nodes are left" in said and "--verify: equal within the tolerance" in said
    facts = json.loads(Path(report).read_text())
    assert facts["verified"]["equal"] and facts["nodes_after"] < facts["nodes_before"]
    changed = [each for each in facts["passes"] if each["modified"]]
    assert all(set(each["before"]) == {"nodes", "bytes", "seconds"} for each in changed)
    np.savez(str(model / "f.npz"), x=np.ones((2, 4), np.float32))
    assert main.run([*line[:6], "--verify", str(model / "f.npz"), "--canonical", "-o", out]) == 0
    capsys.readouterr()
    assert main.run(["optimize", net, "--fetch", "y", "--passes", "remove_unused", "-o", out]) == 0
    assert "what was asked for needs" in capsys.readouterr().err  # the rest goes before any pass runs
    assert main.run(["optimize", net, "--for", "1.4", "-o", out]) == 0
    assert main.run(["inspect", out]) == 0
    assert "loads in TensorFlow 1.4 and newer" in capsys.readouterr().out


def test_verifying_by_chance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole numbers are in range of the table that they choose from; sizes that are not known are above 1."""
    with gm.Graph().as_default() as graph:
        ids = gm.placeholder(gm.int32, [None, None], name="ids")
        scale = gm.placeholder(gm.float32, None, name="scale")
        rows = gm.gather(gm.constant(np.arange(8, dtype=np.float32).reshape(4, 2)), ids, name="rows")
        gm.identity(rows * scale, name="y")
    net, out = str(tmp_path / "n.pb"), str(tmp_path / "o.pb")
    write_model(from_graph(graph.core), net)
    feeds = verify._random_feeds(read_model(net), ["rows:0"], seed=1)  # pyright: ignore[reportPrivateUsage]
    [value] = feeds.values()
    assert value.shape == (2, 3) and value.min() >= 0 and 1 < value.max() < 4
    assert main.run(["optimize", net, "--fetch", "rows", "--verify", "random", "-o", out]) == 0
    capsys.readouterr()
    assert main.run(["optimize", net, "--fetch", "y", "--verify", "random", "-o", out]) == 2
    said = capsys.readouterr().err
    assert "--verify: nothing is known of the shape of 'scale:0'; give values: --verify FEEDS.npz" in said


def test_mistakes_of_the_command(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = str(model / "net.pb")
    for line, said in (
        (["--preset", "fastest"], "--preset: there is no preset 'fastest'"),
        (["--passes", "fold"], "--passes: there is no pass 'fold'"),
        (["--for", "1.99"], "--for: there is no release"),
        (["--fetch", "z"], "--fetch: "),
        (["--rtol", "1"], "add --verify"),
        (["--verify", "nothing.npz"], "nothing.npz"),
    ):
        assert main.run(["optimize", net, *line, "-o", str(model / "x.pb")]) == 2
        assert said in capsys.readouterr().err
        assert not (model / "x.pb").exists()


def test_a_difference_ends_with_1_and_writes_nothing(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolkit.passes.optimize.arithmetic import simplify_arithmetic

    def wrong(at: Any) -> bool:
        return at.turn("Relu6", at.inputs[0])

    monkeypatch.setitem(simplify_arithmetic._RULES, "Relu", (wrong,))  # pyright: ignore[reportPrivateUsage]
    np.savez(str(model / "large.npz"), x=np.full((1, 4), 9, np.float32))
    line = ["optimize", str(model / "net.pb"), "--fetch", "y", "--verify", str(model / "large.npz")]
    assert main.run([*line, "--passes", "simplify_arithmetic", "-o", str(model / "w.pb")]) == 1
    assert "elements differ" in capsys.readouterr().err
    assert not (model / "w.pb").exists()


def test_hashes_and_lists_on_the_command_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, out = str(model / "net.pb"), str(model / "c.pb")
    assert main.run(["optimize", net, "--canonical", "-o", out]) == 0
    capsys.readouterr()
    told: list[str] = []
    for file in (net, out):
        assert main.run(["inspect", file, "--hash"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] and len(told[0].strip()) == 64
    assert main.run(["optimize", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"fold_constants", "canonical"} <= {each["name"] for each in listed}
