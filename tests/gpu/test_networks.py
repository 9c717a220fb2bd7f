"""Networks and their training on a GPU beside the CPU: small ones on the fake driver, whole ones on hardware."""

from __future__ import annotations

import dataclasses

import pytest

from tests.bench.cuda.agreement import disagreement
from tests.bench.cuda.engines import OURS, load
from tests.bench.cuda.networks.encoder import Encoder
from tests.bench.cuda.networks.perceptron import Perceptron
from tests.bench.cuda.workloads import TINY, WORKLOADS, CudaWorkload
from tests.gpu.driver import require_hardware
from toolkit.compiler.backends.cuda.precision import float8_rules

#: one optimizer of each network in every run: each has tests of its own
SMALL = [name for name in TINY if not name.endswith((" momentum", " adam")) or "perceptron" in name]
#: batches that the CPU computes in seconds
WHOLE = [
    "MLP 784-512-512-10 step batch 128 Adam f32", "ResNet-50 inference batch 1 f32",
    "transformer 12 x 768 inference batch 8 f32", "LSTM 2 x 512, 100 steps, training batch 64 f32",
    "ResNet-50 inference batch 1 bf16", "transformer 12 x 768 inference batch 8 bf16",
    "transformer 12 x 768 inference batch 32 fp8",
]  # fmt: skip


#: with factors of 16 bits
NARROW = ["tiny perceptron", "tiny residual", "tiny residual momentum", "tiny encoder", "tiny encoder adam",
          "tiny recurrent", "tiny recurrent adam"]  # fmt: skip


def _assert_agree(workload: CudaWorkload) -> None:
    expected = load(OURS, dataclasses.replace(workload, precision="f32"), "cpu").results()
    problem = disagreement(workload, load(OURS, workload, "gpu").results(), expected)
    assert not problem, problem


@pytest.mark.parametrize("name", SMALL)
def test_small_networks(name: str) -> None:
    _assert_agree(TINY[name])


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", NARROW)
def test_small_networks_with_factors_of_16_bits(name: str, precision: str) -> None:
    """Beside float32 on the CPU, within what 16 bits allow; training too."""
    _assert_agree(dataclasses.replace(TINY[name], precision=precision))


#: with weights of 8 bits where that pays; tiny ones, whose sizes are multiples of 16, as if it always did
EIGHT = {"encoder": Encoder(2, 2, 64, 4, 16), "perceptron": Perceptron((48, 64, 32), 16)}


def _with_weights_of_8_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float8_rules, "HOPPER", float8_rules.Pace(3.35e12, 1e9, 0.0))
    _assert_agree(CudaWorkload(f"tiny {name} fp8", EIGHT[name], "fp8", fed=True))


@pytest.mark.parametrize("name", EIGHT)
def test_small_networks_with_weights_of_8_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_weights_of_8_bits(name, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("name", EIGHT)
def test_weights_of_8_bits_on_hardware(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_hardware()
    _with_weights_of_8_bits(name, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*TINY, *WHOLE])
def test_networks_on_hardware(name: str) -> None:
    require_hardware()
    _assert_agree(TINY[name] if name in TINY else WORKLOADS[name])


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", NARROW)
def test_factors_of_16_bits_on_hardware(name: str, precision: str) -> None:
    """Which engines of cuDNN give float32 of 16-bit operands, and with which epilogues, only hardware tells."""
    require_hardware()
    _assert_agree(dataclasses.replace(TINY[name], precision=precision))
