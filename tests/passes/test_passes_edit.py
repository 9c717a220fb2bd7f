"""Edits: names that follow, nodes in and out, signatures, functions, shapes; beside TensorFlow."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import models, tolerance
from tests.passes.graphs import F, random_dag, run_in_tensorflow, structure, variable
from toolkit.errors import GraphmillError
from toolkit.formats import tensor
from toolkit.formats.metagraph import to_proto
from toolkit.formats.model import read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo
from toolkit.graph.shape import Shape
from toolkit.passes.edit.apply import EditResult, apply_edits
from toolkit.passes.edit.table import EditsError, Step, kinds, parse_edits, schema

X, Y = np.float32([0.5, -1.0]), np.float32([2.0, 0.25])


def edited(meta: MetaGraph | Graph, text: str) -> EditResult:
    meta = MetaGraph(meta) if isinstance(meta, Graph) else meta
    return apply_edits(meta, parse_edits(text, "edits"))


def refusals(meta: MetaGraph | Graph, text: str) -> list[str]:
    with pytest.raises(EditsError) as caught:
        edited(meta, text)
    return [str(error) for error in caught.value.errors]


def test_the_list_that_the_help_shows() -> None:
    from toolkit.passes import edit

    shown = str(edit.__doc__).split("arguments below.\n\n")[1].split("\n\n")[0]
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2])})
    dropped = graph.add("Identity", "tower/Dropout", [x], attrs={"T": F})
    graph.add("Identity", "logits", [graph.add("Relu", "tower/relu", [dropped], attrs={"T": F})], attrs={"T": F})
    result = edited(graph, shown).meta
    assert [(node.name, node.op) for node in result.graph] == [
        ("x", "Placeholder"), ("model/relu", "Relu"), ("logits", "Identity"), ("probabilities", "Softmax"),
    ]  # fmt: skip
    assert result.graph.node("x").attr("shape") == Shape([8, 2])
    assert result.signatures["classify"].outputs["scores"].name == "probabilities:0"


# -- renaming --------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_renaming_there_and_back_gives_the_same_bytes(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_dag(rng)
    for node in rng.sample(graph.nodes, 6):
        node.attrs["_class"] = [f"loc:@{rng.choice(graph.nodes).name}"]
    meta = MetaGraph(graph)
    names = [node.name for node in graph]
    meta.signatures["s"] = Signature({"x": TensorInfo("x:0", F, Shape([2]))}, {})
    meta.collections["losses"] = [f"{rng.choice(names)}:0", rng.choice(names)]
    before = to_proto(meta).SerializeToString(deterministic=True)
    there: list[Step] = []
    back: list[Step] = []
    now = list(names)
    for _ in range(rng.randint(1, 6)):
        kind = kinds()["rename_nodes"]
        if rng.random() < 0.3:
            scope = f"s{rng.randint(0, 9)}"
            there.append(Step(kinds()["rename_scope"](scope="", to=scope)))  # type: ignore[call-arg]
            back.append(Step(kinds()["rename_scope"](scope=scope, to="")))  # type: ignore[call-arg]
            now = [f"{scope}/{name}" for name in now]
        else:
            position = rng.randrange(len(now))
            old, new = now[position], rng.choice(["", "t/"]) + f"m{rng.randint(0, 10**9)}"
            there.append(Step(kind(nodes=old, to=new)))  # type: ignore[call-arg]
            back.append(Step(kind(nodes=new, to=old)))  # type: ignore[call-arg]
            now[position] = new
    middle = apply_edits(meta, there)
    assert [node.name for node in middle.meta.graph] == now
    where = dict(zip(names, now, strict=True))
    assert middle.meta.signatures["s"].inputs["x"].name == f"{where['x']}:0"
    after = apply_edits(middle.meta, back[::-1]).meta
    assert to_proto(after).SerializeToString(deterministic=True) == before
    assert to_proto(apply_edits(meta, there + back[::-1]).meta).SerializeToString(deterministic=True) == before
    assert to_proto(meta).SerializeToString(deterministic=True) == before  # what came in is not changed


def test_two_nodes_exchange_their_names() -> None:
    graph = small()
    made = edited(
        graph, "- rename_nodes: {nodes: 're:^(h)|(y)$', to: '\\1\\2'}\n- rename_nodes: {nodes: h, to: t}"
    ).meta
    assert [node.name for node in made.graph] == ["x", "t", "pair", "y", "unused"]
    text = """
    - rename_nodes: {nodes: h, to: t}
    - rename_nodes: {nodes: y, to: h}
    - rename_nodes: {nodes: t, to: y}
    """
    made = edited(graph, text).meta
    assert [(node.name, node.op) for node in made.graph][1::2] == [("y", "Tanh"), ("h", "AddV2")]
    assert made.graph.node("pair").inputs[0].name == "y:0"


def small() -> Graph:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2])})
    h = graph.add("Tanh", "h", [x], attrs={"T": F})
    pair = graph.add("IdentityN", "pair", [h, x], attrs={"T": [F, F]})
    graph.add("AddV2", "y", [pair.output(0), pair.output(1)], attrs={"T": F})
    graph.add("Neg", "unused", [h], attrs={"T": F})
    return graph


def test_shared_resources_keep_their_name() -> None:
    """A queue without a shared name is found under its node's; another node shares it by that name."""
    graph = Graph()
    attrs = {"component_types": [F], "shapes": [Shape([])], "capacity": 3, "container": "", "shared_name": ""}
    graph.add("FIFOQueueV2", "q", attrs=attrs)
    graph.add("FIFOQueueV2", "same", attrs={**attrs, "shared_name": "q"})
    made = edited(graph, "- rename_nodes: {nodes: q, to: r}").meta.graph
    assert made.node("r").attr("shared_name") == b"q"


