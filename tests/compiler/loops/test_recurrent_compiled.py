"""Recurrent layers by code of our own: what threads do, and every form against the definition in float64."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests import tolerance
from toolkit.compiler.backends.cpu.recurrent.compiled import write_compiled_layer
from toolkit.compiler.ir.operations.recurrent import CellWeights, RecurrentLayer
from toolkit.compiler.ir.text.arrays import SideTable
from toolkit.compiler.ir.text.parser import parse_block
from toolkit.compiler.pipeline.cpu import compile_block
from toolkit.compiler.settings import Settings
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.row_products import heights
from toolkit.target import rows
from toolkit.target.target import Target

U = tolerance.unit()
#: what exp, tanh and a reciprocal are off, in roundings: a few units in the last place each (`native.functions`)
FUNCTION = 8 * U


class Near(NamedTuple):
    """A number in float64, and how far one in float32 may be from it."""

    value: Any
    off: Any

    def __add__(self, other: Any) -> Near:  # pyright: ignore[reportIncompatibleMethodOverride]
        value = self.value + other.value
        return Near(value, self.off + other.off + U * np.abs(value))

    def __mul__(self, other: Any) -> Near:  # pyright: ignore[reportIncompatibleMethodOverride]
        value = self.value * other.value
        reach = self.off * (np.abs(other.value) + other.off) + np.abs(self.value) * other.off
        return Near(value, reach + U * np.abs(value))

    def times(self, matrix: Any) -> Near:
        """The product with weights."""
        return Near(self.value @ matrix, tolerance.of_product(self.value, matrix) + self.off @ np.abs(matrix))


def _sigmoid(x: Near) -> Near:
    value = 1 / (1 + np.exp(-x.value))
    return Near(value, x.off / 4 + FUNCTION)  # its slope is 1/4 at most


def _tanh(x: Near) -> Near:
    value = np.tanh(x.value)
    return Near(value, x.off + FUNCTION)


def _exactly(value: Any) -> Near:
    return Near(np.asarray(value, np.float64), np.zeros(np.shape(value)))


def _step(kind: str, weights: CellWeights, x: Near, h: Near, c: Near) -> tuple[Near, Near]:
    """The next h and c of a cell by its definition."""
    layer, iteration, bias = (np.asarray(each, np.float64) for each in (weights.layer, weights.iteration, weights.bias))
    given = [x.times(layer[:, gate]) + _exactly(bias[gate]) for gate in range(layer.shape[1])]
    state = [h.times(iteration[:, gate]) for gate in range(layer.shape[1])]
    if kind == "lstm":
        i, f, g, o = (a + b for a, b in zip(given, state, strict=True))
        if weights.peepholes is not None:
            i, f = (gate + c * _exactly(weights.peepholes[row]) for row, gate in enumerate((i, f)))
        c = _sigmoid(f) * c + _sigmoid(i) * _tanh(g)
        if weights.peepholes is not None:
            o = o + c * _exactly(weights.peepholes[2])
        return _sigmoid(o) * _tanh(c), c
    u, r = (_sigmoid(given[gate] + state[gate]) for gate in range(2))
    if kind == "gru":
        new = _tanh(given[2] + (r * h).times(iteration[:, 2]))
    else:
        new = _tanh(given[2] + r * (state[2] + _exactly(bias[3])))
    return u * h + (_exactly(1.0) + Near(-u.value, u.off)) * new, c


@dataclass(frozen=True)
class Layer:
    """A layer, and what it is given."""

    kind: str = "lstm"
    length: int = 5
    batch: int = 3
    channels: int = 7
    units: int = 20
    batch_major: bool = False
    initial: bool = False
    last: bool = False
    peepholes: bool = False
    threads: int = 1

    def text(self) -> str:
        gates, biases = {"lstm": (4, 4), "gru": (3, 3), "lbr_gru": (3, 4)}[self.kind]
        states = 2 if self.kind == "lstm" else 1
        first, second = (self.batch, self.length) if self.batch_major else (self.length, self.batch)
        state = f"float32[{self.batch},{self.units}]"
        given = [f"%{i + 1}: {state}" for i in range(states)] if self.initial else []
        made = [f"float32[{first},{second},{self.units}]"] + ([state] * states if self.last else [])
        results = [f"%{i + 3}" for i in range(len(made))]
        fields = [
            f"weights = CellWeights(layer = float32[{self.channels},{gates},{self.units}] seed 1, iteration = "
            f"float32[{self.units},{gates},{self.units}] seed 2, bias = float32[{biases},{self.units}] seed 3"
            + (f", peepholes = float32[3,{self.units}] seed 4)" if self.peepholes else ")"),
            f"length = {self.length}",
        ]
        if self.batch_major:
            fields += ["batch_major_input = True", "batch_major_output = True"]
        inputs = "input = %0" + (f", initial = [{', '.join(f'%{i + 1}' for i in range(states))}]" if given else "")
        outputs = ", ".join(f"{name}: {type}" for name, type in zip(results, made, strict=True))
        return (
            f"program({', '.join([f'%0: float32[{first},{second},{self.channels}]', *given])}) {{\n"
            f"  {outputs} = {self.kind}({inputs}) {{{', '.join(fields)}}} from 'loop'\n"
            f"  return {', '.join(results)}\n}}\nnodes {{\n  'loop' = LoopCond\n}}\n"
        )

    def check(self, target: Target) -> None:
        """What is computed is as near to the definition as rounding explains, twice: the second run finds old sums."""
        block = parse_block(self.text(), SideTable(), source="layer")
        layer = next(iter(block.operations))
        assert isinstance(layer, RecurrentLayer)
        # smaller numbers: what is off in one step must not grow in the next, whatever the signs
        given, scale = layer.weights, np.float32(1 / self.units)
        weights = layer.weights = replace(given, iteration=np.asarray(given.iteration) * scale)
        random = np.random.default_rng(5)
        arguments = [random.standard_normal(value.shape).astype(np.float32) for value in block.arguments if value]
        settings = Settings(threads=self.threads, target=target)
        running: Any = None  # there are no variables
        emitted = compile_block(block, settings, {}, running)
        assert layer.shares, "it is no code of our own"
        instance = emitted.instantiate()
        x, *initial = map(_exactly, arguments)
        zero = _exactly(np.zeros((self.batch, self.units)))
        h, c = (*initial, zero, zero)[:2] if initial else (zero, zero)
        steps: list[Near] = []
        for t in range(self.length):
            now = Near(*(each[:, t] if self.batch_major else each[t] for each in x))
            h, c = _step(self.kind, weights, now, h, c)
            steps.append(h)
        axis = 1 if self.batch_major else 0
        wanted = [Near(np.stack([s.value for s in steps], axis), np.stack([s.off for s in steps], axis))]
        wanted += [h, c][: 2 if self.kind == "lstm" else 1] if self.last else []
        for _ in range(2):
            for got, near in zip(instance.run(arguments, running), wanted, strict=True):
                tolerance.assert_within(got, near.value, near.off, f"{self}")


KINDS = ("lstm", "gru", "lbr_gru")
LAYERS = [
    *(Layer(kind) for kind in KINDS),
    *(Layer(kind, batch=1, length=13, units=16) for kind in KINDS),
    *(Layer(kind, batch=33, units=40, length=4, channels=1, threads=2) for kind in KINDS),
    *(Layer(kind, batch=2, units=1, length=1, batch_major=True, initial=True, last=True) for kind in KINDS),
    *(Layer(kind, batch=9, units=48, length=11, batch_major=True, initial=True, last=True, threads=2)
      for kind in KINDS),
    *(Layer(kind, batch=26, units=33, length=3, initial=True, threads=3) for kind in KINDS),
    Layer(peepholes=True, last=True),
    Layer(peepholes=True, initial=True, batch=8, units=32),
]  # fmt: skip


@pytest.mark.skipif(compiler() is None, reason="LLVM is not installed")
@pytest.mark.parametrize("vectors", ["avx512", "avx2", "neon"])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_layers_are_what_their_definition_says(layer: Layer, vectors: str) -> None:
    """Tiles for other registers are right on any processor, and so are shares, however little work there is."""
    target = rows.row_of(vectors)
    layer.check(target._replace(threads=target.threads._replace(product=0)))


@pytest.mark.skipif(compiler() is None, reason="LLVM is not installed")
@pytest.mark.parametrize("ready", [1, 1 << 12])
def test_the_product_of_the_input_comes_in_parts(ready: int) -> None:
    target = rows.AVX512._replace(recurrent=rows.AVX512.recurrent._replace(ready=ready))
    for kind in KINDS:
        Layer(kind, batch=7, length=29, units=18).check(target)
        Layer(kind, batch=1, length=29, units=18).check(target)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_have_examples_of_their_own_and_meet_once(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside other programs a thread waits milliseconds for one that has no processor: never within a layer."""
    texts: list[str] = []

    class Recording:
        def function(self, text: str, symbols: dict[str, int], result: Any = None) -> Any:
            texts.append(text)
            raise NotImplementedError

    block = parse_block(Layer(batch=7, threads=threads).text(), SideTable(), source="layer")
    (layer,) = block.operations
    assert isinstance(layer, RecurrentLayer)
    edges = [7 * i // threads for i in range(threads + 1)]
    layer.shares = tuple(pairwise(edges))
    where = "toolkit.compiler.backends.cpu.recurrent.compiled"
    monkeypatch.setattr(f"{where}.compiler", Recording)
    emitter: Any = type("Emitter", (), {"target": rows.AVX512})()
    with pytest.raises(NotImplementedError):
        write_compiled_layer(emitter, layer)
    (text,) = texts
    assert text.count("call void @GOMP_parallel") == (1 if threads > 1 else 0)
    called = set(re.findall(r"call [^@]*@([\w.]+)\(", text))
    outside = {name for name in called if f"@{name}(" in text and f"internal void @{name}(" not in text}
    assert {name for name in outside if not name.startswith("llvm.")} <= {
        "GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads",
    }  # fmt: skip
    assert not re.search(r"\b(atomicrmw|cmpxchg|fence|barrier|volatile)\b", text)


@pytest.mark.parametrize(("count", "most"), [(1, 6), (6, 6), (7, 6), (32, 6), (50, 8), (3, 1)])
def test_heights_are_those_of_even_tiles(count: int, most: int) -> None:
    tiles = -(-count // most)
    assert heights(count, most) == {count * (i + 1) // tiles - count * i // tiles for i in range(tiles)}
