"""Specs: parameters, includes, repetition, branches and loops, rules of devices; all mistakes at once; the schema."""

# ruff: noqa: E501  (the tables read better with one case in a line)

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator

from tests import tolerance
from toolkit.client.spec import build_spec, build_text
from toolkit.client.spec.document import schema
from toolkit.errors import GraphmillError, MultipleMistakesError, UsageError
from toolkit.formats.models.model import from_meta_graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.runtime.jobs.job import run_model
from toolkit.runtime.jobs.options import RunOptions


def build(text: str, **parameters: str) -> MetaGraph:
    return build_text(textwrap.dedent(text), "s.yaml", parameters=parameters)


def values(meta: MetaGraph, fetches: list[str], feeds: dict[str, Any] | None = None) -> list[Any]:
    options = RunOptions(feeds=feeds or {}, fetches=fetches, init="init_op" in meta.collections)
    return list(run_model(from_meta_graph(meta), options, log=lambda line: None).outputs.values())


def mistakes(text: str, folder: Path = Path()) -> list[str]:
    with pytest.raises(GraphmillError) as caught:
        build_text(textwrap.dedent(text), "s.yaml", folder)
    error = caught.value
    return [str(each) for each in error.errors] if isinstance(error, MultipleMistakesError) else [str(error)]


# -- parameters -------------------------------------------------------------------------------------------------

STACK = """
    parameters:
      units: 4
      rate: 0.5
      act: {type: text, default: relu, choices: [relu, tanh]}
      depth: {type: integer, default: 2, minimum: 1, maximum: 5}
      sizes: [3, 5]
      bias: true
    inputs:
      x: {shape: [null, "${units}"]}
    nodes:
      - repeat: ${depth}
        as: i
        nodes:
          - {layer: dense, name: "hidden${i}", units: "${units * (i + 1)}", activation: "${act}", use_bias: "${bias}"}
      - repeat: ${sizes}
        as: n
        nodes:
          - {layer: dense, name: "wide_${n}", units: "${n}"}
      - {layer: scale, name: last, factor: "${rate / 2}"}
      - {op: Const, name: text, attrs: {dtype: string, value: "$${units} is ${units}"}}
"""


def test_parameters_have_the_types_of_their_defaults() -> None:
    graph = build(STACK).graph
    assert graph.node("hidden0/kernel").attr("shape").dims == (4, 4)
    assert graph.node("hidden1/kernel").attr("shape").dims == (4, 8)
    assert graph.node("wide_3/kernel").attr("shape").dims == (8, 3)
    assert graph.node("wide_5/kernel").attr("shape").dims == (3, 5)
    assert "hidden1/Relu" in graph and "hidden0/bias" in graph
    assert values(build(STACK), ["text:0"])[0] == b"${units} is 4"