@pytest.mark.tensorflow
def test_training_graph_trains_alike_under_other_names(tf: Any, tmp_path: Path) -> None:
    """Variables, savers, trainable variables and the train op are found by TensorFlow, and the checkpoint fits."""
    built = models.lenet_ref()
    model = read_model(built.path)
    result = edited(
        model.meta,
        "- rename_nodes: {nodes: 'conv1/*', to: 'first/*'}\n- rename_scope: {scope: '', to: net}\n- clear_devices",
    )
    write_model(model.with_meta(result.meta), tmp_path / "o.meta")
    rng = np.random.default_rng(1)
    images, labels = rng.normal(size=(4, 14, 14, 1)).astype(np.float32), np.int64([1, 2, 3, 4])
    found: list[Any] = []
    v1 = tf.compat.v1
    for path, prefix in ((built.path, ""), (tmp_path / "o.meta", "net/")):
        with tf.Graph().as_default(), v1.Session() as session:
            saver = v1.train.import_meta_graph(str(path))
            saver.restore(session, str(built.file(built.info["prefix"])))
            assert len(v1.trainable_variables()) == 8
            feeds = {f"{prefix}{built.input}": images, f"{prefix}{built.info['labels']}": labels}
            for _ in range(3):
                session.run(f"{prefix}{built.info['train']}", feeds)
            found.append(session.run(f"{prefix}{built.info['loss']}", feeds))
            kept = saver.save(session, str(tmp_path / "again"))
            saver.restore(session, kept)
    assert found[0] == found[1]


@pytest.mark.tensorflow
def test_control_flow_contexts_follow(tf: Any, tmp_path: Path) -> None:
    """Gradients are made inside of the renamed loop, which needs its context to be there under the new names."""
    v1 = tf.compat.v1
    with v1.Graph().as_default():
        v1.disable_control_flow_v2()
        x = v1.placeholder("float32", [2], name="x")
        n = tf.identity(v1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v) * x), [0, x], name="loop")[1])
        tf.identity(v1.cond(tf.reduce_sum(n) > 0, lambda: n * 2.0, lambda: n - 1.0, name="choice"), name="y")
        v1.train.export_meta_graph(str(tmp_path / "a.meta"))
    model = read_model(tmp_path / "a.meta")
    assert {"while_context", "cond_context"} <= set(model.meta.collections)
    result = edited(model.meta, "- rename_scope: {scope: loop, to: a/b}\n- rename_scope: {scope: choice, to: c}")
    write_model(model.with_meta(result.meta), tmp_path / "b.meta")
    found: list[Any] = []
    for name in ("a", "b"):
        with v1.Graph().as_default() as graph, v1.Session() as session:
            v1.train.import_meta_graph(str(tmp_path / f"{name}.meta"))
            y, x = graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0")
            gradient = v1.gradients(y, x)[0]
            found.append(session.run([y, gradient], {x: X}))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.tensorflow
