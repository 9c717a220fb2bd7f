"""Rewrites by rules: where they apply, where not, what is said of mistakes; TensorFlow computes the same afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests.passes.optimize.oracle import agree, changed, feed, kept, made, ops, unchanged
from toolkit.errors import UsageError
from toolkit.formats.models.model import from_graph, read_model, write_model
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.notation import parse_passes
from toolkit.passes.optimize.rewrite import Rewrite
from toolkit.passes.optimize.run import optimize

Build = Callable[[Any, Any], Any]


def program(tf: Any, build: Build) -> Graph:
    return made(tf, lambda v1: v1.identity(build(v1, v1.placeholder("float32", [2, 3], name="x")), name="out"))


#: a rule, a graph that it changes, and what is left
CASES: dict[str, tuple[str, Build, list[str]]] = {
    "relu of relu": ("Relu(Relu(x)) => Relu(x)", lambda v1, x: v1.nn.relu(v1.nn.relu(x)), ["Relu"]),
    "times one": ("Mul(x, 1) => x", lambda v1, x: x * np.ones((2, 3), np.float32), []),
    "any constant": (
        "RealDiv(x, c) => Mul(x, Reciprocal(c)) where c is constant", lambda v1, x: x / 4.0, ["Mul", "Reciprocal"]
    ),
    "made of numbers": ("Neg(x) => Sub(0, x)", lambda v1, x: -x, ["Sub"]),
    "the same twice": ("AddV2(x, x) => Mul(x, 2)", lambda v1, x: x + x, ["Mul"]),
    "bias": (
        "AddV2(MatMul(a, b, transpose_b=$t), c) => BiasAdd(MatMul(a, b, transpose_b=$t), c) where rank(c) == 1",
        lambda v1, x: v1.matmul(x, np.eye(4, 3, dtype=np.float32), transpose_b=True) + np.arange(4, dtype=np.float32),
        ["MatMul", "BiasAdd"],
    ),
    "gelu by erf": (
        "Mul(Mul(0.5, x), AddV2(1, Erf(RealDiv(x, 1.41421354)))) => Mul(x, Mul(0.5, Erfc(Mul(x, -0.70710678))))",
        lambda v1, x: (0.5 * x) * (1.0 + v1.math.erf(x / np.float32(1.41421354))),
        ["Mul", "Erfc", "Mul", "Mul"],
    ),
    "of one type": ("Square(x) => Mul(x, x) where dtype(x) == float32", lambda v1, x: v1.square(x), ["Mul"]),
    "an attribute kept": (
        "Softmax(Neg(x)) => Softmax(Sub(0, x))", lambda v1, x: v1.nn.softmax(-x), ["Softmax", "Sub"]
    ),
    "attributes of the same op": (
        "Sum(Neg(x), a) => Sum(Sub(0, x), a)", lambda v1, x: v1.reduce_sum(-x, 1, keepdims=True), ["Sum", "Sub"]
    ),
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", CASES)
def test_where_it_applies(tf: Any, name: str) -> None:
    rule, build, left = CASES[name]
    graph = program(tf, build)
    result = changed(Rewrite(rule=(rule,), kept=kept("out")), graph)
    assert sorted(ops(result.graph)) == sorted(left)
    assert result.report["rewritten"] == {"rule:1": 1}
    agree(tf, graph, result.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("rule", "build"),
    [
        ("Relu(Relu(x)) => Relu(x)", lambda v1, x: v1.nn.relu(v1.nn.relu6(x))),
        ("Mul(x, 1) => x", lambda v1, x: x * [1.0, 2.0, 1.0]),
        ("AddV2(x, x) => Mul(x, 2)", lambda v1, x: x + v1.identity(x)),
        ("Mul(x, c) => x where c != 3", lambda v1, x: x * 3.0),
        ("Square(x) => Mul(x, x) where dtype(x) != float32", lambda v1, x: v1.square(x)),
        ("Square(x) => Mul(x, x) where rank(x) == 1", lambda v1, x: v1.square(x)),
        ("MatMul(a, b, transpose_b=true) => MatMul(a, b)", lambda v1, x: v1.matmul(x, np.eye(3, dtype=np.float32))),
        ("Relu(x, T=float64) => x", lambda v1, x: v1.nn.relu(x)),
    ],
)
def test_where_it_does_not(tf: Any, rule: str, build: Build) -> None:
    unchanged(Rewrite(rule=(rule,), kept=kept("out")), program(tf, build))


@pytest.mark.tensorflow
def test_what_others_read_stays_and_what_is_fed_hides(tf: Any) -> None:
    def build(v1: Any, x: Any) -> Any:
        inner = v1.nn.relu(x, name="inner")
        return v1.nn.relu(inner) + v1.tanh(inner)

    graph = program(tf, build)
    pass_ = Rewrite(rule=("Relu(Relu(x)) => Relu(x)",), kept=kept("out"))
    result = changed(pass_, graph)
    assert ops(result.graph).count("Relu") == 2
    agree(tf, graph, result.graph, ["out:0"], feed(graph))
    unchanged(Rewrite(rule=pass_.rule, kept=kept("out", "inner", fed=("x", "inner"))), graph)


@pytest.mark.tensorflow
@pytest.mark.parametrize("functional", [True, False])
def test_in_loops(tf: Any, functional: bool) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [2, 3], name="x")
        y = v1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, -(y + y)), [0, x])[1]
        v1.identity(y, name="out")

    graph = made(tf, build, functional=functional)
    rules = (Rewrite(rule=("AddV2(x, x) => Mul(x, 2)", "Neg(x) => Sub(0, x)")),)
    done = optimize(graph, rules, kept("out"))
    assert done.settled and done.modified
    agree(tf, graph, done.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
def test_a_file_on_the_command_line(tf: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    graph = program(tf, lambda v1, x: v1.nn.relu(v1.nn.relu(v1.nn.relu(x))) * 1.0)
    files = {name: str(tmp_path / name) for name in ("in.pb", "out.pb", "rules.txt")}
    write_model(from_graph(graph), files["in.pb"])
    Path(files["rules.txt"]).write_text("# chains\n\nRelu(Relu(x))\n    => Relu(x)  # once is enough\nMul(x, 1) => x\n")
    asked = ["optimize", files["in.pb"], "--rewrite", files["rules.txt"], "-o", files["out.pb"]]
    assert run([*asked, "--passes", "remove_identities"]) == 0
    assert ops(read_model(files["out.pb"]).graph) == ["Relu"]
    assert parse_passes(f'rewrite(file={files["rules.txt"]}), rewrite(rule="Neg(Neg(x)) => x")')
    capfd.readouterr()
    Path(files["rules.txt"]).write_text("Relu(Relu(x)) => Relu(x)\n\nRelu(y) => Cast(y, DstT=float64)\n")
    assert run(asked) == 2
    said = capfd.readouterr().err
    assert "rules.txt:3" in said and "is float64, and what it replaces is float32" in said


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("Relu(Relu(x)) = Relu(x)", "expected =>, found ="),
        ("Rellu(x) => x", "did you mean 'Relu'"),
        ("Relu(x) => y", "'y' is not in the pattern"),
        ("Relu(x) => Relu(x, T=$t)", "'$t' is not in the pattern"),
        ("Relu(x, t=1) => x", "Relu has no attribute 't'"),
        ("Relu(x, y) => x", "Relu has 1 inputs, not 2"),
        ("x => Relu(x)", "expected an operation, found the name 'x'"),
        ("Relu(x) => 3", "found a number"),
        ("Relu(x) => x where z is constant", "'z' is not in the pattern"),
        ("Relu(x) => x where x is large", "expected constant, found large"),
        ("Relu(x) => x and more", "expected where, and or the end of the rule, found and"),
        ("Relu(x => x", "expected ,, found =>"),
        ("Relu(x) => Relu(x) ?", "cannot read '?'"),
        ("Relu(x", "found the end of the rule"),
        ("Mul(x, T=loud) => x", "expected a value, found loud"),
        ("NoOp() => x", "has no output"),
        ("# nothing", "there is no rule in it"),
        ("Relu(" * 60, "nested too deeply"),
    ],
)
def test_mistakes(tmp_path: Path, rule: str, says: str) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(f"Relu(Relu(x)) => Relu(x)\n{rule}\n" if not rule.startswith("#") else rule)
    with pytest.raises(UsageError) as caught:
        Rewrite(str(file))
    assert says in str(caught.value) and str(file) + (":2" if not rule.startswith("#") else "") in str(caught.value)


def test_no_rules(tmp_path: Path) -> None:
    for wrong, says in ((lambda: Rewrite(), "there is no rule"), (lambda: Rewrite(str(tmp_path)), "cannot be read")):
        with pytest.raises(UsageError, match=says):
            wrong()
