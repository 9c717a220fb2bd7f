"""The rows of `--suite cuda`, those that matter most first: when its time is up, the last ones are left out."""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.cuda.networks.base import Network, Optimizer
from tests.bench.cuda.networks.chain import Chain
from tests.bench.cuda.networks.encoder import Encoder
from tests.bench.cuda.networks.perceptron import Perceptron
from tests.bench.cuda.networks.recurrent import Recurrent
from tests.bench.cuda.networks.residual import Residual

#: float32 throughout; products of factors with 10 bits; products, and what lies between them, with 7, and with 10; and
#: as with 7, but products with weights with 3
PRECISIONS = ("f32", "tf32", "bf16", "fp16", "fp8")


@dataclass(frozen=True)
class CudaWorkload:
    """One row for each peer.

    Attributes:
        name: unique, with the precision.
        optimizer: it learns; None: inference.
        latency: its time is that of launches: PyTorch compiles it with CUDA graphs.
        fed: also measured with a copy in of what it is given and one out of what it gives.
        limit: microseconds that a step may take at most; None: none.
        bandwidth: held to the card's copies, of which it shall reach 0.8.
    """

    name: str
    network: Network
    precision: str
    optimizer: Optimizer | None = None
    latency: bool = False
    fed: bool = False
    limit: float | None = None
    bandwidth: bool = False

    @property
    def training(self) -> bool:
        return self.optimizer is not None


def _workloads() -> list[CudaWorkload]:
    sgd, momentum, adam = Optimizer("sgd", 0.05), Optimizer("momentum", 0.01), Optimizer("adam", 1e-4)
    found = [
        CudaWorkload("MLP 784-512-512-10 step batch 128 SGD f32", Perceptron(), "f32", sgd, latency=True),
        CudaWorkload("MLP 784-512-512-10 step batch 128 Adam f32", Perceptron(), "f32", adam, latency=True),
        CudaWorkload("a * x + r, 256 MB f32", Chain("triad"), "f32", bandwidth=True),
        CudaWorkload("gelu(a * x + b) + r, 256 MB f32", Chain("gelu"), "f32", bandwidth=True),
        CudaWorkload(
            "small step 64-64-64 batch 8 f32", Perceptron((64, 64, 64), 8), "f32", latency=True, fed=True, limit=20.0
        ),
    ]

    def residual(batch: int, precision: str) -> None:
        name = f"ResNet-50 inference batch {batch} {precision}"
        found.append(CudaWorkload(name, Residual(batch), precision, latency=batch == 1, fed=True))

    def encoder(batch: int, precision: str) -> None:
        name = f"transformer 12 x 768 inference batch {batch} {precision}"
        found.append(CudaWorkload(name, Encoder(batch), precision, latency=batch == 8, fed=True))

    def residual_training(precision: str) -> None:
        name = f"ResNet-50 training batch 64 {precision}"
        found.append(CudaWorkload(name, Residual(64), precision, momentum))

    def encoder_training(batch: int, precision: str) -> None:
        name = f"transformer 12 x 768 training batch {batch} {precision}"
        found.append(CudaWorkload(name, Encoder(batch), precision, adam))

    def decoder(batch: int, tokens: int, precision: str) -> None:
        network = Encoder(batch, tokens=tokens, causal=True)
        for what, optimizer in (("inference", None), ("training", adam)):
            name = f"decoder 12 x 768, {tokens} tokens, {what} batch {batch} {precision}"
            found.append(CudaWorkload(name, network, precision, optimizer))

    def recurrent_training(precision: str) -> None:
        name = f"LSTM 2 x 512, 100 steps, training batch 64 {precision}"
        found.append(CudaWorkload(name, Recurrent(), precision, adam))

    # one precision of each first: tensor cores are what cards are bought for
    residual(1, "tf32")
    residual(64, "tf32")
    encoder(8, "tf32")
    residual_training("tf32")
    encoder_training(8, "tf32")
    recurrent_training("tf32")
    residual(64, "bf16")
    encoder(32, "bf16")
    residual_training("bf16")
    encoder_training(32, "bf16")
    residual(1, "f32")
    residual(64, "f32")
    encoder(8, "f32")
    found.append(CudaWorkload("MLP 784-512-512-10 step batch 128 SGD tf32", Perceptron(), "tf32", sgd, latency=True))
    found.append(CudaWorkload("tanh(a * x + b) * sigmoid(r), 256 MB f32", Chain("tanh"), "f32", bandwidth=True))
    encoder(32, "tf32")
    encoder_training(32, "tf32")
    recurrent_training("f32")
    recurrent_training("bf16")
    residual(1, "bf16")
    encoder(8, "bf16")
    residual(64, "fp16")
    encoder(32, "fp16")
    encoder(8, "fp8")
    encoder(32, "fp8")
    encoder(32, "f32")
    residual_training("f32")
    encoder_training(8, "f32")
    for precision in ("tf32", "bf16"):
        decoder(8, 512, precision)
        decoder(4, 1024, precision)
    return found


def _tiny() -> list[CudaWorkload]:
    """Networks of the same kinds that a processor computes in a moment, for tests."""
    residual, encoder = Residual(2, 32, 8, (1, 1), 10), Encoder(2, 1, 32, 2, 8)
    networks: dict[str, Network] = {
        "perceptron": Perceptron((12, 16, 10), 8), "residual": residual, "encoder": encoder,
        "recurrent": Recurrent(8, 2, 5, 4), "chain": Chain("gelu", 16, 8), "tanh": Chain("tanh", 16, 8),
        "triad": Chain("triad", 16, 8),
    }  # fmt: skip
    found: list[CudaWorkload] = []
    for name, network in networks.items():
        found.append(CudaWorkload(f"tiny {name}", network, "f32", fed=True))
        if "labels" in network.data():
            for kind in ("sgd", "momentum", "adam"):
                found.append(CudaWorkload(f"tiny {name} {kind}", network, "f32", Optimizer(kind, 0.01)))
    return found


WORKLOADS = {workload.name: workload for workload in _workloads()}
TINY = {workload.name: workload for workload in _tiny()}


def find(name: str) -> CudaWorkload:
    """A workload by its name, a tiny one too."""
    return WORKLOADS[name] if name in WORKLOADS else TINY[name]