def test_saved_model_is_loaded_under_other_names(tf: Any, tmp_path: Path) -> None:
    built = models.saved_model_tf2()
    model = read_model(built.path)
    result = edited(
        model.meta,
        """
        - rename_function: {function: '__inference_*', to: 'f_*'}
        - rename_scope: {scope: '', to: net}
        - rename_signature: {key: power, to: pow}
        - rename_signature_key: {signature: serving_default, key: scores, to: probs}
        """,
    )
    assert not result.remaining
    write_model(model.with_meta(result.meta), tmp_path / "o")
    ours = tf.saved_model.load(str(tmp_path / "o"))
    arrays = built.arrays()
    served = ours.signatures["serving_default"](x=arrays["x"])
    np.testing.assert_array_equal(served["probs"], arrays["scores"])
    np.testing.assert_array_equal(ours.signatures["pow"](n=5, x=arrays["base"])["result"], arrays["power"])
    np.testing.assert_array_equal(ours.serve(arrays["x"])["hidden"], arrays["hidden"])
    assert ours.vocabulary()["text"].numpy() == b"one\ntwo\n"


# -- nodes -----------------------------------------------------------------------------------------------


@pytest.mark.tensorflow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_inserted_and_removed_again(tf: Any, seed: int) -> None:
    """Identities anywhere change no number; taken out again they leave the graph as it was."""
    rng = random.Random(seed)
    graph = random_dag(rng, count=20)
    steps: list[Step] = []
    names: list[str] = []
    for index in range(5):
        name = f"probe{index}"
        names.append(name)
        takers = [node for node in graph if node.inputs]
        if rng.random() < 0.5:
            node = rng.choice(takers)
            position = rng.randrange(len(node.inputs))
            edit: Any = kinds()["insert_before"](node=node.name, input=position, op="Identity", called=name)  # type: ignore[call-arg]
        else:
            source = rng.choice([node for node in graph if node.op != "NoOp"])
            edit = kinds()["insert_after"](tensor=f"{source.name}:0", op="Identity", called=name)  # type: ignore[call-arg]
        steps.append(Step(edit))
    middle = apply_edits(MetaGraph(graph), steps).meta
    assert len(middle.graph) == len(graph) + 5
    fetches = [f"{node.name}:0" for node in rng.sample([node for node in graph if node.op != "NoOp"], 3)]
    feeds = {"x:0": X, "y:0": Y}
    expected = run_in_tensorflow(tf, graph, fetches, feeds)
    np.testing.assert_array_equal(run_in_tensorflow(tf, middle.graph, fetches, feeds), expected)
    after = apply_edits(middle, [Step(kinds()["remove_nodes"](nodes=tuple(names)))]).meta  # type: ignore[call-arg]
    assert structure(after.graph) == structure(graph)


@pytest.mark.tensorflow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_identities_taken_out_change_no_number(tf: Any, seed: int) -> None:
    rng = random.Random(seed)
    graph = random_dag(rng, count=40)
    identities = tuple(node.name for node in graph if node.op in ("Identity", "IdentityN"))
    fetches = [f"{node.name}:0" for node in graph if node.op not in ("NoOp", "Identity", "IdentityN")][-5:]
    feeds = {"x:0": X, "y:0": Y}
    made = apply_edits(MetaGraph(graph), [Step(kinds()["remove_nodes"](nodes=identities))]).meta.graph  # type: ignore[call-arg]
    assert not any(name in made for name in identities)
    expected = run_in_tensorflow(tf, graph, fetches, feeds)
    np.testing.assert_array_equal(run_in_tensorflow(tf, made, fetches, feeds), expected)


