"""Values by chance and from standard input for `run --feed`."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from toolkit.errors import UsageError
from toolkit.formats.arrays import tensor
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.jobs.random_feeds import load_random_feeds, random_feed


def draw(dtype: DType, shape: Shape, text: str = "random", batch: int | None = None) -> Any:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtype, "shape": shape})
    [value] = load_random_feeds({x.output(): random_feed(text)}, batch).values()
    return value


@pytest.mark.parametrize(
    "name", ["float32", "float64", "bfloat16", "complex64", "int32", "uint8", "int64", "bool", "string"]
)
def test_types_and_shapes(name: str) -> None:
    dtype = dtypes.from_name(name)
    value = draw(dtype, Shape([None, 3, None]), batch=5)
    assert value.shape == (5, 3, 1) and (name == "string" or value.dtype == dtype.numpy)
    assert draw(dtype, Shape([None, 3])).shape == (1, 3)
    again = draw(dtype, Shape([None, 3, None]), batch=5)
    assert (value == again).all()
    if name.startswith(("float", "int", "uint")):
        assert value.min() >= 0 and value.max() <= 1
        wide = draw(dtype, Shape([400]), "random:low=3,high=9")
        assert wide.min() >= 3 and wide.max() <= 9 and np.unique(wide).size > 5
    if name.startswith("float"):
        assert not (value == draw(dtype, Shape([5, 3, 1]), "random:seed=2")).all()


def test_whole_numbers_fit_what_takes_them() -> None:
    graph = Graph()
    ids = graph.add("Placeholder", "ids", attrs={"dtype": dtypes.int64, "shape": Shape([500])})
    table = graph.add(
        "Const", "t", attrs={"dtype": dtypes.float32, "value": tensor.from_array(np.zeros((7, 2), np.float32))}
    )
    axis = graph.add("Const", "a", attrs={"dtype": dtypes.int32, "value": tensor.from_array(np.int32(0))})
    same = graph.add("Identity", "same", [ids], attrs={"T": dtypes.int64})
    attrs = {"Tparams": dtypes.float32, "Tindices": dtypes.int64, "Taxis": dtypes.int32, "batch_dims": 0}
    graph.add("GatherV2", "g", [table, same, axis], attrs=attrs)
    [value] = load_random_feeds({ids.output(): random_feed("random")}).values()
    assert sorted(set(value.tolist())) == list(range(7))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("random:sed=1", "'sed' is unknown; did you mean 'seed'?"),
        ("random:seed=x", "seed=x: expected a whole number"),
        ("random:shape=2,3", "'3' is unknown"),
        ("random:low=3,high=1", "high=1 is below low=3"),
        ("random:low=inf", "low=inf: expected a number"),
        ("random:high=nan", "high=nan: expected a number"),
        ("random:shape=2x2", "'x:0' has shape [3], not [2,2]"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        draw(dtypes.float32, Shape([3]), text)
    assert message in str(caught.value)


@pytest.mark.parametrize("sizes", [[1 << 40, 1 << 20], [1] * 65])
@pytest.mark.parametrize("name", ["float32", "bool", "string", "int8", "complex64"])
def test_shapes_that_no_array_has(name: str, sizes: list[int]) -> None:
    with pytest.raises(UsageError, match="'x:0' has a shape of which there are no values"):
        draw(dtypes.from_name(name), Shape(sizes))


def test_on_the_command_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape(None)})
    graph.add("Neg", "y", [x], attrs={"T": dtypes.float32})
    path, out = str(tmp_path / "m.pb"), str(tmp_path / "o.npz")
    write_model(from_graph(graph), path)
    assert run(["run", path, "--fetch", "y", "--feed", "x=random:shape=2x3", "--out", out]) == 0
    value = np.load(out)["y"]
    assert value.shape == (2, 3) and (value <= 0).all()
    assert run(["run", path, "--fetch", "y", "--feed", "x=random"]) == 2
    assert "--feed: nothing is known of the shape of 'x:0'" in capfd.readouterr().err
    for data in (b"[[1, 2], [3, 4]]\n", _npy(np.float32([[1, 2], [3, 4]]))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert run(["run", path, "--fetch", "y", "--feed", "x=-", "--out", out]) == 0
        np.testing.assert_array_equal(np.load(out)["y"], [[-1, -2], [-3, -4]])
    assert run(["run", "-", "--fetch", "y", "--feed", "x=-"]) == 2
    assert "--feed x: standard input holds one thing" in capfd.readouterr().err


def _npy(array: Any) -> bytes:
    made = io.BytesIO()
    np.save(made, array)
    return made.getvalue()
