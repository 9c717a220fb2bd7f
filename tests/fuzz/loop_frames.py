"""Loops of Switch, Merge, Enter, Exit and NextIteration, and what becomes of them when an edge or a name is wrong.

    python -m tests.fuzz.loop_frames --count 2000 --seed 1 [--tensorflow]

A valid graph has up to three loops, one inside the other or side by side; then some edges, ops, frame names and
attributes change. Whatever comes of it ends: with results, or with one error that is not INTERNAL.
"""

from __future__ import annotations

import collections
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from schemas import graph_pb2, types_pb2
from tests.fuzz.single_ops import Case, in_children, run, run_tensorflow
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output

_I, _B = dtypes.int32, dtypes.bool_
_TURNS = 4


class _Maker:
    """Builds loops that count up to a few iterations and add something in each."""

    def __init__(self, dice: random.Random):
        self.dice = dice
        self.graph = Graph()
        self.count = 0

    def add(self, op: str, inputs: list[Any], **attrs: Any) -> Node:
        self.count += 1
        return self.graph.add(op, f"n{self.count}", inputs, attrs={"T": _I, **attrs})

    def number(self, value: int, after: Node | None = None) -> Node:
        self.count += 1
        attrs = {"dtype": _I, "value": from_array(np.array(value, np.int32))}
        controls = [] if after is None else [after]
        return self.graph.add("Const", f"n{self.count}", control_inputs=controls, attrs=attrs)

    def loop(self, start: Any, bound: Any, depth: int) -> Output:
        """The value that `start` has after a few iterations."""
        dice = self.dice
        frame = {"frame_name": f"loop{self.count}".encode(), "parallel_iterations": dice.choice((1, 2, 10))}
        counter = self.add("Enter", [self.number(0, after=start if isinstance(start, Node) else start.node)], **frame)
        value = self.add("Enter", [start], **frame)
        limit = self.add("Enter", [bound], **frame, is_constant=True)
        heads = [self.add("Merge", [enter, enter], N=2) for enter in (counter, value)]
        less = self.add("Less", [heads[0], limit])
        going = self.graph.add("LoopCond", f"{less.name}/cond", [less])
        switches = [self.add("Switch", [head, going]) for head in heads]
        one = self.number(1, after=heads[0])
        following = self.add("AddV2", [Output(switches[0], 1), one])
        inside: Any = self.add("AddV2", [Output(switches[1], 1), following])
        if depth and dice.random() < 0.6:
            inside = self.loop(inside, limit, depth - 1)
        if dice.random() < 0.3:
            inside = self.branch(inside, one)
        for head, result in zip(heads, (following, inside), strict=True):
            head.inputs[1] = Output(self.add("NextIteration", [result]), 0)
        return Output(self.add("Exit", [switches[1]]), 0)

    def branch(self, value: Any, other: Node) -> Output:
        """One of two sums."""
        less = self.add("Less", [value, other])
        switch = self.add("Switch", [value, less])
        sums = [self.add("AddV2", [Output(switch, side), Output(switch, side)]) for side in (0, 1)]
        return Output(self.add("Merge", sums, N=2), 0)


def cases(seed: int) -> Iterator[Case]:
    """Graphs without end, every fifth as it was built."""
    number = 0
    while True:
        dice = random.Random(f"loops {seed} {number}")
        maker = _Maker(dice)
        value: Any = maker.number(3)
        bound = maker.number(_TURNS)
        for _ in range(dice.choice((1, 1, 2))):
            value = maker.loop(value, bound, 2)
        message = maker.graph.to_proto()
        fetches = [f"{value.node.name}:0"]
        if number % 5:
            for _ in range(dice.choice((1, 1, 1, 2, 3))):
                _damage(dice, message)
            if dice.random() < 0.3:
                fetches.append(dice.choice(message.node).name + ":0")
        yield Case(f"loop {seed} {number}", message.SerializeToString(), tuple(fetches))
        number += 1


def _damage(dice: random.Random, message: graph_pb2.GraphDef) -> None:
    """Change one thing."""
    nodes = message.node
    node = dice.choice(nodes)
    special = [n for n in nodes if n.op in ("Enter", "Exit", "NextIteration", "Merge", "Switch", "LoopCond")]
    if dice.random() < 0.7:
        node = dice.choice(special)
    match dice.randrange(9):
        case 0 | 1 if node.input:
            other = dice.choice(nodes)
            node.input[dice.randrange(len(node.input))] = other.name + dice.choice(("", "", ":1"))
        case 2 if node.op == "Enter":
            names = [n.attr["frame_name"].s for n in nodes if n.op == "Enter"]
            node.attr["frame_name"].s = dice.choice([*names, b"", b"x"])
        case 3 if node.op == "Enter":
            node.attr["parallel_iterations"].i = dice.choice((0, -1, 2**31 - 1, 2**62, 1))
        case 4 if node.op == "Enter":
            node.attr["is_constant"].b = not node.attr["is_constant"].b
        case 5 if node.op in ("Enter", "Exit", "NextIteration", "LoopCond"):
            # what is left of it hands its input on
            boolean = node.op == "LoopCond"
            node.op = "Identity"
            node.attr["T"].type = types_pb2.DT_BOOL if boolean else types_pb2.DT_INT32
        case 6 if node.op in ("Exit", "NextIteration"):
            node.op = dice.choice(("Exit", "NextIteration"))
        case 7:
            node.input.append("^" + dice.choice(nodes).name)
        case _:
            wanted = [n for n in nodes if n.input and n.op not in ("Const",)]
            node = dice.choice(wanted)
            place = dice.randrange(len(node.input))
            node.input[place] = dice.choice([i for n in nodes for i in n.input if not i.startswith("^")])


def main() -> int:
    import argparse
    import os

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tensorflow", action="store_true")
    options = parser.parse_args()
    os.environ["GRAPHMILL_SEGMENTS"] = "off"
    source = cases(options.seed)
    found: dict[str, list[str]] = collections.defaultdict(list)
    given = [next(source) for _ in range(options.count)]
    theirs = in_children(given, run_tensorflow, 0) if options.tensorflow else iter([(None, "", "")] * len(given))
    for (case, status, detail), (_, other, said) in zip(in_children(given, run), theirs, strict=True):
        key = status
        if other:
            key = f"{status} / {other}"
        found[key].append(f"{case.name}: {detail[:230]}" + (f" | {said[:200]}" if other else ""))
    for key, entries in sorted(found.items()):
        print(f"{len(entries):5} {key}")
        for entry in entries[:: max(1, len(entries) // 4)][:4]:
            print("       ", entry)
    return int(bool({"INTERNAL", "UNKNOWN", "HANG", "SIGNAL", "TRACEBACK"} & {k.split(" ")[0] for k in found}))


if __name__ == "__main__":
    sys.exit(main())
