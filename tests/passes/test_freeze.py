"""Freezing: variables of every kind to constants, with the numbers that TensorFlow has; what cannot be is said."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests import models, perturbation
from tests.passes.graphs import run_in_tensorflow
from toolkit.errors import GraphError, GraphmillError, UsageError
from toolkit.formats import bundle
from toolkit.formats.models.model import Model, read_model, variables_prefix, write_model
from toolkit.graph.check import require_valid
from toolkit.graph.graph import Graph
from toolkit.graph.summary import VARIABLES
from toolkit.passes.freezing.freeze_model import FreezeRequest, freeze_model
from toolkit.runtime.session import Session

X = np.random.default_rng(3).standard_normal((3, 4)).astype(np.float32)
WORDS = np.array([b"one", b"two", b"zebra"], object)


def request_for(model: Model, *keys: str, **options: Any) -> FreezeRequest:
    chosen = [model.meta.signatures[key] for key in keys]
    fetches = [tensor for s in chosen for tensor in s.output_tensors().values()]
    feeds = [tensor for s in chosen for tensor in s.input_tensors().values()]
    return FreezeRequest(tuple(fetches), tuple(feeds), **options)


def frozen(model: Model, request: FreezeRequest, prefix: str | None = None) -> tuple[Model, dict[str, Any]]:
    with bundle.open_checkpoint(prefix or variables_prefix(model) or "") as source:
        made, report = freeze_model(model, source, request)
    require_valid(made.graph, shapes=True)
    return made, report


def variable_ops(graph: Graph) -> set[str]:
    library = graph.library
    ops = {node.op for node in graph} | {node.op for name in library for node in library.function(name).node_def}
    return ops & (VARIABLES | {"ReadVariableOp", "ResourceGather"})


def run_ours(graph: Graph, fetches: list[str], feeds: dict[str, Any], first: str | None = None) -> list[Any]:
    with Session(graph) as session:
        if first:
            session.run(graph.node(first))
        return session.run(fetches, feeds)


def check_signature(
    tf: ModuleType, model: Model, graph: Graph, key: str, inputs: dict[str, Any], first: str | None = None
):
    """TensorFlow's answer from the SavedModel is that of the frozen graph, there and here."""
    assert model.folder is not None
    loaded = tf.saved_model.load(str(model.folder)).signatures[key]
    specs = loaded.structured_input_signature[1]
    wanted = loaded(**{name: tf.constant(value, specs[name].dtype) for name, value in inputs.items()})
    signature = model.meta.signatures[key]
    takes, gives = signature.input_tensors(), signature.output_tensors()
    feeds = {takes[name]: value for name, value in inputs.items()}
    labels = sorted(gives)
    fetches = [gives[label] for label in labels]
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString()), name="")
        with tf.compat.v1.Session(graph=imported) as session:
            if first:
                session.run(first)
            theirs = session.run(fetches, feeds)
    ours = run_ours(graph, fetches, feeds, first)
    rounded: list[int] = []
    for index, (label, their, our) in enumerate(zip(labels, theirs, ours, strict=True)):
        if perturbation.is_rounded(np.asarray(their)):
            rounded.append(index)
        else:
            np.testing.assert_array_equal(their, wanted[label].numpy(), err_msg=label)
            np.testing.assert_array_equal(our, their, err_msg=label)
    results = [[values[i] for i in rounded] for values in (ours, theirs, [wanted[label].numpy() for label in labels])]
    before = [graph.node(first)] if first else []
    perturbation.assert_close(graph, [fetches[i] for i in rounded], feeds, results, before)


@pytest.mark.tensorflow
def test_module_with_functions_and_an_asset(tf: ModuleType) -> None:
    built = models.saved_model_tf2()
    model = read_model(built.path)
    made, report = frozen(model, request_for(model, "serving_default", "power"))
    assert set(report["variables"]) == {"weight", "bias"} and not variable_ops(made.graph)
    check_signature(tf, model, made.graph, "serving_default", {"x": X})
    check_signature(tf, model, made.graph, "power", {"n": np.int32(5), "x": np.array([1.5, -2], np.float32)})
    path, _ = frozen(model, request_for(model, "vocabulary"))
    name = model.meta.signatures["vocabulary"].output_tensors()["text"]
    assert run_in_tensorflow(tf, path.graph, [name], {}) == [b"one\ntwo\n"]