def test_given_parameters() -> None:
    graph = build(STACK, units="3", depth="1", act="tanh", sizes="[2]", bias="false").graph
    assert graph.node("hidden0/kernel").attr("shape").dims == (3, 3)
    assert graph.node("wide_2/kernel").attr("shape").dims == (3, 2)
    assert "hidden0/Tanh" in graph and "hidden1/kernel" not in graph and "hidden0/bias" not in graph


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"unit": "3"}, "--set unit: the spec has no such parameter; did you mean 'units'?"),
        ({"units": "many"}, "--set units=many: expected a whole number, found 'many'"),
        ({"units": "1.5"}, "--set units=1.5: expected a whole number, found 1.5"),
        ({"depth": "0"}, "--set depth=0: expected at least 1, found 0"),
        ({"depth": "9"}, "--set depth=9: expected at most 5, found 9"),
        ({"act": "elu"}, "--set act=elu: expected one of: relu, tanh; found 'elu'"),
        ({"sizes": "3"}, "--set sizes=3: expected a list, found 3"),
        ({"sizes": "[3"}, "--set sizes=[3: not valid YAML: "),
        ({"bias": "1"}, "--set bias=1: expected true or false, found 1"),
    ],
)
def test_given_parameters_that_do_not_fit(given: dict[str, str], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        build(STACK, **given)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed: ${a}", "s.yaml:1:1: seed: there is no parameter 'a'"),
        ("parameters: {a: 1}\nseed: ${b}", "s.yaml:2:1: seed: there is no parameter 'b'"),
        ("parameters: {a: 1}\nseed: ${a +}", "seed: 'a +' is no expression of parameters"),
        ("parameters: {a: 1}\nseed: ${a.real}", "seed: 'a.real': expressions are names, numbers, + - * / // % and ( )"),
        ("parameters: {a: 1}\nseed: ${open('x')}", "expressions are names, numbers"),
        ("parameters: {a: 1}\nseed: ${a ** 9}", "expressions are names, numbers"),
        ("parameters: {a: 1}\nseed: ${a // 0}", "seed: 'a // 0': "),
        ("parameters: {a: x}\nseed: ${a + 1}", "seed: 'a + 1': the values do not go together"),
        ("parameters: {a: 99999999999}\nseed: ${a * a * a}", "is larger than 1e+18"),
        ("parameters: {a: {type: integer}}\nseed: ${a}", "s.yaml:1:14: parameters.a: the parameter has no default: give it with --set a=VALUE"),
        ("parameters: {a: {type: int}}", "parameters.a.type: 'int' is unknown; did you mean 'integer'?"),
        ("parameters: {a: {type: integer, default: x}}", "parameters.a.default: expected a whole number, found 'x'"),
        ("parameters: {a: {type: integer, default: 3, maximum: 2}}", "parameters.a.default: expected at most 2, found 3"),
        ("parameters: {'a b': 1}", "'a b' is no name of a parameter"),
        ("nodes: [{repeat: x, nodes: []}]", "nodes[0].repeat: expected a whole number, found 'x'"),
        ("nodes: [{repeat: 2, as: '1', nodes: []}]", "nodes[0].as: '1' is no name of a parameter"),
        ("nodes: [{repeat: 2, times: 3, nodes: []}]", "nodes[0]: unknown key 'times'"),
        ("nodes: [{repeat: 1000000000, nodes: []}]", "nodes[0].repeat: expected at most 200,000, found 1,000,000,000"),
        ("nodes: [{repeat: 100000, nodes: [{repeat: 100000, nodes: [{op: NoOp}]}]}]", "the spec has more than 200,000 entries"),
    ],
)  # fmt: skip
def test_mistakes_in_what_is_written_out(text: str, expected: str) -> None:
    assert any(expected in each for each in mistakes(text)), mistakes(text)


# -- includes ---------------------------------------------------------------------------------------------------


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(textwrap.dedent(text))


