"""The section `devices`: which nodes go where, by rules.

    devices:
      - {match: "dense*/kernel", device: /job:ps/task:0}     # by name; the first rule that fits counts
      - {op: MatMul, device: /device:GPU:0}                  # by op
      - {variables_on: ps, tasks: 2}                         # variables in turns over the tasks of a job

What an entry says itself with `device` comes first.
"""

from __future__ import annotations

import fnmatch
from contextlib import ExitStack
from typing import Any

from toolkit.client.construction.operation import Operation
from toolkit.client.spec.builder import SpecBuilder
from toolkit.formats.schema.choices import ByKey
from toolkit.formats.schema.containers import Key, ListOf, Record
from toolkit.formats.schema.scalars import DeviceName, Integer, Text
from toolkit.formats.settings.tree import Section, YamlItem
from toolkit.graph.device import DeviceSpec

_DEVICE = Key(DeviceName(), "where they go", required=True)

DEVICES = ListOf(
    ByKey({
        "match": Record({
            "match": Key(Text(), "a pattern of names of nodes", required=True),
            "op": Key(Text(), "only nodes of this op"),
            "device": _DEVICE,
        }),
        "variables_on": Record({
            "variables_on": Key(Text(), "a job", required=True),
            "tasks": Key(Integer(1), "its number of tasks", required=True),
            "worker": Key(DeviceName(), "where everything else goes"),
        }),
        "ops": Record({"ops": Key(Text(), "a pattern of ops", required=True), "device": _DEVICE}),
    })
)  # fmt: skip

#: ops that hold a variable
_HOLDERS = frozenset({"Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
                      "VarHandleOp", "HashTable", "HashTableV2"})  # fmt: skip


class _Rules:
    """The rules as a device function of the graph."""

    def __init__(self, sections: list[Section]):
        self.sections = sections
        self._turns: dict[int, int] = {}

    def __call__(self, op: Operation) -> str | None:
        for number, section in enumerate(self.sections):
            device = self._device(number, section, op)
            if device is not None:
                return str(DeviceSpec.parse(op.device).override(DeviceSpec.parse(device)))
        return None

    def _device(self, number: int, section: Section, op: Operation) -> str | None:
        if "variables_on" in section:
            if op.type in _HOLDERS:
                turn = self._turns.get(number, 0)
                self._turns[number] = turn + 1
                return f"/job:{section['variables_on'].value}/task:{turn % section.integer('tasks')}"
            worker = section.get("worker")
            return None if worker is None else worker.text()
        if "ops" in section:
            return section["device"].text() if fnmatch.fnmatchcase(op.type, section["ops"].text()) else None
        kind: Any = section.get("op")
        fits = fnmatch.fnmatchcase(op.name, section["match"].text()) and (kind is None or kind.value == op.type)
        return section["device"].text() if fits else None


def enter(spec: SpecBuilder, found: YamlItem | None, stack: ExitStack) -> None:
    """Let the rules decide for all nodes that are made within the stack."""
    if found is None or not isinstance(found.value, list):
        return
    sections = [item.section() for item in found.items() if not spec.mistakes.has(item)]
    if sections:
        stack.enter_context(spec.graph.device(_Rules(sections)))