def test_removal_keeps_the_order_of_control_edges() -> None:
    graph = Graph()
    var, _, assign = variable(graph, "v")
    read = graph.add("Identity", "read", [var], control_inputs=[assign], attrs={"T": F})
    graph.add("Neg", "y", [read], attrs={"T": F})
    graph.add("NoOp", "done", control_inputs=[read])
    made = edited(graph, "- remove_nodes: {nodes: read}").meta.graph
    assert made.node("y").input_refs() == ["v", "^v/Assign"]
    assert made.node("done").input_refs() == ["^v", "^v/Assign"]


def test_what_signatures_name_follows_a_removed_node() -> None:
    meta = MetaGraph(small())
    info = TensorInfo("pair:1", F, Shape([None, 2]))
    other = TensorInfo("y:0", F, Shape([None, 2]))
    meta.signatures["s"] = Signature({"x": TensorInfo("x:0", F, Shape([None, 2]))}, {"p": info, "y": other})
    meta.collections["losses"] = ["pair:0", "unused:0"]
    made = edited(meta, "- remove_nodes: {nodes: pair}\n- remove_nodes: {nodes: unused, cascade: true}")
    assert made.meta.signatures["s"].outputs["p"].name == "x:0"
    assert made.meta.collections["losses"] == ["h:0"]
    assert made.notes == ["dropped 1 entry of the collection 'losses'"]
    made = edited(meta, "- remove_nodes: {nodes: h, cascade: true}")
    assert [node.name for node in made.meta.graph] == ["x"] and not made.meta.signatures


def test_a_new_node_may_have_the_name_of_a_removed_one() -> None:
    meta = MetaGraph(small())
    meta.signatures["s"] = Signature({}, {"u": TensorInfo("unused:0", F, Shape([None, 2]))})
    text = """
    - remove_nodes: {nodes: unused, cascade: true}
    - add_node: {op: Abs, called: unused, inputs: x}
    """
    made = edited(meta, text)
    assert made.meta.graph.node("unused").op == "Abs" and not made.meta.signatures
    made = edited(meta, "- remove_nodes: {nodes: unused, cascade: true}\n- rename_nodes: {nodes: y, to: unused}")
    assert made.meta.graph.node("unused").op == "AddV2" and not made.meta.signatures


@pytest.mark.tensorflow
def test_new_nodes_have_the_attributes_that_inputs_decide(tf: Any) -> None:
    text = """
    - add_node: {op: ConcatV2, called: both, inputs: [h, x, 1]}
    - add_node: {op: Pack, called: packed, inputs: [h, x], attrs: {axis: 1}}
    - insert_after: {tensor: h, op: Mul, called: twice, inputs: [$, 2.0]}
    - insert_before: {node: y, input: 1, op: Sub, inputs: [$, [0.5, 1.5]]}
    - replace_node: {node: unused, op: Squeeze, inputs: [packed], attrs: {squeeze_dims: []}}
    - reconnect: {node: pair, input: 1, to: h}
    - redirect: {tensor: both, to: x}
    """
    text = text.replace("    - redirect: {tensor: both, to: x}\n", "")
    made = edited(small(), text).meta.graph
    x = np.float32([[0.5, -1.0], [2.0, 3.0]])
    h = np.tanh(x)
    both, packed, y = run_in_tensorflow(tf, made, ["both:0", "packed:0", "y:0"], {"x:0": x})
    np.testing.assert_allclose(both, np.concatenate([2 * h, x], 1), rtol=tolerance.gamma(16))
    np.testing.assert_allclose(packed, np.stack([2 * h, x], 1), rtol=tolerance.gamma(16))
    np.testing.assert_allclose(y, 2 * h + (h - np.float32([0.5, 1.5])), rtol=tolerance.gamma(16))
    assert made.node("pair").input_refs() == ["twice", "h"] and made.node("both").attr("N") == 2


