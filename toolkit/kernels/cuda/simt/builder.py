"""Building kernels: `Code`'s arithmetic for one number per thread, with memory, control flow and what threads share.

Since it is a `Code`, whatever writes elementwise ops for the CPU (`native.operations.OPERATORS`, `native.functions`)
writes them for GPUs, with the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import cast

from toolkit.errors import InternalError
from toolkit.kernels.cpu.native.code import Code, Lanes
from toolkit.kernels.cuda.simt.ir import (
    FLOATING,
    SIZES,
    WARP,
    If,
    Instruction,
    KernelBuffer,
    Operation,
    Register,
    SimtKernel,
    Value,
    While,
)
from toolkit.kernels.cuda.simt.matrix import LEFT, MATRIX_KINDS, RIGHT, SUMS

_ATOMICS = frozenset({"add", "fadd", "max", "min", "umax", "umin", "and", "or", "xor", "exchange"})
_SHUFFLES = frozenset({"xor", "down", "up", "index"})
_MOST_THREADS = 1024  # of a block, on every GPU
_BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "bfloat": 16, "float": 32, "double": 64}


class RegisterVariable:
    """A register that is written more than once."""

    def __init__(self, builder: KernelBuilder, variable: Register):
        self._builder = builder
        self._variable = variable
        self.type = variable.type

    def get(self) -> Value:
        """Its value now."""
        return self._builder.operation("get", (), self.type, self._variable)

    def set(self, value: Lanes) -> None:
        """Give it another one, of its type."""
        if value.type != self.type:
            raise InternalError(f"variable {self._variable.name} of type {self.type} was set to a {value.type}")
        self._builder.effect("set", (value,), self._variable)


class KernelBuilder(Code):
    """Writes one kernel.

    Args:
        name: for people; it becomes part of the function's.
        block: threads of a block, a multiple of 32 up to 1024.
    """

    def __init__(self, name: str, block: int = 256):
        super().__init__()
        if block % WARP or not WARP <= block <= _MOST_THREADS:
            raise InternalError(f"kernel {name}: a block of {block} threads; expected a multiple of 32 up to 1024")
        self.name = name
        self.block = block
        self._parameters: list[KernelBuffer | Value] = []
        self._shared: list[KernelBuffer] = []
        self._local: list[KernelBuffer] = []
        self._variables: list[Register] = []
        self._body: list[Instruction] = []
        self._into = self._body
        self._last_if: If | None = None
        self._names: set[str] = set()
        self._number = 0

    # -- what it is given ----------------------------------------------------------------------------------------

    def buffer(self, name: str, type: str, *, written: bool = False) -> KernelBuffer:
        """An argument in global memory."""
        made = KernelBuffer(self._named(name), type, written=written)
        self._parameters.append(made)
        return made

    def scalar(self, name: str, type: str) -> Value:
        """An argument that is a number."""
        made = Value("%" + self._named(name), type)
        self._parameters.append(made)
        return made

    def shared(self, name: str, type: str, size: int) -> KernelBuffer:
        """Memory of the block; what is in it at first is anything."""
        made = KernelBuffer(self._named(name), type, "shared", size, True)
        self._shared.append(made)
        return made

    def local(self, name: str, type: str, size: int) -> KernelBuffer:
        """Memory of the thread; with constant indices it becomes registers."""
        made = KernelBuffer(self._named(name), type, "local", size, True)
        self._local.append(made)
        return made

    def _named(self, name: str) -> str:
        if name in self._names:
            raise InternalError(f"kernel {self.name} has two things called {name}")
        self._names.add(name)
        return name

    # -- instructions --------------------------------------------------------------------------------------------

    def operation(
        self, opcode: str, operands: tuple[Lanes, ...], type: str, place: KernelBuffer | Register | None = None
    ) -> Value:
        """An instruction with a result."""
        self._number += 1
        result = Value(f"%v{self._number}", type)
        self._append(Operation(opcode, cast("tuple[Value, ...]", operands), result, place))
        return result

    def effect(self, opcode: str, operands: tuple[Lanes, ...], place: KernelBuffer | Register | None = None) -> None:
        """An instruction without one."""
        self._append(Operation(opcode, cast("tuple[Value, ...]", operands), None, place))

    def _append(self, instruction: Instruction) -> None:
        self._into.append(instruction)
        self._last_if = None

    def emit(self, type: str, text: str) -> Value:
        """Text of the processor's own instructions has no meaning here."""
        raise InternalError(f"kernel {self.name}: {text!r} is an instruction of the CPU's")

    def number(self, value: float, type: str) -> Value:
        if type in FLOATING:
            return Value(repr(float(value)), type, float(value))
        return Value(str(int(value)), type, int(value))

    def unary(self, instruction: str, a: Lanes) -> Value:
        return self.operation(instruction, (a,), a.type)

    def binary(self, instruction: str, a: Lanes, b: Lanes) -> Value:
        if a.type != b.type:
            raise InternalError(f"kernel {self.name}: {instruction} of a {a.type} and a {b.type}")
        return self.operation(instruction, (a, b), a.type)

    def add(self, a: Lanes, b: Lanes) -> Value:
        return self.binary("fadd" if a.type in FLOATING else "add", a, b)

    def sub(self, a: Lanes, b: Lanes) -> Value:
        return self.binary("fsub" if a.type in FLOATING else "sub", a, b)

    def mul(self, a: Lanes, b: Lanes) -> Value:
        return self.binary("fmul" if a.type in FLOATING else "mul", a, b)

    def div(self, a: Lanes, b: Lanes) -> Value:
        """The quotient; of integers rounded toward zero."""
        return self.binary("fdiv" if a.type in FLOATING else "sdiv", a, b)

    def rem(self, a: Lanes, b: Lanes) -> Value:
        """What an integer division leaves, with the sign of the dividend."""
        return self.binary("srem", a, b)

    def neg(self, a: Lanes) -> Value:
        if a.type in FLOATING:
            return self.unary("fneg", a)
        return self.sub(self.number(0, a.type), a)

    def both(self, a: Lanes, b: Lanes) -> Value:
        """Bits that both have; of conditions: both hold."""
        return self.binary("and", a, b)

    def either(self, a: Lanes, b: Lanes) -> Value:
        return self.binary("or", a, b)

    def inverse(self, condition: Lanes) -> Value:
        return self.binary("xor", condition, self.number(1, "i1"))

    def compare(self, predicate: str, a: Lanes, b: Lanes) -> Value:
        if a.type != b.type:
            raise InternalError(f"kernel {self.name}: {predicate} of a {a.type} and a {b.type}")
        kind = "fcmp" if a.type in FLOATING else "icmp"
        return self.operation(f"{kind} {predicate}", (a, b), "i1")

    def select(self, condition: Lanes, a: Lanes, b: Lanes) -> Value:
        if a.type != b.type:
            raise InternalError(f"kernel {self.name}: select of a {a.type} and a {b.type}")
        return self.operation("select", (condition, a, b), a.type)

    def intrinsic(self, name: str, *args: Lanes) -> Value:
        return self.operation(f"intrinsic {name}", args, args[0].type)

    def cast(self, instruction: str, a: Lanes, type: str) -> Value:
        return self.operation(instruction, (a,), type)

    def convert(self, a: Lanes, type: str, *, unsigned: bool = False) -> Value:
        """A number as another type, as C converts it.

        Args:
            unsigned: integers are, on whichever side they are.
        """
        if a.type == type:
            return cast("Value", a)
        if isinstance(a, Value) and a.constant is not None and "i1" not in (a.type, type):
            return self.number(a.constant, type)
        if type == "i1":
            return self.compare("une" if a.type in FLOATING else "ne", a, self.number(0, a.type))
        if a.type in FLOATING and type in FLOATING:
            if {a.type, type} == {"half", "bfloat"}:
                return self.convert(self.convert(a, "float"), type)
            return self.cast("fpext" if SIZES[type] > SIZES[a.type] else "fptrunc", a, type)
        if a.type in FLOATING:
            return self.cast("fptoui" if unsigned else "fptosi", a, type)
        wide = unsigned or a.type == "i1"
        if type in FLOATING:
            return self.cast("uitofp" if wide else "sitofp", a, type)
        if _BITS[type] < _BITS[a.type]:
            return self.cast("trunc", a, type)
        return self.cast("zext" if wide else "sext", a, type)

    def call(self, write: Callable[[Code, Lanes], Lanes], x: Lanes) -> Lanes:
        """Functions are written out."""
        return write(self, x)

    # -- threads -------------------------------------------------------------------------------------------------

    @property
    def thread(self) -> Value:
        """The number of the thread in its block."""
        return self.operation("thread", (), "i32")

    @property
    def block_index(self) -> Value:
        """The number of the block in the grid."""
        return self.operation("block", (), "i32")

    @property
    def blocks(self) -> Value:
        """How many blocks there are."""
        return self.operation("blocks", (), "i32")

    def global_thread(self, type: str = "i32") -> Value:
        """The number of the thread in the grid."""
        first = self.mul(self.convert(self.block_index, type), self.number(self.block, type))
        return self.add(first, self.convert(self.thread, type))

    def grid_threads(self, type: str = "i32") -> Value:
        """How many threads there are."""
        return self.mul(self.convert(self.blocks, type), self.number(self.block, type))

    def barrier(self) -> None:
        """All threads of the block are here before one goes on, and see what the others wrote."""
        self.effect("barrier", ())

    def shuffle(self, mode: str, value: Lanes, lane: Lanes | int) -> Value:
        """The value that another thread of the warp has.

        Args:
            mode: "xor", "down" or "up" from this thread by `lane`, "index" of the thread `lane`. Beyond the warp a
                thread's own value is given.
        """
        if mode not in _SHUFFLES:
            raise InternalError(f"kernel {self.name}: there is no shuffle '{mode}'")
        by = self.number(lane, "i32") if isinstance(lane, int) else lane
        if value.type in ("i1", "i8", "i16"):
            return self.convert(self.shuffle(mode, self.convert(value, "i32"), by), value.type)
        if value.type in ("half", "bfloat"):
            bits = self.convert(self.cast("bitcast", value, "i16"), "i32", unsigned=True)
            return self.cast("bitcast", self.convert(self.shuffle(mode, bits, by), "i16"), value.type)
        return self.operation(f"shuffle {mode}", (value, by), value.type)

    def pack_e4m3(self, low: Lanes, high: Lanes) -> Value:
        """Two numbers as e4m3 (4 bits of exponent, 3 of mantissa, no infinity) in the bytes of an i16.

        Rounded to the nearest, ties to even; what is beyond 448 becomes that, NaN 0x7f. GPUs have it from compute
        capability 8.9 on (PTX ISA, `cvt.rn.satfinite.e4m3x2.f32`).

        Args:
            low, high: float; the first one's byte is the lower.
        """
        if (low.type, high.type) != ("float", "float"):
            raise InternalError(f"kernel {self.name}: e4m3 of a {low.type} and a {high.type}; expected floats")
        return self.operation("pack_e4m3", (low, high), "i16")

    def multiply_matrices(
        self, kind: str, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes]
    ) -> tuple[Value, ...]:
        """A B + C of small matrices that the threads of a warp have between them (`matrix` says which has what).

        Args:
            kind: of `MATRIX_KINDS`.
            a, b: four and two registers of the kind's type.
            c: four floats.
        """
        factor = MATRIX_KINDS[kind].register
        given = ([one.type for one in a], [one.type for one in b], [one.type for one in c])
        if given != ([factor] * LEFT, [factor] * RIGHT, ["float"] * SUMS):
            raise InternalError(f"kernel {self.name}: a product of {kind} matrices was given {given}")
        results: list[Value] = []
        for _ in range(SUMS):
            self._number += 1
            results.append(Value(f"%v{self._number}", "float"))
        operands = cast("tuple[Value, ...]", (*a, *b, *c))
        self._append(Operation(f"mma {kind}", operands, results=tuple(results)))
        return tuple(results)

    def round_tf32(self, a: Lanes) -> Value:
        """A float rounded to TF32's 10 bits of a fraction, still as a float."""
        return self._of_float("tf32", a)

    def exp2_approximate(self, a: Lanes) -> Value:
        """2 ** a of a float by the GPU's own instruction (`matrix.EXP2_ERROR`)."""
        return self._of_float("exp2", a)

    def _of_float(self, opcode: str, a: Lanes) -> Value:
        if a.type != "float":
            raise InternalError(f"kernel {self.name}: {opcode} of a {a.type}")
        return self.operation(opcode, (a,), "float")

    def set_condition(self, handle: Lanes, value: Lanes) -> None:
        """Give a condition of the CUDA graph that this is launched in a value: what hangs on it is done, or not.

        Args:
            handle: of `driver.base.Context.condition`, i64.
            value: i32, 0 or not.
        """
        if (handle.type, value.type) != ("i64", "i32"):
            raise InternalError(f"kernel {self.name}: a condition {handle.type} is set to {value.type}")
        self.effect("condition", (handle, value))

    # -- memory --------------------------------------------------------------------------------------------------

    def load(self, buffer: KernelBuffer, index: Lanes) -> Value:
        """Element `index`."""
        return self.operation("load", (index,), buffer.type, buffer)

    def load_bool(self, buffer: KernelBuffer, index: Lanes) -> Value:
        """A condition from a byte."""
        return self.convert(self.load(buffer, index), "i1")

    def store(self, buffer: KernelBuffer, index: Lanes, value: Lanes) -> None:
        """Write element `index`."""
        if value.type != buffer.type or not buffer.written:
            raise InternalError(
                f"kernel {self.name}: a {value.type} was stored in {buffer.name}, which has {buffer.type}"
                f"{'' if buffer.written else ' and is not written'}"
            )
        self.effect("store", (index, value), buffer)

    def store_bool(self, buffer: KernelBuffer, index: Lanes, condition: Lanes) -> None:
        """A condition as a byte."""
        self.store(buffer, index, self.convert(condition, "i8"))

    def atomic(self, kind: str, buffer: KernelBuffer, index: Lanes, value: Lanes) -> Value:
        """Change an element without anybody in between; returns what was there.

        Args:
            kind: "add", "fadd", "max", "min", "umax", "umin", "and", "or", "xor" or "exchange", of 32 or 64 bits.
        """
        if kind not in _ATOMICS or value.type != buffer.type or SIZES[value.type] < 4 or not buffer.written:
            raise InternalError(f"kernel {self.name}: atomic {kind} of a {value.type} in {buffer.name}: {buffer.type}")
        return self.operation(f"atomic {kind}", (index, value), buffer.type, buffer)

    def compare_exchange(self, buffer: KernelBuffer, index: Lanes, expected: Lanes, new: Lanes) -> Value:
        """Write `new` if `expected` is there; returns what was there. Integers of 32 or 64 bits."""
        if buffer.type not in ("i32", "i64") or {expected.type, new.type} != {buffer.type} or not buffer.written:
            raise InternalError(f"kernel {self.name}: compare_exchange in {buffer.name}: {buffer.type}")
        return self.operation("compare_exchange", (index, expected, new), buffer.type, buffer)

    def variable(self, value: Lanes) -> RegisterVariable:
        """A register with this value at first."""
        self._number += 1
        made = Register(f"x{self._number}", value.type)
        self._variables.append(made)
        variable = RegisterVariable(self, made)
        variable.set(value)
        return variable

    # -- control flow --------------------------------------------------------------------------------------------

    @contextmanager
    def _inside(self, body: list[Instruction]) -> Generator[None]:
        outside, self._into = self._into, body
        try:
            yield
        finally:
            self._into = outside

    @contextmanager
    def when(self, condition: Lanes) -> Generator[None]:
        """What is in it happens in threads for which a condition holds."""
        made = If(cast("Value", condition))
        self._append(made)
        with self._inside(made.then):
            yield
        self._last_if = made

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """Directly behind `when`: what happens in the other threads."""
        made = self._last_if
        if made is None or made.otherwise:
            raise InternalError(f"kernel {self.name}: 'otherwise' stands behind no 'when'")
        with self._inside(made.otherwise):
            yield
        self._last_if = None

    @contextmanager
    def while_(self, condition: Callable[[], Lanes]) -> Generator[None]:
        """What is in it is repeated while a condition holds, which is computed before each time."""
        made = While()
        self._append(made)
        with self._inside(made.head):
            made.condition = cast("Value", condition())
        with self._inside(made.body):
            yield
        self._last_if = None

    @contextmanager
    def loop(self, start: Lanes | int, stop: Lanes, step: Lanes | int = 1) -> Generator[Value]:
        """From `start` to before `stop`; `step` is positive."""
        first = self.number(start, stop.type) if isinstance(start, int) else start
        by = self.number(step, stop.type) if isinstance(step, int) else step
        index = self.variable(first)
        with self.while_(lambda: self.compare("slt", index.get(), stop)):
            now = index.get()
            yield now
            index.set(self.add(now, by))

    def finish(self) -> SimtKernel:
        """The kernel."""
        return SimtKernel(
            self.name,
            self.block,
            tuple(self._parameters),
            tuple(self._shared),
            tuple(self._local),
            tuple(self._variables),
            self._body,
        )