def test_includes_of_sections_and_of_blocks(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts", common="inputs: {x: {shape: [null, 4]}}\nseed: 3\nnodes: [{layer: relu, name: first}]")
    write(
        tmp_path,
        block="parameters: {units: 2, name: block}\nnodes: [{scope: '${name}', nodes: [{layer: dense, units: '${units}'}]}]",
    )
    write(
        tmp_path,
        main="""
        include: parts/common.yaml
        seed: 5
        nodes:
          - {include: block.yaml}
          - {include: block.yaml, set: {units: 7, name: other}}
    """,
    )
    graph = build_spec(tmp_path / "main.yaml").graph
    assert graph.node("block/dense/kernel").attr("shape").dims == (4, 2)
    assert graph.node("other/dense/kernel").attr("shape").dims == (2, 7)
    assert "first" in graph
    assert graph.node("block/dense/kernel/Initializer/random_uniform/RandomUniform").attr("seed") == 5


def test_files_elsewhere_are_included_only_from_folders_that_are_given(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "shared").mkdir()
    write(tmp_path / "shared", common="inputs: {x: {shape: [4]}}")
    write(tmp_path / "own", near="include: ../shared/common.yaml", by_name="include: common.yaml")
    (tmp_path / "own" / "link.yaml").symlink_to(tmp_path / "shared" / "common.yaml")
    write(tmp_path / "own", linked="include: link.yaml")
    for name in ("near", "linked"):
        with pytest.raises(
            GraphmillError, match="is not in the folder of the spec; name its folder with --include-dir"
        ):
            build_spec(tmp_path / "own" / f"{name}.yaml")
    for name in ("near", "by_name", "linked"):
        assert "x" in build_spec(tmp_path / "own" / f"{name}.yaml", include_folders=[tmp_path / "shared"]).graph


def test_mistakes_of_includes(tmp_path: Path) -> None:
    write(
        tmp_path, loop="include: loop.yaml", taken="inputs: {x: {shape: [2]}}", bad="inputs: {x: {shap: [2]}}\nseed: y"
    )
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x00")
    assert mistakes("include: loop.yaml", tmp_path)[0].endswith("'loop.yaml' includes itself")
    assert "nothing.yaml" in mistakes("include: nothing.yaml", tmp_path)[0]
    assert "is not UTF-8 text" in mistakes("include: binary.yaml", tmp_path)[0]
    twice = mistakes("include: taken.yaml\ninputs: {x: {shape: [3]}}", tmp_path)
    assert "inputs.x: 'x' stands in " in twice[0] and "taken.yaml:1:10 already" in twice[0]
    of_file = mistakes("include: bad.yaml", tmp_path)
    assert "bad.yaml:1:14: inputs.x: unknown key 'shap'; did you mean 'shape'?" in of_file[0]
    assert "bad.yaml:2:1: seed: expected a whole number" in of_file[1]
    write(tmp_path, block="nodes: [{layer: relu}]")
    assert (
        "there is no parameter 'n'"
        in mistakes("inputs: {x: {}}\nnodes: [{include: block.yaml, set: {n: 1}}]", tmp_path)[0]
    )


# -- branches and loops -------------------------------------------------------------------------------------------


def test_branches_and_loops_compute() -> None:
    meta = build("""
        inputs:
          x: {shape: [3]}
          flag: {dtype: bool, shape: []}
        nodes:
          - scope: outer
            nodes:
              - {layer: scale, name: twice, input: x, factor: 2.0}
              - cond: flag
                name: choice
                then: {nodes: [{layer: scale, input: twice, offset: 1.0}]}
                else:
                  nodes:
                    - {layer: relu, name: r, input: twice}
                    - {layer: scale, name: s, factor: -1.0}
                  output: r
              - cond: flag
                name: both
                then: {outputs: {a: x, b: twice}}
                else: {outputs: {b: x, a: twice}}
          - while: {i: 0, total: outer/choice}
            name: loop
            condition: {nodes: [{op: Less, inputs: [i, 4]}]}
            body:
              nodes:
                - {op: AddV2, name: next, inputs: [i, 1]}
                - while: {t: total}
                  name: halve
                  condition:
                    nodes: [{layer: reduce_max, name: top, input: t}, {op: Greater, inputs: [top, 8.0]}]
                  body: {nodes: [{layer: scale, factor: 0.5}]}
                - {op: AddV2, name: sum, inputs: [halve, x]}
              outputs: {total: sum, i: next}
            maximum_iterations: 3
    """)
    x = np.array([1.0, -2.0, 3.0], np.float32)

    def expected(flag: bool) -> np.ndarray[Any, Any]:
        total = 2 * x + 1 if flag else np.maximum(2 * x, 0)
        for _ in range(3):
            while total.max() > 8:
                total = total * np.float32(0.5)
            total = total + x
        return total

    for flag in (True, False):
        choice, a, b, i, total = values(
            meta,
            ["outer/choice:0", "outer/both/a:0", "outer/both/b:0", "loop/i:0", "loop/total:0"],
            {"x:0": x, "flag:0": np.bool_(flag)},
        )
        np.testing.assert_array_equal(choice, 2 * x + 1 if flag else np.maximum(2 * x, 0))
        np.testing.assert_array_equal(a, x if flag else 2 * x)
        np.testing.assert_array_equal(b, 2 * x if flag else x)
        assert i == 3
        np.testing.assert_allclose(total, expected(flag), rtol=tolerance.gamma(20, np.float32), atol=0)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{cond: p, then: {output: x}, else: {outputs: {a: x}}}", "both branches must give the same: then one output, else outputs a"),
        ("{cond: p, then: {outputs: {b: x}}, else: {outputs: {a: x}}}", "then outputs b, else outputs a"),
        ("{cond: p, then: {output: x}}", "nodes[0]: the key 'else' is missing"),
        ("{cond: p, then: {}, else: {output: x}}", "nodes[0].then: it makes nothing: give nodes, output or outputs"),
        ("{cond: p, then: {output: x, outputs: {a: x}}, else: {output: x}}", "give either output or outputs, not both"),
        ("{cond: q, then: {output: x}, else: {output: x}}", "nodes[0].cond: nothing is named 'q'"),
        ("{cond: x, then: {output: x}, else: {output: x}}", "nodes[0]: "),
        ("{while: {}, condition: {output: p}, body: {output: x}}", "a loop needs at least one loop variable"),
        ("{while: {i: 0, j: 0}, condition: {output: p}, body: {output: x}}", "nodes[0].body: give outputs, the next values of i, j"),
        ("{while: {i: 0, j: 0}, condition: {output: p}, body: {outputs: {i: i}}}", "nodes[0].body: outputs lacks the next value of 'j'"),
        ("{while: {i: 0}, condition: {output: p}, body: {outputs: {i: i, k: i}}}", "'k' is no loop variable (they are i)"),
        ("{while: {i: 0}, condition: {output: p}, body: {nodes: [{layer: scale, factor: x}]}}", "nodes[0].body.nodes[0].factor: expected a number, found 'x'"),
        ("{while: {i: 0}, condition: {outputs: {a: p}}, body: {output: i}}", "nodes[0].condition: the condition is one boolean scalar: give output"),
        ("{while: {i: 0}, condition: {output: p}, body: {output: x}}", "nodes[0]: "),
        ("{while: {i: 0}, condition: {output: i}, body: {output: i}}", "nodes[0]: "),
    ],
)  # fmt: skip
def test_mistakes_of_branches_and_loops(entry: str, expected: str) -> None:
    found = mistakes(f"inputs: {{x: {{shape: [2]}}, p: {{dtype: bool, shape: []}}}}\nnodes:\n  - {entry}")
    assert len(found) == 1 and expected in found[0], found