@pytest.mark.tensorflow
def test_two_graphs_become_one(tf: Any, tmp_path: Path) -> None:
    encoder, decoder = Graph(), Graph()
    x = encoder.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    encoder.add("Tanh", "out", [x], attrs={"T": F})
    x = decoder.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    decoder.add("Neg", "out", [x], attrs={"T": F})
    write_model(read_from(decoder, tmp_path / "d.pb"), tmp_path / "d.pb")
    file = tmp_path / "d.pb"
    text = f"- merge: {{file: {file}, prefix: d, connect: {{'d/x': 'out:0'}}}}"
    made = edited(encoder, text).meta.graph
    assert [node.name for node in made] == ["x", "out", "d/out"]
    np.testing.assert_allclose(
        run_in_tensorflow(tf, made, ["d/out:0"], {"x:0": X})[0], -np.tanh(X), rtol=tolerance.gamma(16)
    )
    assert refusals(encoder, f"- merge: {{file: {file}}}") == [
        "edits:1:3: 'x' and 1 other node are in both graphs; give a prefix"
    ]
    assert "there is no node 'd/z'" in refusals(encoder, text.replace("d/x", "d/z"))[0]


def read_from(graph: Graph, path: Path) -> Any:
    from toolkit.formats.model import from_graph

    return from_graph(graph, str(path))


# -- shapes ----------------------------------------------------------------------------------------------


def baked(size: int, sizes: list[int]) -> MetaGraph:
    """[size, 4, 6] -> Reshape to `sizes` -> product with [12, 5] or the like."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([size, 4, 6])})
    value = tensor.from_array(np.int32(sizes))
    shape = graph.add("Const", "shape", attrs={"dtype": dtypes.int32, "value": value})
    y = graph.add("Reshape", "y", [x, shape], attrs={"T": F, "Tshape": dtypes.int32, "_output_shapes": [Shape(sizes)]})
    meta = MetaGraph(graph)
    meta.signatures["s"] = Signature(
        {"x": TensorInfo("x:0", F, Shape([size, 4, 6]))}, {"y": TensorInfo("y:0", F, Shape([abs(s) for s in sizes]))}
    )
    del y
    return meta


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("size", "sizes", "new", "expected"),
    [
        (3, [3, 24], 5, [5, 24]),
        (3, [3, 24], None, [-1, 24]),
        (1, [1, 24], 5, [5, 24]),
        (1, [1, 2, 12], None, [-1, 2, 12]),
        (3, [3, -1], 5, [5, -1]),
        (3, [-1, 24], 5, [-1, 24]),
    ],
)
def test_batch_size_in_a_reshape(
    tf: Any, size: int, sizes: list[int], new: int | None, expected: list[int]
) -> None:  # fmt: skip
    made = edited(baked(size, sizes), f"- set_batch_size: {{size: {'null' if new is None else new}}}").meta
    assert tensor.to_array(made.graph.node("shape").attr("value")).tolist() == expected
    count = new or 7
    x = np.arange(count * 24, dtype=np.float32).reshape(count, 4, 6)
    [y] = run_in_tensorflow(tf, made.graph, ["y:0"], {"x:0": x})
    assert y.tolist() == x.reshape(count, *y.shape[1:]).tolist()
    assert made.signatures["s"].inputs["x"].shape == Shape([new, 4, 6])
    assert made.signatures["s"].outputs["y"].shape[0] == new
    assert made.graph.node("y").attr("_output_shapes")[0][0] == new


@pytest.mark.tensorflow
def test_inputs_with_their_channels_first(tf: Any) -> None:
    """There and back again; a graph that computes with its input as it was."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 4, 6, 3])})
    graph.add("Placeholder", "rows", attrs={"dtype": F, "shape": Shape([None, 3])})
    weights = tensor.from_array(np.arange(12, dtype=np.float32).reshape(2, 2, 3, 1))
    w = graph.add("Const", "w", attrs={"dtype": F, "value": weights})
    attrs = {"T": F, "strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 1, 1, 1]}
    graph.add("Conv2D", "y", [x.output(), w.output()], attrs=attrs)
    infos = {"x": TensorInfo("x:0", F, Shape([None, 4, 6, 3]))}
    meta = MetaGraph(graph, {"s": Signature(infos, {"y": TensorInfo("y:0", F, Shape([None, 4, 6, 1]))})})
    result = edited(meta, "- set_input_layout: {layout: NCHW}")
    made = result.meta
    assert result.done[0]["did"] == "1 input in NCHW"
    assert made.graph.node("x").attr("shape") == made.signatures["s"].inputs["x"].shape == Shape([None, 3, 4, 6])
    assert made.signatures["s"].outputs["y"].shape == Shape([None, 4, 6, 1])
    value = np.random.default_rng(1).normal(size=(2, 4, 6, 3)).astype(np.float32)
    [wanted] = run_in_tensorflow(tf, graph, ["y:0"], {"x:0": value})
    [found] = run_in_tensorflow(tf, made.graph, ["y:0"], {"x:0": value.transpose(0, 3, 1, 2)})
    np.testing.assert_array_equal(found, wanted)
    back = edited(made, "- set_input_layout: {layout: NHWC, nodes: x}").meta
    assert back.signatures["s"].inputs["x"].shape == Shape([None, 4, 6, 3])
    [again] = run_in_tensorflow(tf, back.graph, ["y:0"], {"x:0": value})
    np.testing.assert_array_equal(again, wanted)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{layout: NCHW}", "no placeholder has 4 dimensions; set_shape gives one a shape"),
        ("{layout: CHWN}", "'CHWN' is no layout; expected NCHW, NHWC, NCDHW, NDHWC, NCW, NWC"),
        ("{layout: NCHW, nodes: x}", "node 'x': its shape [?,2] has not the 4 sizes of NHWC"),
        ("{layout: NCHW, nodes: h}", "it is a Tanh, not a placeholder"),
    ],
)
def test_layouts_that_do_not_fit(text: str, told: str) -> None:
    [message] = refusals(small(), f"- set_input_layout: {text}")
    assert told in message


