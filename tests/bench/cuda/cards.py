"""What cards can do at most, from their data sheets: dense products, without the factor of two for sparse ones."""

from __future__ import annotations

from dataclasses import dataclass

from tests.bench.cuda.networks.base import Work


@dataclass(frozen=True)
class Card:
    """Attributes:
    bandwidth: bytes a second.
    flops: by precision, operations a second of products with sums in float32; float32 without tensor cores. A card
        that has no row of a precision has no such products.
    """

    name: str
    bandwidth: float
    flops: dict[str, float]

    def least_seconds(self, work: Work, precision: str) -> float:
        """The least time that a step could take."""
        return max(work.flops / self.flops[precision], work.bytes / self.bandwidth)


#: "NVIDIA H100 Tensor Core GPU" and "NVIDIA H200 Tensor Core GPU", data sheets of the SXM5 forms
CARDS = (
    Card("H100", 3.35e12, {"f32": 67e12, "tf32": 494.7e12, "bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12}),
    Card("H200", 4.8e12, {"f32": 67e12, "tf32": 494.7e12, "bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12}),
    Card("A100", 2.039e12, {"f32": 19.5e12, "tf32": 156e12, "bf16": 312e12, "fp16": 312e12}),
)


def card(name: str) -> Card | None:
    """The row of a card by the name that its driver tells."""
    return next((each for each in CARDS if each.name in name), None)
