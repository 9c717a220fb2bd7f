"""Functions in specs: what they take in, what calls them, and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.client.specs.test_spec_language import build, mistakes, values

FUNCTIONS = """
    inputs:
      x: {shape: [null, 2]}
    variables:
      w: {value: [[1.0, 2.0], [3.0, 4.0]]}
    functions:
      scaled:
        inputs: {v: {shape: [null, 2]}, factor: {}}
        nodes:
          - {layer: multiply, input: [v, factor]}
      both:
        inputs: {v: {shape: [null, 2]}}
        nodes:
          - {call: scaled, name: two, inputs: [v, 2.0]}
          - {op: MatMul, name: product, inputs: [two, w]}
        outputs: {first: two, second: product}
      noise:
        nodes:
          - {op: RandomStandardNormal, inputs: [[2]], attrs: {dtype: float32}}
    nodes:
"""


def with_nodes(*entries: str) -> str:
    return FUNCTIONS + "".join(f"      - {entry}\n" for entry in entries)


def test_calls_compute_what_functions_say() -> None:
    meta = build(with_nodes(
        "{call: both, inputs: {v: x}}",
        "{call: scaled, name: again, inputs: [both/second, 10.0]}",
        "{layer: tanh, name: last}",
    ))  # fmt: skip
    x = np.array([[1.0, 2.0]], np.float32)
    found = values(meta, ["both/first", "both/second", "again", "last"], {"x": x})
    np.testing.assert_array_equal(found[0], [[2.0, 4.0]])
    np.testing.assert_array_equal(found[1], [[14.0, 20.0]])
    np.testing.assert_array_equal(found[2], [[140.0, 200.0]])
    np.testing.assert_array_equal(found[3], [[1.0, 1.0]])
    assert meta.graph.node("both/call").op == "PartitionedCall"
    assert list(meta.graph.library) == ["scaled", "both", "noise"]


def test_functions_with_effects_are_called_as_such() -> None:
    meta = build(with_nodes("{call: noise}"))
    assert meta.graph.node("noise/call").op == "StatefulPartitionedCall"
    assert values(meta, ["noise"])[0].shape == (2,)


def test_variables_that_a_function_makes_are_the_graphs() -> None:
    meta = build("""
        inputs:
          x: {shape: [null, 2]}
        functions:
          layer:
            inputs: {v: {shape: [null, 2]}}
            nodes: [{layer: dense, name: d, units: 3, kernel_initializer: ones}]
        nodes:
          - {call: layer, name: one, inputs: [x]}
          - {call: layer, name: two, inputs: [x]}
        loss: {type: mean_squared_error, labels: one, predictions: two}
    """)
    assert meta.graph.node("d/kernel").op == "VariableV2"
    one, two = values(meta, ["one", "two"], {"x": np.ones((1, 2), np.float32)})
    np.testing.assert_array_equal(one, [[2.0, 2.0, 2.0]])
    np.testing.assert_array_equal(one, two)


def test_ops_call_functions_by_name() -> None:
    text = with_nodes(
        "{op: Greater, name: more, inputs: [{const: 2.0}, 1.0]}",
        "{op: StatelessIf, name: chosen, inputs: [more, [x, 3.0]], "
        "attrs: {then_branch: scaled, else_branch: THEN, Tout: [float32]}}",
    )
    x = np.array([[1.0, 2.0]], np.float32)
    np.testing.assert_array_equal(values(build(text.replace("THEN", "scaled")), ["chosen"], {"x": x})[0], x * 3)
    [error] = mistakes(text.replace("THEN", "scalde"))
    assert error.endswith("attrs.else_branch: there is no function 'scalde'; did you mean 'scaled'?")
    [error] = mistakes(text.replace("THEN", "both"))
    assert error.endswith("the function 'both' uses w, which an op does not hand on: make it an input of both")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{call: scale, inputs: [x, 1.0]}", "nodes[0].call: there is no function 'scale'; did you mean 'scaled'?"),
        ("{call: scaled, inputs: [x]}", "nodes[0].inputs: 'scaled' is called without its input 'factor'"),
        ("{call: scaled}", "nodes[0]: 'scaled' is called without its input 'v'"),
        ("{call: scaled, inputs: [x, 1.0, 2.0]}", "nodes[0].inputs: 'scaled' takes 2 input(s), not 3"),
        ("{call: scaled, inputs: {v: x, by: 1.0}}", "nodes[0].inputs: unknown key 'by'"),
        (
            "{call: scaled, inputs: [x, {const: 1, dtype: int32}]}",
            "nodes[0].inputs[1]: 'factor' is float32; 'Const:0' is int32",
        ),
        ("{call: scaled, inputs: [{const: [1.0]}, 1.0]}", "nodes[0].inputs[0]: 'v' has shape [?,2]; 'Const:0' has [1]"),
        ("{call: scaled, inputs: [y, 1.0]}", "nodes[0].inputs[0]: nothing is named 'y'"),
    ],
)
def test_mistakes_of_calls(entry: str, expected: str) -> None:
    [error] = mistakes(with_nodes(entry))
    assert expected in error


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("f: {nodes: [{layer: rleu}]}", "functions.f.nodes[0].layer: 'rleu' is unknown; did you mean 'relu'"),
        ("f: {nodes: []}", "functions.f: it makes nothing: give nodes, output or outputs"),
        ("f: {output: x, outputs: {a: x}}", "functions.f: give either output or outputs, not both"),
        ("'f g': {output: x}", "'f g' is no name of a function: a letter, then letters, digits, _ . - or /"),
        ("MatMul: {output: x}", "an op is named 'MatMul'; call the function otherwise"),
        ("f: {inputs: {a: {dtyp: int32}}, output: a}", "unknown key 'dtyp'; did you mean 'dtype'?"),
        ("f: {inputs: {a: {}}, nodes: [{call: f, inputs: [a]}]}", "nodes[0].call: a function cannot call itself"),
    ],
)  # fmt: skip
def test_mistakes_of_functions(function: str, expected: str) -> None:
    text: Any = f"inputs: {{x: {{}}}}\nfunctions:\n  {function}\nnodes:\n  - {{layer: tanh}}\n"
    [error] = mistakes(text)
    assert expected in error


def test_what_follows_from_a_function_that_failed_is_not_told() -> None:
    [error] = mistakes("""
        inputs: {x: {shape: [2]}}
        functions:
          f: {inputs: {v: {}}, nodes: [{layer: rleu}]}
        nodes:
          - {call: f, inputs: [x]}
          - {layer: tanh, name: t}
          - {op: StatelessIf, inputs: [true, [x]], attrs: {then_branch: f, else_branch: f, Tout: [float32]}}
    """)
    assert "'rleu' is unknown" in error
