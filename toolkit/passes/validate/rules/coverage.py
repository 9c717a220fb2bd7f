"""Whether there is a kernel for every node on the device it is meant to run on (`--runs-on`)."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.errors import GraphmillError
from toolkit.graph.node import CONTROL_FLOW_OPS
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject

#: the executor itself does these, or they never run on their own
_NO_KERNEL_NEEDED = CONTROL_FLOW_OPS | {
    "Placeholder", "PlaceholderV2", "_Arg", "_Retval", "_Send", "_Recv", "_HostSend", "_HostRecv", "Const", "NoOp",
}  # fmt: skip


@family(
    "coverage",
    Rule("no-kernel", Severity.ERROR, "graphmill has no kernel for the op on this device", "run it on another device"),
    Rule("no-kernel-for-types", Severity.ERROR, "graphmill has no kernel for the op with these types on this device",
         "cast to a type that it takes"),
)  # fmt: skip
def coverage(subject: Subject) -> Iterator[Problem]:
    device = subject.options.runs_on
    if not device:
        return
    from toolkit.kernels import registry

    library = subject.graph.library
    for body in subject.bodies:
        for node in body.sound.nodes:
            if node.op in _NO_KERNEL_NEEDED or node.op in library:
                continue
            entries = registry.candidates(node.op, device)
            if not entries:
                yield Problem(
                    "coverage/no-kernel", f"there is no {device} kernel for {node.op}", node.name, body.function
                )
                continue
            try:
                if any(entry.accepts(node) for entry in entries):
                    continue
            except GraphmillError:
                continue
            given = ", ".join(f"{key} = {node.attr(key)}" for key in sorted({k for e in entries for k in e.types}))
            message = f"no {device} kernel for {node.op} takes {given}"
            yield Problem("coverage/no-kernel-for-types", message, node.name, body.function)