def test_batch_size_that_is_not_proven_stays_and_is_told() -> None:
    result = edited(baked(1, [1, -1]), "- set_batch_size: {size: 5}")
    assert tensor.to_array(result.meta.graph.node("shape").attr("value")).tolist() == [1, -1]
    assert result.done[0]["did"] == "1 input of batch size 5; 'shape' may say the batch size, and stay"


def test_a_batch_size_that_does_not_fit_is_refused() -> None:
    graph = small()
    graph.add("EnsureShape", "e", [graph.node("x")], attrs={"T": F, "shape": Shape([3, 2])})
    assert len(edited(graph, "- set_batch_size: {size: 3}").done) == 1
    [message] = refusals(graph, "- set_batch_size: {size: 4}")
    assert message.startswith("node 'e': the edited graph is not sound")


@pytest.mark.tensorflow
def test_batch_size_of_a_saved_model(tf: Any, tmp_path: Path) -> None:
    """Functions, their arguments and what the object graph says of them follow."""
    module = tf.Module()
    module.weight = tf.Variable(np.ones((12, 3), np.float32))

    @tf.function(input_signature=[tf.TensorSpec([2, 3, 4], "float32", name="x")])
    def serve(x: Any) -> Any:
        return {"y": tf.reshape(x, [2, 12]) @ module.weight}

    module.serve = serve
    tf.saved_model.save(module, str(tmp_path / "a"), signatures=serve)
    model = read_model(tmp_path / "a")
    result = edited(model.meta, "- set_batch_size: {size: 5}")
    write_model(model.with_meta(result.meta), tmp_path / "b")
    loaded = tf.saved_model.load(str(tmp_path / "b"))
    x = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
    for call in (loaded.signatures["serving_default"], loaded.serve):
        np.testing.assert_allclose(call(x=x)["y"], x.reshape(5, 12) @ np.ones((12, 3)), rtol=tolerance.gamma(16))
    assert loaded.signatures["serving_default"].structured_outputs["y"].shape == [5, 3]


# -- the rest --------------------------------------------------------------------------------------------


