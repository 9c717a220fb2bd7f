"""What is shared while one program is imported: variables taken as constants, and how much room is left for calls."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.compiler.context import RunningStep
from toolkit.compiler.importer.facts import Facts
from toolkit.compiler.ir.lasting import note_lasting
from toolkit.compiler.ir.list_facts import SharedListFacts
from toolkit.compiler.ir.value import Value
from toolkit.graph.expansion import Expansion, expansion
from toolkit.graph.functions import FunctionLibrary

_MAX_INLINED = 1 << 16  # nodes of functions that one plan puts in the place of calls, identities included
Guard = tuple[Any, Any]  # a variable and the array it must still hold


class ImportState:
    """What the import of one program shares over all of its blocks.

    Attributes:
        guards: what must still be so when the plan runs again.
        writes: the program changes variables.
        initialises: it does so once, as a rule.
        held: what is known of stacks and tensor arrays.
        room: how many more nodes of functions may be put in the place of calls.
        drawing: whether programs of functions draw random numbers, by id.
        facts: what follows from shapes and known values, found once for steps that are alike, and for plans before.
        on_host: tensors are in host memory. Elsewhere calls stay calls, for what they take and return may have to be
            copied, and kernels alone know where a variable's array is.
    """

    def __init__(self, running: RunningStep, facts: Facts, *, capture: bool, on_host: bool = True):
        self.running = running
        self.captures = capture and on_host
        self.on_host = on_host
        self.guards: list[Guard] = []
        self.writes = False
        self.initialises = False
        self.held: list[SharedListFacts] = []
        self.room = _MAX_INLINED
        self.drawing: dict[int, bool] = {}
        self.facts = facts
        self._arrays: dict[int, Any] = {}
        self._expansions: dict[int, tuple[Expansion, FunctionLibrary]] = {}

    def fits(self, library: FunctionLibrary, name: str) -> bool:
        """Whether a function with all that it calls may be put in the place of a call.

        One that calls itself is put there iteration by iteration while there is room: its branches may be known.
        """
        found = self._expansions.get(id(library))
        if found is None:
            found = self._expansions[id(library)] = (expansion(library), library)
        known = found[0]
        return self.room > 0 and (name in known.recursive or known.nodes.get(name, 0) <= self.room)

    def capture(self, cell: Any) -> Value | None:
        """A variable's present array as a constant."""
        array = self._arrays.get(id(cell))
        if array is None:
            array = cell.value
            if not self.captures or self.writes or not isinstance(array, np.ndarray):
                return None
            self._arrays[id(cell)] = array
            note_lasting(array)
            self.guards.append((cell, array))
        return Value(array.dtype, array.shape, array)
