"""Lists of edits: what they may say, what is refused and how; properties, constants, signatures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.passes.edits import baked, edited, refusals, small
from tests.passes.graphs import F
from toolkit.errors import GraphmillError
from toolkit.formats.arrays import tensor
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.passes.edit.table import kinds, schema


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
