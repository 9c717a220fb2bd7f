"""cuDNN's recurrent networks on the CPU against TensorFlow's layers with the same weights, which has them on GPUs only.

Cases of every op are here for the other devices as well, which run them beside the CPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.nn import cudnn_networks
from tests.kernels.op_suite import Case, run_ours, sample
from toolkit.kernels.cpu.nn import cudnn_rnn as nn_cudnn_rnn
from toolkit.kernels.recurrent_params import RecurrentModel, RecurrentProblem

STEPS, BATCH, INPUTS, UNITS = 4, 3, 5, 6
MODES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@dataclass(frozen=True)
class Run:
    """A network and how it is run."""

    mode: str = "lstm"
    layers: int = 1
    directions: int = 1
    projection: int = 0
    skips: bool = False
    lengths: Sequence[int] | None = None
    time_major: bool = True
    version: str = "V3"
    dtype: str = "float64"
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        parts = [self.version or "V1", self.mode, f"{self.layers}x{self.directions}", self.dtype]
        parts += ["skip"] * self.skips + [f"proj{self.projection}"] * bool(self.projection)
        parts += ["batch-major"] * (not self.time_major) + ["lengths"] * (self.lengths is not None)
        return "-".join(parts)

    @property
    def model(self) -> RecurrentModel:
        inputs = UNITS if self.skips else INPUTS
        return RecurrentModel(self.mode, self.layers, UNITS, inputs, self.directions, self.projection, self.skips)

    @property
    def arguments(self) -> list[Any]:
        """x, h, c, params, time first."""
        return cudnn_networks.arguments(self.model, STEPS, BATCH, self.dtype)

    def turned(self, value: Any) -> Any:
        return value if self.time_major or np.ndim(value) != 3 else np.ascontiguousarray(np.swapaxes(value, 0, 1))

    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "rnn_mode": self.mode,
            "direction": "bidirectional" if self.directions == 2 else "unidirectional",
            "input_mode": "skip_input" if self.skips else "linear_input",
        }
        if self.version == "V3":
            found |= {"num_proj": self.projection, "time_major": self.time_major}
        return found | self.attrs

    def case(self, **more: Any) -> Case:
        """The node of this run."""
        inputs = [self.turned(value) for value in self.arguments]
        if self.version == "V3":
            inputs.append(np.int32([STEPS] * BATCH if self.lengths is None else self.lengths))
        return Case(f"CudnnRNN{self.version}", inputs, self.settings() | more, id=f"{self}")

    def gradients(self) -> list[Any]:
        """By the outputs, time first."""
        model, rows = self.model, self.layers * self.directions
        c = (rows, BATCH, UNITS) if self.mode == "lstm" else ()
        shapes = ((STEPS, BATCH, model.directions * model.state), (rows, BATCH, model.state), c)
        return [sample(self.dtype, shape, -1, 1, 7 + at) for at, shape in enumerate(shapes)]

    def gradient_case(self) -> Case:
        """The node of its gradient, over what the forward op leaves."""
        forward = self.case()
        outputs = run_ours(forward)
        given = [*forward.inputs, *outputs[:3], *(self.turned(each) for each in self.gradients()), *outputs[3:]]
        name = forward.op.replace("CudnnRNN", "CudnnRNNBackprop")
        return Case(name, given, self.settings(), id=f"{self}")


RUNS = [
    *(Run(mode, layers, directions) for mode in MODES for layers, directions in ((1, 1), (2, 1), (1, 2), (3, 2))),
    *(Run(mode, 2, 2, lengths=(2, STEPS, 1), time_major=major) for mode in MODES for major in (True, False)),
    *(Run(mode, time_major=False) for mode in ("lstm", "gru")),
    *(Run(mode, 2, version=version) for mode in ("lstm", "gru") for version in ("", "V2")),
    *(Run(mode, 2, directions, skips=True) for mode in MODES for directions in (1, 2)),
    *(Run("lstm", 2, directions, projection=3, lengths=lengths) for directions in (1, 2)
      for lengths in (None, (3, 1, STEPS))),
    *(Run(mode, 2, 2, dtype=dtype) for mode in MODES for dtype in ("float32", "float16", "bfloat16")),
    Run("lstm", 2, 2, lengths=(STEPS, 0, 2), dtype="float32"),
    Run("lstm", 2, projection=3, dtype="float32"),
]  # fmt: skip
#: roundings on the way of one number: a product over what a layer takes, ten or so of a cell, in each step and layer
ROUNDINGS = STEPS * 3 * (2 * UNITS + UNITS + 10)


def wrong() -> Iterator[Case]:
    """What does not fit."""
    for run in (Run("lstm", 2, 2, dtype="float32"), Run("gru", dtype="float32")):
        case = run.case()
        x, h, c, params, lengths = case.inputs
        for at, value in (
            (0, x[0]), (0, x[:, :2]), (1, h[0]), (1, h[:, :2]), (1, h[..., :3]), (3, params[:-1]), (3, params[None]),
            (4, lengths[:2]), (4, lengths[None]), (4, lengths + 1), (4, lengths - STEPS - 1),
        ):  # fmt: skip
            inputs = [*case.inputs]
            inputs[at] = value
            yield Case(
                case.op,
                inputs,
                case.attrs,
                error="INVALID_ARGUMENT",
                id=f"{run}-{at}-{np.shape(value)}-{value.sum():.3g}",
            )
        if run.mode == "lstm":
            for value in (c[0], c[:1], c[..., :3]):
                yield Case(case.op, [x, h, value, params, lengths], case.attrs, error="INVALID_ARGUMENT",
                           id=f"{run}-c-{value.shape}")  # fmt: skip
        else:
            yield Case(case.op, case.inputs, {**case.attrs, "num_proj": 2}, error="INVALID_ARGUMENT", id="gru-proj")
        yield Case(case.op, case.inputs, {**case.attrs, "input_mode": "skip_input"}, error="INVALID_ARGUMENT",
                   id=f"{run}-skips-{INPUTS}")  # fmt: skip
        yield Case(case.op, case.inputs, {**case.attrs, "dropout": 1.5}, error="INVALID_ARGUMENT", id=f"{run}-1.5")
        back = run.gradient_case()
        for at, value in ((5, back.inputs[5][:2]), (8, back.inputs[8][:2]), (9, back.inputs[9][..., :2]),
                          (11, back.inputs[11][:-1])):  # fmt: skip
            inputs = [*back.inputs]
            inputs[at] = value
            yield Case(back.op, inputs, back.attrs, error="INVALID_ARGUMENT", id=f"{run}-{at}")


FORWARD = [run.case() for run in RUNS]
CASES = [
    *FORWARD,
    *(run.case(is_training=False) for run in RUNS[:4]),
    *(run.gradient_case() for run in RUNS),
    *wrong(),
]


def close(found: Any, wanted: Any, dtype: str) -> None:
    # each rounding may grow by what a step multiplies with: weights up to 1 over 12 inputs, slopes below 1
    bound = 4 * tolerance.likely(ROUNDINGS, found.dtype)
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=0, atol=bound * scale, err_msg=dtype)


def oracle(tf: ModuleType, run: Run) -> tuple[list[Any], list[Any]]:
    """The outputs and the gradients by x, h, c (of an LSTM) and params, in float64, time first."""
    x, h, c, params = (tf.constant(value.astype(np.float64)) for value in run.arguments)
    sources = [x, h, *([c] if run.mode == "lstm" else []), params]
    with tf.GradientTape() as tape:
        for each in sources:
            tape.watch(each)
        outputs = cudnn_networks.network(run.model, x, h, c, params, run.lengths)
        seeds = run.gradients()[: len(outputs)]
        total = tf.add_n([tf.reduce_sum(y * g.astype(np.float64)) for y, g in zip(outputs, seeds, strict=True)])
    return [y.numpy() for y in outputs], [g.numpy() for g in tape.gradient(total, sources)]


@pytest.mark.tensorflow
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_against_layers(tf: ModuleType, run: Run) -> None:
    wanted, gradients = oracle(tf, run)
    found = run_ours(run.case())
    assert len(found) == (4 if run.version == "" else 5)
    for mine, other in zip(found, wanted, strict=False):
        close(run.turned(mine), other, run.dtype)
    if run.mode != "lstm":
        assert found[2].shape == ()
    untrained = run_ours(run.case(is_training=False))
    for mine, other in zip(untrained[:3], found, strict=False):
        np.testing.assert_array_equal(mine, other)
    assert untrained[3].shape == ()
    by_x, by_h, by_c, by_params = run_ours(run.gradient_case())
    mine = [by_x, by_h, *([by_c] if run.mode == "lstm" else []), by_params]
    for one, other in zip(mine, gradients, strict=True):
        close(run.turned(one), other, run.dtype)
    assert by_c.shape == run.turned(run.arguments[2]).shape


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_case(case: Case) -> None:
    cudnn_networks.check(case)


def test_nothing_is_kept_for_a_gradient_that_nobody_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is several times what else a run takes: the gates of every step, of all layers."""
    kept: list[bool] = []

    class Noted(nn_cudnn_rnn.Network):
        def __init__(self, problem: RecurrentProblem, params: Any, reserve: Any, dropout: float):
            kept.append(reserve is not None)
            super().__init__(problem, params, reserve, dropout)

    monkeypatch.setattr(nn_cudnn_rnn, "Network", Noted)
    for training in (True, False):
        run_ours(Run("lstm", 2).case(is_training=training))
    assert kept == [True, False]


