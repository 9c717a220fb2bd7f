"""Rows about devices."""

from __future__ import annotations

from tests.passes.validate_corpus.rows import both, inside, main, on, put, row
from tests.passes.validate_graphs import (
    F,
    S,
    add,
    calls,
    const,
    meta,
    net,
)

for device in (
    "gpu",
    "/gpu",
    "/device:GPU:x",
    "/job:1worker",
    "/job:worker/task:one",
    "CPU:0",
    "/job:a/job:b",
    "/devise:CPU:0",
):
    row(f"the device {device}", "devices/name", net, on(device, "relu"), "relu")
row("a device in a function", "devices/name", calls, inside("negative", on("nowhere", "neg")), "neg")
row("placed with nothing", "devices/colocation", net, put("relu", "_class", [b"loc:@gone"]), "relu")
row("a variable's partner gone", "devices/colocation", meta, main(put("w/assign", "_class", [b"loc:@v"])), "w/assign")
row("variables of two tasks for one node", "devices/conflict", meta,
    main(both(lambda g: add(g, "RefMerge", "either", ["w", "b"], T=F, N=2), on("/job:ps/task:0", "w"),
              on("/job:worker/task:0", "b"))))  # fmt: skip
row("two jobs for one variable", "devices/soft-conflict", meta,
    main(both(on("/job:ps/task:0", "w"), on("/job:worker/task:0", "w/assign"))))  # fmt: skip
row("two tasks for one variable", "devices/soft-conflict", meta,
    main(both(on("/job:ps/task:0", "w"), on("/job:ps/task:1", "w/assign"))))  # fmt: skip
row("two tasks by colocation", "devices/soft-conflict", net,
    both(put("relu", "_class", [b"loc:@prob"]), on("/job:a/task:0", "relu"), on("/job:a/task:1", "prob")))  # fmt: skip
row("two types for one variable", "devices/soft-conflict", meta,
    main(both(on("/device:CPU:0", "w"), on("/device:GPU:0", "w/assign"))))  # fmt: skip
row("a file read on a GPU", "devices/no-kernel", net,
    both(lambda g: const(g, "name", [b"a"], [], S), lambda g: add(g, "StringLength", "length", ["name"]),
         on("/device:GPU:0", "length")), "length")  # fmt: skip
row("text joined on a GPU", "devices/no-kernel", net,
    both(lambda g: const(g, "name", [b"a"], [], S), lambda g: add(g, "StringJoin", "join", ["name", "name"], N=2),
         on("/job:w/task:0/device:GPU:1", "join")), "join")  # fmt: skip
