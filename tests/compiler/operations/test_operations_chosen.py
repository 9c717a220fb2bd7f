"""Every kind of operation that code is made of is chosen somewhere: by a pass in a golden case, or by the importer."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compiler.golden_case import cases
from toolkit import client as gm
from toolkit.compiler.backends.cpu.emission.writers import WRITERS
from toolkit.compiler.backends.cpu.loops.whole import LOOP_WRITERS
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Dereference, Loop, ReadVariable, Select
from toolkit.compiler.ir.operations.calls import Test as LeaveUnless
from toolkit.runtime.session import Session

ops = gm.ops
_WORD = re.compile(r"^ *(?:%[^=]*= )?(\w+)\(", re.MULTILINE)
#: what no pass makes: the importer does
_IMPORTED = frozenset(kind.mnemonic for kind in (Dereference, Loop, ReadVariable, Select, LeaveUnless))
_EMITTED = frozenset(kind.mnemonic for kind in (*WRITERS, *LOOP_WRITERS))


def _chosen() -> set[str]:
    """The kinds that some pass puts in the place of others."""
    found: set[str] = set()
    for case in cases():
        found |= set(_WORD.findall(case.after)) - set(_WORD.findall(case.before))
    return found


def test_every_kind_is_chosen_by_a_pass() -> None:
    missing = _EMITTED - _IMPORTED - _chosen()
    assert not missing, f"no golden case shows how these are chosen: {', '.join(sorted(missing))}"


def _branch() -> Any:
    x = gm.placeholder("float32", [], name="x")
    return gm.cond(ops.greater(x, 0.0), lambda: ops.tanh(x), lambda: ops.neg(x))


def _loop() -> Any:
    x = gm.placeholder("float32", [], name="x")
    return gm.while_loop(lambda y: ops.less(y, 8.0), lambda y: y + x, [gm.constant(0.0)])


def _changed(use_resource: bool) -> Any:
    """A variable that the step reads and changes."""
    x = gm.placeholder("float32", [], name="x")
    w = gm.get_variable("w", [], initializer=gm.initializers.Constant(1.0), use_resource=use_resource)
    return [w + x, w.assign_add(x)]


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (_branch, {Select}),
        (_loop, {Loop, LeaveUnless}),
        (functools.partial(_changed, True), {ReadVariable}),
        (functools.partial(_changed, False), {Dereference}),
    ],
    ids=["branch", "loop", "resource variable", "reference variable"],
)
def test_imported(make: Callable[[], Any], kinds: set[type[Operation]], tmp_path: Path) -> None:
    """What only the importer makes; together these are all that no pass makes."""
    assert {kind.mnemonic for kind in kinds} <= _IMPORTED
    with gm.Graph().as_default() as graph:
        fetches = make()
        variables = gm.global_variables()
    with Session(graph, stages=str(tmp_path)) as running:
        running.run([variable.initializer for variable in variables])
        running.run(fetches, {"x:0": np.float32(1.0)})
    texts = [file.read_text(encoding="utf-8") for file in tmp_path.glob("*/00-import.txt")]
    assert {kind.mnemonic for kind in kinds} <= set(_WORD.findall("".join(texts)))