def test_what_is_behind_an_end_is_not_read() -> None:
    run = Run("lstm", 2, 2, lengths=(2, STEPS, 1))
    case = run.case()
    x = case.inputs[0].copy()
    for example, length in enumerate(run.lengths or ()):
        x[length:, example] = np.nan
    found = run_ours(Case(case.op, [x, *case.inputs[1:]], case.attrs))
    for mine, other in zip(found, run_ours(case), strict=True):
        np.testing.assert_array_equal(mine, other)
    back = run.gradient_case()
    for mine, other in zip(run_ours(Case(back.op, [x, *back.inputs[1:]], back.attrs)), run_ours(back), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_no_steps_leave_the_state() -> None:
    for mode in MODES:
        run = Run(mode, 2, 2)
        case = run.case()
        out, h, c, *_ = run_ours(
            Case(case.op, [case.inputs[0][:0], *case.inputs[1:4], np.int32([0] * BATCH)], case.attrs)
        )
        assert out.shape == (0, BATCH, 2 * UNITS)
        np.testing.assert_array_equal(h, case.inputs[1])
        np.testing.assert_array_equal(c, case.inputs[2])


def test_dropout_is_between_layers_and_in_training_only() -> None:
    plain = Run("lstm", 1).case()
    for mine, other in zip(run_ours(Run("lstm", 1).case(dropout=0.5, seed=3)), run_ours(plain), strict=True):
        np.testing.assert_array_equal(mine, other)
    deep = Run("lstm", 2)
    for mine, other in zip(run_ours(deep.case(dropout=0.5, is_training=False)), run_ours(deep.case(is_training=False)),
                           strict=True):  # fmt: skip
        np.testing.assert_array_equal(mine, other)


def test_dropout_of_everything_leaves_the_biases() -> None:
    """The second layer gets zeros, so it is as over zeros."""
    run = Run("gru", 2)
    out = run_ours(run.case(dropout=1.0, seed=1))[0]
    _, h, _, params = run.arguments
    one = RecurrentModel("gru", 1, UNITS, UNITS, 1)
    second = run.model.params[1]
    parts = [params[each.offset : each.end] for each in
             (second.by_input, second.by_state, second.input_bias, second.state_bias)]  # fmt: skip
    alone = Case(
        "CudnnRNN", [np.zeros((STEPS, BATCH, UNITS)), h[1:], np.zeros(()), np.concatenate(parts)], {"rnn_mode": "gru"}
    )
    assert one.size == alone.inputs[3].size
    np.testing.assert_allclose(out, run_ours(alone)[0], rtol=0, atol=tolerance.likely(ROUNDINGS, np.float64))


def _masks(dropout: float, count: int, seed: int) -> Any:
    """What a layer between is multiplied by: its mask, from reserve_space."""
    model = RecurrentModel("rnn_tanh", 2, 50, 2, 1)
    x, h, c, params = cudnn_networks.arguments(model, count, 4, "float32")
    attrs = {"rnn_mode": "rnn_tanh", "dropout": dropout, "seed": seed}
    reserve = run_ours(Case("CudnnRNN", [x, h, c, params], attrs))[3]
    from toolkit.kernels.recurrent_params import Reserve

    place = Reserve(model, count, 4, drops=True).masks[0]
    return reserve[place.offset : place.end]


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.8])
def test_dropout_drops_as_often_as_it_says(dropout: float) -> None:
    mask = _masks(dropout, 20, 11)
    kept = mask != 0
    np.testing.assert_allclose(mask[kept], 1 / (1 - dropout), rtol=tolerance.likely(2))
    # the mean of n draws is within 5 standard deviations, but for one in two million seeds; this one is known
    deviation = (dropout * (1 - dropout) / mask.size) ** 0.5
    assert abs(kept.mean() - (1 - dropout)) < 5 * deviation