@pytest.mark.tensorflow
def test_keras_export(tf: ModuleType) -> None:
    model = read_model(models.saved_model_keras().path)
    made, report = frozen(model, request_for(model, "serve", "serving_default"))
    assert len(report["variables"]) == 8 and not variable_ops(made.graph)
    image = models.saved_model_keras().arrays()["input"]
    check_signature(tf, model, made.graph, "serving_default", {"image": image})


# -- one module with everything ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Variables of many types, gathered, read in loops, branches and nested functions; tables; datasets."""
    folder = tmp_path_factory.mktemp("everything")
    words = folder / "words.txt"
    words.write_text("one\ntwo\nthree\n")

    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            values = {
                "half": tf.constant([1.5, 2.5], tf.bfloat16), "double": tf.constant([[0.1, 0.2]], tf.float64),
                "int": tf.constant([[1, -2], [3, 4]], tf.int64), "bool": tf.constant([True, False]),
                "text": tf.constant(["a", "bc"]), "complex": tf.constant([1 + 2j], tf.complex64),
                "byte": tf.constant([7, 9], tf.uint8),
            }  # fmt: skip
            self.parts = {name: tf.Variable(value, name=name) for name, value in values.items()}
            self.weight = tf.Variable(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4), name="weight")
            self.other = tf.Variable(np.eye(4, dtype=np.float32), name="weight")  # the same name once more
            self.rows = tf.Variable(np.arange(24, dtype=np.float32).reshape(2, 3, 4), name="rows", shape=[None, 3, 4])
            self.count = tf.Variable(0, name="count")
            pairs = tf.lookup.KeyValueTensorInitializer(["one", "two"], tf.constant([10, 20], tf.int64))
            self.table = tf.lookup.StaticHashTable(pairs, -1)
            lines = tf.lookup.TextFileInitializer(str(words), tf.string, 0 - 2, tf.int64, 0 - 1)
            self.lines = tf.lookup.StaticHashTable(lines, -5)

        @tf.function
        def inner(self, x: Any) -> Any:
            return x @ self.weight

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def loops(self, x: Any) -> Any:
            def step(i: Any, y: Any) -> Any:
                y = tf.cond(tf.reduce_sum(y) > 0, lambda: self.inner(y), lambda: y @ self.other - 1.0)
                return i + 1, tf.tanh(y)

            y = tf.while_loop(lambda i, y: i < tf.cast(self.weight[0, 0], tf.int32) + 4, step, [0, x])[1]
            chosen = tf.switch_case(tf.shape(x)[0] % 3, [lambda: self.weight[0], lambda: self.other[1], lambda: y[0]])
            data = tf.data.Dataset.from_tensor_slices(tf.range(3)).map(
                lambda n: tf.cast(n, tf.float32) + self.weight[1, 1]
            )
            return {"y": y, "chosen": chosen, "sum": data.reduce(0.0, lambda a, b: a + b * self.other[0, 0])}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="ids")])
        def types(self, ids: Any) -> Any:
            found = {name: tf.identity(part) for name, part in self.parts.items()}
            found["gathered"] = tf.gather(self.rows, ids % 2)
            found["batched"] = tf.raw_ops.ResourceGather(
                resource=self.rows.handle, indices=tf.zeros([2, 1], tf.int32), dtype=tf.float32, batch_dims=1
            )
            found["nd"] = tf.gather_nd(self.rows, [[1, 2]])
            found["shape"] = tf.shape(self.rows.handle if False else self.rows)
            found["asked"] = tf.raw_ops.VariableShape(input=self.rows.handle, out_type=tf.int64)
            found["is_there"] = tf.raw_ops.VarIsInitializedOp(resource=self.rows.handle)
            return found

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def look(self, words: Any) -> Any:
            return {"ids": self.table.lookup(words), "lines": self.lines.lookup(words), "size": self.table.size()}

        @tf.function(input_signature=[])
        def counted(self) -> Any:
            return {"count": self.count.assign_add(1)}

    module = Module()
    signatures = {"loops": module.loops, "types": module.types, "look": module.look, "counted": module.counted}
    tf.saved_model.save(module, str(folder / "model"), signatures=signatures)
    return read_model(folder / "model")