def test_properties_in_the_graph_and_in_functions(tmp_path: Path) -> None:
    from toolkit import client as gm

    del gm
    graph = small()
    text = """
    - set_device: {device: "/job:ps/task:0", nodes: [h, y]}
    - clear_devices: {nodes: h}
    - rename_op: {op: Tanh, to: Sigmoid}
    - set_attr: {nodes: y, attr: _note, value: 3}
    - set_attr: {where: "op = Neg", attr: T, value: float32}
    - rename_attr: {attr: _note, to: _remark}
    - set_attr: {nodes: x, attr: shape, value: [null, 2]}
    """
    made = edited(graph, text).meta.graph
    assert [node.device for node in made] == ["", "", "", "/job:ps/task:0", ""]
    assert made.node("h").op == "Sigmoid" and made.node("y").attrs["_remark"] == 3
    assert edited(made, "- remove_attr: {attr: _remark}").meta.graph.node("y").attrs.keys() == {"T"}


def test_constants() -> None:
    meta = baked(3, [3, 24])
    made = edited(meta, "- set_constant: {node: shape, value: [3, 2, 12]}\n- remove_attr: {attr: _output_shapes}").meta
    assert tensor.to_array(made.graph.node("shape").attr("value")).tolist() == [3, 2, 12]
    text = """
    - set_constant: {node: shape, value: 6}
    - remove_attr: {attr: _output_shapes}
    - set_shape: {nodes: x, shape: [36]}
    """
    made = edited(meta, text).meta
    assert tensor.to_array(made.graph.node("shape").attr("value")).tolist() == [6, 6]


def test_signatures_and_collections() -> None:
    text = """
    - add_signature: {key: a, inputs: {x: x}, outputs: {y: "y:0", p: "pair:1"}}
    - add_signature: {key: b, outputs: {u: unused}, method: m}
    - set_default_signature: {key: a}
    - set_default_signature: {key: b, old: first}
    - set_signature_method: {key: first, method: tensorflow/serving/classify}
    - add_to_collection: {collection: losses, items: ["y:0", unused]}
    - remove_from_collection: {collection: losses, items: y}
    - insert_after: {tensor: unused, op: Softmax, called: soft, outputs: true}
    """
    made = edited(small(), text).meta
    assert list(made.signatures) == ["first", "serving_default"]
    assert made.signatures["first"].output_tensors() == {"y": "y:0", "p": "pair:1"}
    assert made.signatures["first"].inputs["x"].shape == Shape([None, 2])
    assert made.signatures["serving_default"].output_tensors() == {"u": "soft:0"}
    assert made.collections["losses"] == ["unused"]
    assert not edited(made, "- remove_signature: {key: '*'}").meta.signatures


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- rename_nodes: {nodes: hh, to: b}", "edits:1:3: no node matches 'hh'"),
        ("- rename_nodes: {nodes: h, to: x}", "'h' cannot be called 'x': another node is"),
        ("- rename_nodes: {nodes: h, to: 'a b'}", "'h' cannot be called 'a b': a name has"),
        ("- rename_nodes: {nodes: 're:(', to: b}", "is not a usable expression"),
        ("- rename_scope: {scope: tower, to: b}", "nothing is in a scope 'tower'"),
        ("- rename_op: {op: Tann, to: Sigmoid}", "no node meant is of the op 'Tann'; did you mean 'Tanh'?"),
        ("- rename_op: {op: Tanh, to: Sigmoidd}", "the edited graph is not sound"),
        ("- set_attr: {nodes: h, attr: TT, value: 1}", "Tanh has no attribute 'TT'"),
        ("- set_attr: {nodes: unused, attr: T, value: float64}", "the edited graph is not sound"),
        ("- set_device: {device: /job:a/jub:b}", "jub"),
        ("- set_shape: {nodes: h, shape: [2]}", "it is a Tanh, not a placeholder"),
        ("- set_constant: {node: h, value: 1}", "it is a Tanh, not a constant"),
        ("- add_node: {op: Tanh, called: h, inputs: x}", "there is a node 'h' already"),
        ("- add_node: {op: Tanh, called: k, inputs: [x, x]}", "Tanh takes 1 input(s) (x); 2 are given"),
        ("- add_node: {op: Cast, called: k, inputs: [x]}", "Cast needs the attribute 'DstT' (type)"),
        ("- insert_after: {tensor: 'h:1', op: Tanh}", "there is no tensor 'h:1'"),
        ("- insert_before: {node: h, input: 1, op: Tanh}", "Tanh 'h' has 1 input; there is no 1"),
        ("- replace_node: {node: h, op: AddV2}", "AddV2 takes 2 input(s)"),
        ("- remove_nodes: {nodes: x}", "'h' takes 'x:0', and Placeholder has no input of that type"),
        ("- reconnect: {node: h, to: y}", "the graph has a cycle"),
        ("- redirect: {tensor: y, to: x}", "nothing takes 'y:0'"),
        ("- add_control: {nodes: h, on: h}", "'h' cannot wait for itself"),
        ("- remove_control: {nodes: h}", "none of these nodes waits"),
        ("- add_signature: {key: a, outputs: {y: z}}", "there is no node 'z'"),
        ("- rename_signature: {key: a, to: b}", "there is no signature 'a'"),
        ("- remove_from_collection: {collection: a}", "there is no collection 'a'"),
        ("- add_to_collection: {collection: a, items: [z]}", "there is no node 'z'"),
        ("- rename_function: {function: f, to: g}", "no function matches 'f'"),
        ("- merge: {file: /nowhere.pb}", "/nowhere.pb"),
        ("- set_batch_size: {size: 3, nodes: h}", "it is a Tanh, not a placeholder"),
    ],
)
def test_refused(text: str, message: str) -> None:
    [said] = refusals(small(), text)
    assert message in said and "\n" not in said


