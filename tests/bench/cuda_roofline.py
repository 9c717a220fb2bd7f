"""What a card's memory and arithmetic allow for each network as it is compiled, without the card.

    python -m tests.bench.cuda_roofline                      # a line a network
    python -m tests.bench.cuda_roofline --only ResNet --launches     # with the launches that take longest

A driver on paper (`tests.bench.cuda.paper`) is asked for a step of each workload of `--suite cuda`. Each launch takes
at least as long as the card needs to move its bytes, or for its operations, whichever is longer. The sum is the least
that the step as compiled could take; beside it stand the sum where no launch takes less than `FLOOR`, and the least of
any program: weights, data and products alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.cuda.cards import CARDS, Card
from tests.bench.cuda.paper import Launch, PaperDriver
from tests.bench.cuda.workloads import WORKLOADS, CudaWorkload

#: seconds that a kernel takes, however small it is: an assumption, which `python -m tests.gpu.smoke graph` measures
FLOOR = 2e-6


@dataclass(frozen=True)
class Estimate:
    """Attributes:
    launches: of one step.
    note: nodes that did not run on the card.
    """

    workload: CudaWorkload
    launches: list[Launch]

    def seconds(self, launch: Launch, card: Card) -> float:
        # each product by the type of its factors; what is beside products is not done by tensor cores
        peak = card.flops[launch.precision if launch.kind == "product" else "f32"]
        return max(launch.bytes / card.bandwidth, launch.flops / peak)

    def total(self, card: Card, floor: float = 0.0) -> float:
        return sum(max(floor, self.seconds(each, card)) for each in self.launches if each.kind != "copy")


def estimate(workload: CudaWorkload) -> Estimate:
    """The launches of a step that has run before."""
    from tests.bench.cuda.engines.graphmill_gpu import Loaded
    from toolkit.kernels.cuda.driver import choose
    from toolkit.kernels.cuda.libraries.precision import allow_tf32

    allow_tf32(workload.precision != "f32")  # which an earlier workload may have turned on
    driver = PaperDriver()
    with choose.using(driver):
        engine = Loaded(workload, strict=True)
        for _ in range(3):  # the first ones compile, and record
            engine.run()
        engine.wait()
        launches = driver.open(0).launches
        launches.clear()
        engine.run()
        engine.wait()
        return Estimate(workload, list(launches))


def line(found: Estimate, card: Card) -> str:
    """A line of the table."""
    work = found.workload.network.work(found.workload.training)
    least = card.least_seconds(work, found.workload.precision)
    total, floored = found.total(card), found.total(card, FLOOR)
    kernels = [each for each in found.launches if each.kind != "copy"]
    products = [each for each in kernels if each.kind == "product"]
    captured = "captured" if kernels and all(each.captured for each in kernels) else "launched"
    return (
        f"| {found.workload.name} | {len(kernels)} ({len(products)}) {captured} "
        f"| {sum(each.bytes for each in kernels) / 1e6:.1f} | {sum(each.flops for each in kernels) / 1e9:.2f} "
        f"| {1e3 * total:.3f} | {1e3 * floored:.3f} | {1e3 * least:.3f} |"
    )


def details(found: Estimate, card: Card, count: int) -> list[str]:
    """The launches that take longest, those of one name and size together."""
    groups: dict[tuple[str, int, int], list[Launch]] = {}
    for each in found.launches:
        groups.setdefault((each.name, each.blocks, each.bytes), []).append(each)
    longest = sorted(groups.values(), key=lambda same: -found.seconds(same[0], card) * len(same))
    lines = [
        f"    {len(same):4} x {same[0].name:<70} {same[0].blocks:7} blocks {same[0].bytes / 1e6:9.2f} MB "
        f"{same[0].flops / 1e9:8.3f} GFLOP {1e6 * found.seconds(same[0], card):8.1f} us"
        for same in longest[:count]
    ]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns 1 if a network has none."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cuda_roofline", description=__doc__)
    parser.add_argument("--only", action="append", metavar="TEXT", help="only workloads with TEXT in their names")
    parser.add_argument("--card", default="H100", choices=[each.name for each in CARDS])
    parser.add_argument("--launches", type=int, nargs="?", const=20, default=0, metavar="N", help="the N longest, too")
    parser.add_argument("--markdown", metavar="FILE", help="also write the table")
    args = parser.parse_args(arguments)
    card = next(each for each in CARDS if each.name == args.card)
    wanted = [
        each
        for name, each in WORKLOADS.items()
        if each.precision in card.flops and (not args.only or any(text in name for text in args.only))
    ]
    peaks = ", ".join(f"{flops / 1e12:.0f} TFLOP/s {precision}" for precision, flops in card.flops.items())
    rows = [
        f"{card.name}: {card.bandwidth / 1e12:.2f} TB/s, {peaks} (dense); times in ms",
        "",
        f"| step | launches (products) | MB | GFLOP | as compiled | with {1e6 * FLOOR:.1f} us each | least |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    print("\n".join(rows))
    failed = 0
    for workload in wanted:
        try:
            found = estimate(workload)
        except Exception as error:
            failed += 1
            print(f"{workload.name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", file=sys.stderr)
            continue
        rows.append(line(found, card))
        print(rows[-1], flush=True)
        if args.launches:
            print("\n".join(details(found, card, args.launches)))
    if args.markdown:
        Path(args.markdown).write_text("\n".join(rows) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
