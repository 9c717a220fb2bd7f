"""What holds of operations by their class: passes ask for a trait, not for a list of classes."""

from __future__ import annotations

import enum


class Trait(enum.Flag):
    """Attributes:
    EFFECT: it must run although nobody needs its outputs.
    IN_ARENA: its outputs lie in the arena.
    READS_ANYWHERE: it reads its inputs wherever they are, outside the arena too.
    REUSES_INPUT: its output may take the storage of an input of the same shape and type that nobody needs any more.
    ADDRESSABLE: it finds inputs and outputs through addresses that can be changed between two runs.
    WRITES_ANYWHERE: it writes its output wherever that is, outside the arena too.
    VIEW: its output is its input's memory, or a part of it; nothing is computed.
    MACHINE_CODE: it is a compiled function.
    MEMORY: it moves what others computed, inside a compiled loop.
    READS_VARIABLE: it reads a variable, and changes none.
    KEEPS_TYPE: its output has the type of its input, whichever of the floating types that is.
    """

    NONE = 0
    EFFECT = enum.auto()
    IN_ARENA = enum.auto()
    READS_ANYWHERE = enum.auto()
    REUSES_INPUT = enum.auto()
    ADDRESSABLE = enum.auto()
    WRITES_ANYWHERE = enum.auto()
    VIEW = enum.auto()
    MACHINE_CODE = enum.auto()
    MEMORY = enum.auto()
    READS_VARIABLE = enum.auto()
    KEEPS_TYPE = enum.auto()