@pytest.mark.tensorflow
def test_loops_branches_and_datasets(tf: ModuleType, everything: Model) -> None:
    made, report = frozen(everything, request_for(everything, "loops"))
    assert not variable_ops(made.graph) and len(report["variables"]) == 2
    for rows in (3, 4, 5):
        check_signature(tf, everything, made.graph, "loops", {"x": np.resize(X, (rows, 4)) - 0.1})


@pytest.mark.tensorflow
def test_types_and_gathers(tf: ModuleType, everything: Model) -> None:
    made, report = frozen(everything, request_for(everything, "types"))
    assert not variable_ops(made.graph) and len(report["variables"]) == 8
    check_signature(tf, everything, made.graph, "types", {"ids": np.array([0, 1, 3], np.int32)})


@pytest.mark.tensorflow
def test_tables_come_with_what_fills_them(tf: ModuleType, everything: Model) -> None:
    made, report = frozen(everything, request_for(everything, "look"))
    assert sorted(report["tables"].values()) == ["InitializeTableFromTextFileV2", "LookupTableImportV2"]
    assert not report["unfilled"]
    check_signature(tf, everything, made.graph, "look", {"words": WORDS}, report["initializer"])


def test_what_writes_is_refused(everything: Model) -> None:
    with pytest.raises(
        GraphError, match=r"'count' is written.* by AssignAddVariableOp '.*' in the function '.*counted"
    ):
        frozen(everything, request_for(everything, "counted"))
    made, report = frozen(everything, request_for(everything, "counted", "loops", keep=("count",)))
    assert report["kept"] == ["count"] and set(report["variables"]) == {"weight", "weight_1"}
    del made


@pytest.mark.tensorflow
def test_saved_model_keeps_signatures_tables_and_kept_variables(
    tf: ModuleType, everything: Model, tmp_path: Path
) -> None:
    request = request_for(everything, "loops", "look", "types", surroundings=True)
    made, report = frozen(everything, request)
    assert sorted(made.meta.signatures) == ["look", "loops", "types"] and not report["kept"]
    write_model(made, tmp_path / "frozen", "savedmodel")
    assert not (tmp_path / "frozen" / "variables").exists()
    assert run(["validate", str(tmp_path / "frozen")]) == 0
    for key, inputs in (("loops", {"x": X}), ("look", {"words": WORDS}), ("types", {"ids": np.array([1], np.int32)})):
        wanted = tf.saved_model.load(str(everything.folder)).signatures[key](
            **{k: tf.constant(v) for k, v in inputs.items()}
        )
        found = tf.saved_model.load(str(tmp_path / "frozen")).signatures[key](
            **{k: tf.constant(v) for k, v in inputs.items()}
        )
        for label in wanted:
            np.testing.assert_array_equal(found[label].numpy(), wanted[label].numpy())


@pytest.mark.tensorflow
def test_saved_model_with_a_variable_that_stays(tf: ModuleType, everything: Model, tmp_path: Path) -> None:
    request = request_for(everything, "counted", "loops", "look", keep=("count", "weight_1"), surroundings=True)
    made, report = frozen(everything, request)
    assert report["kept"] == ["count", "weight_1"]
    write_model(made, tmp_path / "frozen", "savedmodel")
    loaded, original = (tf.saved_model.load(str(path)) for path in (tmp_path / "frozen", everything.folder))
    for key, inputs in (("counted", {}), ("counted", {}), ("loops", {"x": tf.constant(X)})):
        wanted, found = original.signatures[key](**inputs), loaded.signatures[key](**inputs)
        for label in wanted:
            np.testing.assert_array_equal(found[label].numpy(), wanted[label].numpy())