def test_maps_and_scans_go_over_rows() -> None:
    meta = build("""
        inputs: {x: {shape: [null, 3]}}
        nodes:
          - map: {row: x}
            name: each
            body: {nodes: [{layer: reduce_sum, name: total}, {layer: scale, factor: 2.0}]}
          - map: {a: x, b: [1, 2]}
            name: two
            dtype: {s: float32, n: int32}
            body: {nodes: [{layer: reduce_max, name: m, input: a}], outputs: {s: m, n: b}}
          - scan: {row: x}
            name: sums
            initial: {t: [0.0, 0.0, 0.0], n: 0}
            body:
              nodes: [{op: AddV2, name: s, inputs: [t, row]}, {op: AddV2, name: c, inputs: [n, 1]}]
              outputs: {t: s, n: c}
          - scan: {row: x}
            name: last
            reverse: true
            initial: {t: [0.0, 0.0, 0.0]}
            body: {nodes: [{op: AddV2, name: s, inputs: [t, row]}]}
    """)
    fetches = ["each:0", "two/s:0", "two/n:0", "sums/t:0", "sums/n:0", "last:0"]
    found = values(meta, fetches, {"x:0": np.array([[1, 2, 3], [4, 5, 6]], np.float32)})
    wanted = [[12, 30], [3, 6], [1, 2], [[1, 2, 3], [5, 7, 9]], [1, 2], [[5, 7, 9], [4, 5, 6]]]
    assert [np.asarray(value).tolist() for value in found] == wanted


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{map: {}, body: {output: x}}", "nodes[0].map: name at least one tensor to go over: {row: NAME}"),
        ("{map: {r: p}, body: {output: r}}", "nodes[0].map.r: it is one number; expected a tensor with rows"),
        ("{map: {r: x}, dtype: {a: int32}, body: {output: r}}", "nodes[0].dtype: say the type of each of the body's outputs"),
        ("{map: {r: x}, dtype: int32, body: {output: r}}", "nodes[0]: "),
        ("{scan: {r: x}, initial: {}, body: {output: r}}", "nodes[0].initial: name at least one value to carry: {total: 0.0}"),
        ("{scan: {r: x}, initial: {r: 0.0}, body: {output: r}}", "nodes[0].initial: 'r' names rows already"),
        ("{scan: {r: x}, initial: {a: 0.0, b: 0.0}, body: {output: r}}", "give outputs, the next values of a, b"),
        ("{scan: {r: x}, body: {output: r}}", "nodes[0]: the key 'initial' is missing"),
        ("{layer: lstm, units: 2, input: x}", "nodes[0]: "),
        ("{layer: lstm, units: 2, input: t, unrolled: true}", "nodes[0]: unrolled needs a known number of steps; the input has shape [?,?,2]"),
        ("{layer: gru, units: 2, input: t, return: all}", "nodes[0].return: 'all' is unknown"),
    ],
)  # fmt: skip
def test_mistakes_of_what_goes_over_rows(entry: str, expected: str) -> None:
    found = mistakes(
        f"inputs: {{x: {{shape: [2]}}, p: {{dtype: bool, shape: []}}, t: {{shape: [null, null, 2]}}}}\nnodes:\n  - {entry}"
    )
    assert len(found) == 1 and expected in found[0], found