def test_a_seed_gives_the_same_masks() -> None:
    np.testing.assert_array_equal(_masks(0.5, 3, 5), _masks(0.5, 3, 5))
    assert (_masks(0.5, 3, 5) != _masks(0.5, 3, 6)).any()


def test_gradient_with_dropout_is_of_what_was_kept() -> None:
    """By differences along a direction: the masks of a seed stay the same."""
    run = Run("gru", 3, 2, version="", attrs={"dropout": 0.4, "seed": 9})
    forward, back = run.case(), run.gradient_case()
    _, _, _, by_params = run_ours(back)
    direction = sample("float64", forward.inputs[3].shape, -1, 1, 21)
    seeds = run.gradients()

    def total(params: Any) -> float:
        out, h, *_ = run_ours(Case(forward.op, [*forward.inputs[:3], params], forward.attrs))
        return float((out * seeds[0]).sum() + (h * seeds[1]).sum())

    step = 1e-6  # central differences of float64: an error of the order of its square, and of rounding over it
    slope = (total(forward.inputs[3] + step * direction) - total(forward.inputs[3] - step * direction)) / (2 * step)
    # rounding: 2e-16 of sums of about 100, over the step: 1e-8 of a slope of about 1, and some
    np.testing.assert_allclose((by_params * direction).sum(), slope, rtol=1e-6)


def test_types_of_every_version_are_those_of_the_registry() -> None:
    for run, training in itertools.product((Run("lstm"), Run("gru"), Run("lstm", version="V2")), (True, False)):
        found = run_ours(run.case(is_training=training))
        assert found[4].dtype == np.int8
        assert {each.dtype for each in found[:4]} == {np.dtype("float64")}