# -- TensorFlow 1 -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["reference", "resource"])
def graph_v1(
    request: pytest.FixtureRequest, tf: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any]:
    """A training graph with partitioned variables, loops and branches of TensorFlow 1, and its checkpoint."""
    v1, folder = tf.compat.v1, tmp_path_factory.mktemp(request.param)
    use_resource = request.param == "resource"
    v1.disable_control_flow_v2()
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        with v1.variable_scope("net", use_resource=use_resource):
            split = v1.get_variable(
                "split",
                [4, 6],
                partitioner=v1.fixed_size_partitioner(3, axis=1),
                initializer=v1.random_normal_initializer(seed=1),
            )
            scale = v1.get_variable("scale", [], initializer=v1.constant_initializer(1.25))
            table = v1.get_variable("table", [5, 6], initializer=v1.random_normal_initializer(seed=2))
        y = x @ split.as_tensor()
        y = v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * scale + tf.gather(table, i)), [0, y])[1]
        y = v1.cond(tf.reduce_sum(x) > 0, lambda: y + scale, lambda: y - tf.reduce_sum(table))
        ready = (
            v1.is_variable_initialized(scale)
            if not use_resource
            else tf.raw_ops.VarIsInitializedOp(resource=scale.handle)
        )
        tf.identity(y, name="y")
        tf.identity(ready, name="ready")
        more = v1.assign_add(scale, 1.0)
        tf.identity(more if isinstance(more, tf.Tensor) else more.read_value(), name="more")
        saver = v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            wanted = session.run(["y:0", "ready:0"], {x: X}), session.run(["y:0", "ready:0"], {x: -X})
            saver.save(session, str(folder / "ckpt"))
    v1.enable_control_flow_v2()
    return folder / "ckpt.meta", wanted


@pytest.mark.tensorflow
def test_graph_of_tensorflow_1(tf: ModuleType, graph_v1: tuple[Path, Any]) -> None:
    path, wanted = graph_v1
    model = read_model(path)
    made, report = frozen(model, FreezeRequest(("y:0", "ready:0")))
    assert len(report["variables"]) == 5 and not variable_ops(made.graph)
    for sign, expected in zip((1, -1), wanted, strict=True):
        found = run_in_tensorflow(tf, made.graph, ["y:0", "ready:0"], {"x:0": sign * X})
        ours = run_ours(made.graph, ["y:0", "ready:0"], {"x:0": sign * X})
        perturbation.assert_close(made.graph, ["y:0", "ready:0"], {"x:0": sign * X}, [ours, found, expected])


def test_only_some_and_patterns(graph_v1: tuple[Path, Any]) -> None:
    model = read_model(graph_v1[0])
    made, report = frozen(model, FreezeRequest(("y:0",), only=("net/split*",)))
    assert sorted(report["variables"]) == [f"net/split/part_{i}" for i in range(3)]
    assert report["kept"] == ["net/scale", "net/table"]
    del made
    with pytest.raises(UsageError, match=r"--keep-variables.*no variable matches 'net/scal'; did you mean 'net/scale'"):
        frozen(model, FreezeRequest(("y:0",), keep=("net/scal",)))


def test_writing_is_named(graph_v1: tuple[Path, Any]) -> None:
    with pytest.raises(GraphError, match=r"the variable 'net/scale' is written.*--keep-variables 'net/scale'"):
        frozen(read_model(graph_v1[0]), FreezeRequest(("more:0",)))


def test_checkpoints_that_do_not_fit(graph_v1: tuple[Path, Any], tmp_path: Path) -> None:
    model = read_model(graph_v1[0])
    values = {
        "net/scale": np.float64(1),
        "net/table": np.zeros((5, 6), np.float32),
        "net/split": np.zeros((4, 6), np.float32),
    }
    number, three = "'net/scale' in the checkpoint", np.zeros(3, np.float32)
    missing: dict[str, Any] = {"net/scale": None, "net/scales": np.float32(1)}
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, rf"'net/scale' is of type float32, and {number} of float64"),
        ({"net/scale": three}, rf"'net/scale' has the shape \[\], and {number} \[3\]"),
        (missing, r"no value for the variable 'net/scale'; did you mean 'net/scales'"),
    ]
    for position, (change, message) in enumerate(cases):
        prefix = str(tmp_path / str(position))
        bundle.save(prefix, {k: v for k, v in {**values, **change}.items() if v is not None})
        with pytest.raises(GraphmillError, match=message):
            frozen(model, FreezeRequest(("y:0",)), prefix)
    with pytest.raises(UsageError, match=r"no checkpoint beside the graph; give one with --checkpoint"):
        freeze_model(model, None, FreezeRequest(("y:0",)))