# -- devices ----------------------------------------------------------------------------------------------------


def test_rules_of_devices() -> None:
    graph = build("""
        inputs: {x: {shape: [null, 4]}}
        devices:
          - {match: "head/*", device: /job:worker/task:7}
          - {variables_on: ps, tasks: 2, worker: /job:worker/task:0}
        nodes:
          - {layer: dense, name: a, units: 4}
          - {layer: dense, name: b, units: 4, use_bias: false}
          - {layer: dense, name: head, units: 4}
          - {layer: relu, device: /device:CPU:1}
    """).graph
    assert graph.node("a/kernel").device == "/job:ps/task:0"
    assert graph.node("a/bias").device == "/job:ps/task:1"
    assert graph.node("b/kernel").device == "/job:ps/task:0"
    assert graph.node("a/MatMul").device == "/job:worker/task:0"
    assert graph.node("head/MatMul").device == "/job:worker/task:7"
    assert graph.node("relu").device == "/job:worker/task:0/device:CPU:1"


# -- two players --------------------------------------------------------------------------------------------------


def test_several_losses_and_optimizers() -> None:
    meta = build("""
        inputs: {z: {shape: [null, 2]}, real: {shape: [null, 3]}, one: {default: [[1.0]]}}
        nodes:
          - scope: generator
            nodes: [{layer: dense, name: out, units: 3, input: z}]
          - scope: critic
            nodes: [{layer: dense, name: score, units: 1, input: generator/out}]
        losses:
          fool: {type: sigmoid_cross_entropy, labels: one, logits: critic/score, label_smoothing: 0.1}
          near: {type: huber, labels: real, predictions: generator/out, delta: 0.5, weight: 2.0}
        optimizers:
          generator_step: {type: adam, loss: fool, variables: "generator/*", moving_average: 0.9}
          critic_step: {type: sgd, learning_rate: 0.1, loss: near, variables: generator, global_step: false, clip_norm: 1.0}
    """)
    assert {"generator_step", "critic_step"} <= {node.name.split("/")[0] for node in meta.graph}
    assert "generator/out/kernel/Adam" in meta.graph and "critic/score/kernel/Adam" not in meta.graph
    with pytest.raises(GraphmillError, match="there are several losses: say which with loss: \\(a, b\\)"):
        build("inputs: {x: {}}\nlosses: {a: {tensor: x}, b: {tensor: x}}\noptimizer: {type: adam}")


