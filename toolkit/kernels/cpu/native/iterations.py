"""Whole loops as machine code: iteration after iteration without the interpreter.

A loop is a module with `void run(ptr table)`. The table holds what differs from one instance to the next: addresses of
tensors, compiled functions and prepared primitives, and for every sequence of tensors its base, length, capacity and
flags. Entry 0 tells how the call ended, entry 1 how many iterations it may make.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Status(enum.IntEnum):
    """How a call of a loop ended; it may be called again after GROW and PAUSED."""

    DONE = 0
    GROW = 1  # a sequence is full
    IRREGULAR = 2  # an element that is not there, or twice: the interpreter knows what that means
    PAUSED = 3  # it made as many iterations as it may
    FAILED = 4  # a primitive did


STATUS, LIMIT = 0, 1
BASE, LENGTH, CAPACITY, FLAGS = range(4)  # of a sequence, from its first entry on
UNSET, SET, GONE = range(3)  # what a flag says of an element
_OF_A_NUMBER = 8  # bytes of the largest


@dataclass(slots=True)
class Sequence:
    """A list, stack or array of tensors while a loop runs.

    Attributes:
        entry: the first of its four entries in the table.
        stride: bytes from one element to the next.
        pushes, pops: how many of them an iteration makes.
        flags: elements are marked when they are set.
        once: an element is set once, and gone when it was read.
    """

    entry: int
    stride: int
    pushes: int = 0
    pops: int = 0
    flags: bool = False
    once: bool = False


@dataclass(frozen=True, slots=True)
class Moving:
    """A tensor that is another element of a sequence in every iteration, and who must be told where it is.

    Attributes:
        entry: holds its address.
        slots: entries with addresses of operands of compiled loops, and how many bytes behind its start each is.
        memories: entries with oneDNN's memories.
        set_handle: the entry with the function that tells these.
    """

    entry: int
    slots: tuple[tuple[int, int], ...]
    memories: tuple[int, ...]
    set_handle: int


@dataclass
class Iterations:
    """Writes the function, step by step.

    Attributes:
        entries: how long the table is.
        numbers: entries with sizes: a loop over other sizes has the same text.
    """

    entries: int = 2
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    sequences: list[Sequence] = field(default_factory=list[Sequence])
    _lines: list[str] = field(default_factory=list[str])
    _counter: int = 0

    def reserve(self, count: int = 1) -> int:
        """Entries of the table; the first."""
        first = self.entries
        self.entries += count
        return first

    def sequence(self, stride: int, *, flags: bool, once: bool) -> Sequence:
        made = Sequence(self.reserve(4), stride, flags=flags, once=once)
        self.sequences.append(made)
        return made

    # -- steps -----------------------------------------------------------------------------------------------------

    def function(self, function: int, operands: int) -> None:
        """Call the compiled loop whose address is in one entry with the operands whose address is in another."""
        self._line(f"call void {self._load(function)}(ptr {self._load(operands)})")

    def primitive(self, execute: int, handle: int, stream: int, count: int, arguments: int) -> None:
        """Execute a oneDNN primitive; the loop fails where it does."""
        status = self._emit(
            f"call i32 {self._load(execute)}(ptr {self._load(handle)}, ptr {self._load(stream)}, i32 {count}, "
            f"ptr {self._load(arguments)})"
        )
        self._leave_if(self._emit(f"icmp ne i32 {status}, 0"), Status.FAILED)

    def total(
        self, filled: int, room: int, operands: list[tuple[int, int, int]], call: tuple[int, int, int, int, int]
    ) -> None:
        """Put tensors aside, behind those of iterations before; where that fills the room, execute a primitive on all.

        Args:
            filled: the entry that says for how many iterations there are tensors.
            room: for how many iterations there may be.
            operands: of each the entries of the place for all iterations and of the tensor, and the tensor's size.
            call: what `primitive` takes.
        """
        number = self._emit(f"load i64, ptr {self._address(filled)}")
        for place, tensor, size in operands:
            offset = self._emit(f"mul i64 {number}, {self._size(size)}")
            target = self._emit(f"getelementptr i8, ptr {self._load(place)}, i64 {offset}")
            self._copy(target, self._load(tensor), size)
        after = self._emit(f"add i64 {number}, 1")
        at = self._address(filled)
        self._line(f"store i64 {after}, ptr {at}")
        full = self._emit(f"icmp eq i64 {after}, {self._size(room)}")
        self._counter += 1
        whole, on = f"whole{self._counter}", f"rest{self._counter}"
        self._line(f"br i1 {full}, label %{whole}, label %{on}")
        self._lines.append(f"{whole}:")
        self.primitive(*call)
        self._line(f"store i64 0, ptr {at}")
        self._line(f"br label %{on}")
        self._lines.append(f"{on}:")

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes from the address in one entry to that in another."""
        self._copy(self._load(target), self._load(source), size)

    def push(self, sequence: Sequence, source: int) -> None:
        """Put a tensor behind the last element."""
        place = self._emit(f"add i64 {self._number(sequence, LENGTH)}, {sequence.pushes}")
        self.count(sequence)
        self._copy(self._element(sequence, place), self._load(source), sequence.stride)

    def count(self, sequence: Sequence) -> None:
        """Say that there is one element more."""
        sequence.pushes += 1

    def pop(self, sequence: Sequence, target: int | Moving) -> None:
        """Take the last element."""
        self._read(sequence, self.drop(sequence), target)

    def move_to_push(self, sequence: Sequence, which: int, moving: Moving) -> None:
        """Let a tensor be made where the iteration's first, second, ... element that is pushed belongs."""
        place = self._emit(f"add i64 {self._number(sequence, LENGTH)}, {which}")
        self._move(self._element(sequence, place), moving)

    def _read(self, sequence: Sequence, place: str, target: int | Moving) -> None:
        """Copy an element, or say where it is."""
        element = self._element(sequence, place)
        if isinstance(target, Moving):
            self._move(element, target)
        else:
            self._copy(self._load(target), element, sequence.stride)

    def _move(self, place: str, moving: Moving) -> None:
        self._line(f"store ptr {place}, ptr {self._address(moving.entry)}")
        for slot, offset in moving.slots:
            start = self._emit(f"getelementptr i8, ptr {place}, i64 {offset}") if offset else place
            self._line(f"store ptr {start}, ptr {self._load(slot)}")
        for memory in moving.memories:
            function = self._load(moving.set_handle)
            self._emit(f"call i32 {function}(ptr {self._load(memory)}, ptr {place})")

    def drop(self, sequence: Sequence) -> str:
        """Let the last element go; its index."""
        sequence.pops += 1
        place = self._emit(f"sub i64 {self._number(sequence, LENGTH)}, {sequence.pops}")
        self._leave_if(self._emit(f"icmp slt i64 {place}, 0"), Status.IRREGULAR)
        return place

    def get(self, sequence: Sequence, index: int, bits: int, target: int | Moving) -> None:
        """Read an element; the index is an integer of so many bits."""
        place = self._index(sequence, index, bits)
        if sequence.flags:
            flag = self._flag(sequence, place)
            state = self._emit(f"load i8, ptr {flag}")
            self._leave_if(self._emit(f"icmp ne i8 {state}, {SET}"), Status.IRREGULAR)
            if sequence.once:
                self._line(f"store i8 {GONE}, ptr {flag}")
        self._read(sequence, place, target)

    def set(self, sequence: Sequence, index: int, bits: int, source: int) -> None:
        """Write an element."""
        place = self._index(sequence, index, bits)
        flag = self._flag(sequence, place)
        if sequence.once:
            state = self._emit(f"load i8, ptr {flag}")
            self._leave_if(self._emit(f"icmp ne i8 {state}, {UNSET}"), Status.IRREGULAR)
        self._line(f"store i8 {SET}, ptr {flag}")
        self._copy(self._element(sequence, place), self._load(source), sequence.stride)

    def test(self, condition: int) -> None:
        """Leave the loop unless the bool at an address is true."""
        byte = self._emit(f"load i8, ptr {self._load(condition)}")
        self._leave_if(self._emit(f"icmp eq i8 {byte}, 0"), Status.DONE)

    # -- the whole -------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The module."""
        body, self._lines = self._lines, []
        for sequence in self.sequences:
            if sequence.pushes:
                length = self._number(sequence, LENGTH)
                after = self._emit(f"add i64 {length}, {sequence.pushes}")
                capacity = self._number(sequence, CAPACITY)
                self._leave_if(self._emit(f"icmp sgt i64 {after}, {capacity}"), Status.GROW)
        head, self._lines = self._lines, []
        for sequence in self.sequences:
            if sequence.pushes != sequence.pops:
                after = self._emit(f"add i64 {self._number(sequence, LENGTH)}, {sequence.pushes - sequence.pops}")
                self._line(f"store i64 {after}, ptr {self._address(sequence.entry + LENGTH)}")
        tail, self._lines = self._lines, []
        return "\n".join([
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            "define void @run(ptr %table) {", "entry:",
            f"%limit_at = getelementptr i64, ptr %table, i64 {LIMIT}", "%limit = load i64, ptr %limit_at",
            "br label %iteration", "iteration:", "%done = phi i64 [0, %entry], [%made, %next]",
            *head, *body, *tail,
            "%made = add i64 %done, 1", "%more = icmp ult i64 %made, %limit", "br i1 %more, label %next, label %pause",
            "next:", "br label %iteration",
            "pause:", "br label %leave",
            "leave:", "%status = phi i64 " + ", ".join([f"[{int(Status.PAUSED)}, %pause]", *self._exits(head + body)]),
            "store i64 %status, ptr %table", "ret void", "}", "",
        ])  # fmt: skip

    def _exits(self, lines: list[str]) -> list[str]:
        """The ways out of the middle: each has a block of its own, whose name says why."""
        return [f"[{line.split('_')[1]}, %{line[:-1]}]" for line in lines if line.startswith("exit_")]

    def _leave_if(self, condition: str, status: Status) -> None:
        self._counter += 1
        out, on = f"exit_{int(status)}_{self._counter}", f"on{self._counter}"
        self._line(f"br i1 {condition}, label %{out}, label %{on}")
        self._lines += [f"{out}:", "br label %leave", f"{on}:"]

    def _line(self, text: str) -> None:
        self._lines.append(text)

    def _emit(self, text: str) -> str:
        self._counter += 1
        name = f"%s{self._counter}"
        self._lines.append(f"{name} = {text}")
        return name

    def _address(self, entry: int) -> str:
        return self._emit(f"getelementptr i64, ptr %table, i64 {entry}")

    def _load(self, entry: int) -> str:
        return self._emit(f"load ptr, ptr {self._address(entry)}")

    def _number(self, sequence: Sequence, which: int) -> str:
        return self._emit(f"load i64, ptr {self._address(sequence.entry + which)}")

    def _copy(self, target: str, source: str, size: int) -> None:
        self._line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {self._size(size)}, i1 false)")

    def _size(self, size: int) -> str:
        """A size as the table has it; that of one number is in the text, for which no function is called."""
        if size <= _OF_A_NUMBER:
            return str(size)
        entry = self.reserve()
        self.numbers[entry] = size
        return self._emit(f"load i64, ptr {self._address(entry)}")

    def _element(self, sequence: Sequence, place: str) -> str:
        offset = self._emit(f"mul i64 {place}, {self._size(sequence.stride)}")
        return self._emit(f"getelementptr i8, ptr {self._load(sequence.entry + BASE)}, i64 {offset}")

    def _flag(self, sequence: Sequence, place: str) -> str:
        return self._emit(f"getelementptr i8, ptr {self._load(sequence.entry + FLAGS)}, i64 {place}")

    def _index(self, sequence: Sequence, index: int, bits: int) -> str:
        number = self._emit(f"load i{bits}, ptr {self._load(index)}")
        if bits < 64:
            number = self._emit(f"sext i{bits} {number} to i64")
        # as unsigned, a negative index is beyond every length
        outside = self._emit(f"icmp uge i64 {number}, {self._number(sequence, LENGTH)}")
        self._leave_if(outside, Status.IRREGULAR)
        return number