def test_all_mistakes_are_told_with_their_place() -> None:
    text = """- rename_nodez: {nodes: a, to: b}
- rename_nodes: {nodes: [a],
                 too: b}
- set_batch_size: {size: 0}
- clear_devices
- 7
"""
    assert [said.partition("; ")[0] for said in refusals(small(), text)] == [
        "edits:1:3: there is no kind of edit 'rename_nodez'",
        "edits:2:18: [1].rename_nodes.nodes: expected text, found a list",
        "edits:3:18: [1].rename_nodes: unknown key 'too'",
        "edits:2:3: [1].rename_nodes: rename_nodes lacks 'to' (the new name",
        "edits:4:20: [2].set_batch_size.size: expected at least 1, found 0",
        "edits:6:3: there is no kind of edit '7' (graphmill edit --kinds lists them)",
    ]
    assert refusals(small(), "- rename: {nodes: h, to: b}") == [
        "edits:1:3: there is no kind of edit 'rename'; what --rename makes is 'rename_nodes'"
    ]
    [said] = refusals(small(), "- kind: rename_nodes\n  nodes: h")
    assert "expected one key, the kind of edit (rename_nodes: {nodes: a, to: b}); found 'kind', 'nodes'" in said
    two = "- rename_nodes: {nodes: q, to: b}\n- remove_nodes: {nodes: h}\n- set_device: {device: 'x'}"
    assert [said[:10] for said in refusals(small(), two)] == ["edits:1:3:", "edits:3:3:"]
    assert refusals(small(), "- [") == ["edits:1: not valid YAML: did not find expected node content"]
    assert "is empty" in refusals(small(), "")[0]


def test_what_was_wrong_before_does_not_hinder() -> None:
    graph = small()
    graph.add("Mystery", "m", [graph.node("x")])
    result = edited(graph, "- rename_nodes: {nodes: h, to: k}")
    assert result.remaining and "Mystery" in result.remaining[0]
    assert not edited(
        graph, "- rename_op: {op: Mystery, to: Neg}\n- set_attr: {nodes: m, attr: T, value: float32}"
    ).remaining


def test_the_schema_describes_every_kind() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    good = [
        {"rename_nodes": {"nodes": "a", "to": "b"}},
        "clear_devices",
        {"set_shape": {"nodes": ["x"], "shape": [None, 2]}},
    ]
    jsonschema.validate(good, made)
    for bad in ([], [{"rename_nodes": {"nodes": "a"}}], ["rename_nodes"], [{"set_batch_size": {"size": 0}}]):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, made)


def test_kinds_are_edits() -> None:
    for name, kind in kinds().items():
        assert kind.name == name and kind.__doc__ and callable(kind.apply)


def test_errors_are_ours() -> None:
    with pytest.raises(GraphmillError):
        edited(small(), "- rename_nodes: {nodes: 'a*', to: 'b**'}")