def test_partitioned_variables_are_saved_as_one() -> None:
    meta = build("variables: {w: {shape: [6, 2], partitioner: {type: fixed_size, num_shards: 3}}}")
    assert [n.name for n in meta.graph if n.op in ("VariableV2", "VarHandleOp")] == ["w/part_0", "w/part_1", "w/part_2"]


# -- all mistakes ---------------------------------------------------------------------------------------------------


def test_all_mistakes_are_told_in_order_and_what_follows_from_them_is_not() -> None:
    found = mistakes("""
        seed: x
        inputs:
          x: {dtype: flaot32}
          y: {shape: [null, 4]}
        nodes:
          - {layer: dense, unit: 3}
          - {layer: relu}
          - {layer: dense, name: a, units: 3, input: y}
          - {layer: dense, name: b, units: 3, input: x}
          - {layer: conv2d, name: c, filters: 2, kernel: 3, input: a}
          - {op: Rleu, inputs: [a], name: q}
          - {op: AddV2, name: z, inputs: [q, c]}
          - {layer: softmax, input: zz}
          - scope: s
            nodes:
              - {layer: relu, input: a}
              - {layer: relu, inptu: a, name: t}
          - {layer: relu, input: s/t}
          - {layer: relu, input: "b/MatMul:0"}
        loss: {type: mean_squared_error, predictions: z, labels: y}
        metrics: {accuracy: {labels: y, predictions: nowhere}}
        optimizer: {type: momentum, learning_rate: 0.1}
        saver: {variables: [b/kernel]}
        signatures: {one: {outputs: [z, w]}}
    """)
    places = [each.split(": ")[0] for each in found]
    assert [place.split(":")[1] for place in places] == ["2", "4", "7", "11", "12", "14", "18", "22", "23", "25"], found


# -- the schema ---------------------------------------------------------------------------------------------------

_VALIDATOR = Draft202012Validator(schema())


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(schema())
    json.dumps(schema())


@pytest.mark.parametrize(
    "text", [STACK, "inputs: {x: {shape: [null]}}\ninclude: [a.yaml]\nnodes: [{include: b.yaml, set: {a: 1}}]"]
)
def test_the_schema_takes_what_we_take(text: str) -> None:
    assert [e.message for e in _VALIDATOR.iter_errors(yaml.safe_load(text))] == []


def test_the_schema_takes_the_samples() -> None:
    for path in sorted((Path(__file__).parents[3] / "samples").glob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        if "nodes" in document:
            assert [e.message for e in _VALIDATOR.iter_errors(document)] == [], path


@pytest.mark.parametrize(
    "text",
    [
        "input: {x: {}}", "seed: x", "seed: -1", "inputs: {x: {dtype: flaot32}}", "inputs: {x: {shape: 3}}",
        "variables: {v: {shape: [2], initializer: zeroes}}", "variables: {v: {shape: [2], trainable: 1}}",
        "variables: {v: {shape: [2], initializer: {type: random_normal, std: 1}}}", "nodes: 3", "nodes: [{name: a}]",
        "nodes: [{layer: dens}]", "nodes: [{layer: dense}]", "nodes: [{layer: dense, unit: 3}]",
        "nodes: [{layer: dense, units: 0}]", "nodes: [{layer: dense, units: 2, activation: rleu}]",
        "nodes: [{layer: max_pool, size: [1, 2, 3]}]", "nodes: [{scope: s}]", "nodes: [{scope: s, nodes: [{layer: dens}]}]",
        "loss: {type: hing}", "loss: {type: hinge}", "optimizer: {type: adm}", "optimizer: {type: sgd}",
        "optimizer: {type: adam, beta3: 1}", "saver: {max_to_keep: many}", "signatures: {s: {inputs: [x]}}",
        "init: maybe", "summaries: {scaler: [x]}", "nodes: [{while: {i: 0}, body: {output: i}}]",
    ],
)  # fmt: skip
def test_the_schema_refuses_what_we_refuse(text: str) -> None:
    assert mistakes(text)
    assert list(_VALIDATOR.iter_errors(yaml.safe_load(text)))
