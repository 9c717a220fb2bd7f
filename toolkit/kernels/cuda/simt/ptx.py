"""Kernels as PTX, NVIDIA's portable assembly, through LLVM's NVPTX target (PTX ISA 8.x; NVVM IR specification).

Arithmetic is neither reordered nor contracted: PTX says `.rn` where it must not be, so that sums and products are the
CPU's bits. `fmuladd`, which only approximations use, becomes one instruction.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

from toolkit.errors import UsageError
from toolkit.kernels.cpu.native.code import literal
from toolkit.kernels.cuda.simt.ir import (
    FLOAT8_FROM,
    If,
    Instruction,
    KernelBuffer,
    Operation,
    Register,
    SimtKernel,
    Value,
    While,
    lacks_float8,
)
from toolkit.kernels.cuda.simt.matrix import LEFT, MATRIX_KINDS, RIGHT
from toolkit.kernels.once import once
from toolkit.kernels.types import Array

_TRIPLE = "nvptx64-nvidia-cuda"
_SPACES = {"global": 1, "shared": 3, "local": 0}
_SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "i1": "i1", "i8": "i8", "i16": "i16",
           "i32": "i32", "i64": "i64"}  # fmt: skip
_ALIGN = 256  # of what cuMemAlloc gives; the pool keeps it
_SHUFFLES = {"xor": ("bfly", 31), "down": ("down", 31), "up": ("up", 0), "index": ("idx", 31)}
_ATOMICS = {"exchange": "xchg"}
#: LLVM's name of two floats as e4m3; the PTX ISA that has it from capability 8.9 on, and the first major one whose ISA
#: is later by itself
_PACK, _PACK_FROM, _LATER = "llvm.nvvm.ff.to.e4m3x2.rn", "+ptx81", 10
_REGISTERS = {"thread": "tid.x", "block": "ctaid.x", "blocks": "nctaid.x"}


def write(kernel: SimtKernel, capability: tuple[int, int]) -> str:
    """A kernel's PTX for GPUs of a compute capability, such as (9, 0); its function is called `function_name`.

    Raises:
        UsageError: llvmlite is not installed, or has no NVPTX target; or the kernel makes floats of 8 bits, which such
            GPUs do not.
    """
    llvm: Any = _llvm()
    text, features = llvm_text(kernel), ""
    if _PACK in text:  # LLVM would end the process
        if capability < FLOAT8_FROM:
            raise UsageError(f"kernel {kernel.name}: {lacks_float8(capability)}")
        features = _PACK_FROM if capability[0] < _LATER else ""
    machine = llvm.Target.from_triple(_TRIPLE).create_target_machine(
        cpu=f"sm_{capability[0]}{capability[1]}", features=features, opt=3
    )
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = False  # a thread has one number; loads are joined later
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


@once
def _llvm() -> Any:
    try:
        import llvmlite.binding as binding
    except ImportError:
        raise UsageError('kernels for GPUs need llvmlite: pip install "graphmill[cuda]"') from None
    llvm: Any = binding
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        llvm.Target.from_triple(_TRIPLE)
    except RuntimeError as error:
        raise UsageError(f"the installed llvmlite cannot write PTX ({error}): pip install -U llvmlite") from None
    return llvm


def function_name(kernel: SimtKernel) -> str:
    """What the function is called in PTX."""
    return "gm_" + re.sub(r"\W", "_", kernel.name)


def llvm_text(kernel: SimtKernel) -> str:
    """A kernel as LLVM IR."""
    return _Writer(kernel).text()


class _Writer:
    """Writes one kernel."""

    def __init__(self, kernel: SimtKernel):
        self._kernel = kernel
        self._lines: list[str] = []
        self._declared: set[str] = set()
        self._number = 0
        self._reads = _read_only(kernel)

    def text(self) -> str:
        kernel = self._kernel
        parameters: list[str] = []
        for one in kernel.parameters:
            if isinstance(one, KernelBuffer):
                read = " readonly" if one in self._reads else ""
                parameters.append(f"ptr addrspace(1) noalias align {_ALIGN}{read} %{one.name}")
            else:
                parameters.append(f"{one.type} {one.name}")
        self._line_all(f"%{one.name} = alloca [{one.size} x {one.type}], align 16" for one in kernel.local)
        self._line_all(f"%{one.name} = alloca {one.type}" for one in kernel.variables)
        self._body(kernel.body)
        self._lines.append("  ret void")
        shared = [
            f"@{one.name} = internal addrspace(3) global [{one.size} x {one.type}] poison, align 16"
            for one in kernel.shared
        ]
        head = f"define ptx_kernel void @{function_name(kernel)}({', '.join(parameters)}) #0 {{"
        attributes = f'attributes #0 = {{ nounwind "nvvm.maxntid"="{kernel.block},1,1" }}'
        parts = [f'target triple = "{_TRIPLE}"', *shared, head, *self._lines, "}", *sorted(self._declared), attributes]
        return "\n".join(parts) + "\n"

    def _line_all(self, lines: Any) -> None:
        self._lines += [f"  {line}" for line in lines]

    def _line(self, text: str) -> None:
        self._lines.append("  " + text)

    def _fresh(self) -> str:
        self._number += 1
        return f"%p{self._number}"

    def _label(self, name: str) -> str:
        self._number += 1
        return f"{name}{self._number}"

    def _body(self, body: Sequence[Instruction]) -> None:
        for one in body:
            match one:
                case Operation():
                    self._operation(one)
                case If():
                    self._if(one)
                case While():
                    self._while(one)

    def _if(self, one: If) -> None:
        then, after = self._label("then"), self._label("after")
        other = self._label("else") if one.otherwise else after
        self._line(f"br i1 {_read(one.condition)}, label %{then}, label %{other}")
        self._lines.append(f"{then}:")
        self._body(one.then)
        self._line(f"br label %{after}")
        if one.otherwise:
            self._lines.append(f"{other}:")
            self._body(one.otherwise)
            self._line(f"br label %{after}")
        self._lines.append(f"{after}:")

    def _while(self, one: While) -> None:
        assert one.condition is not None
        head, body, end = self._label("head"), self._label("body"), self._label("end")
        self._line(f"br label %{head}")
        self._lines.append(f"{head}:")
        self._body(one.head)
        self._line(f"br i1 {_read(one.condition)}, label %{body}, label %{end}")
        self._lines.append(f"{body}:")
        self._body(one.body)
        self._line(f"br label %{head}")
        self._lines.append(f"{end}:")

    def _operation(self, one: Operation) -> None:
        kind, _, rest = one.opcode.partition(" ")
        made = "" if one.result is None else f"{one.result.name} = "
        match kind:
            case "load" | "store" | "atomic" | "compare_exchange":
                self._memory(one, kind, rest, made)
            case "get":
                assert isinstance(one.place, Register)
                self._line(f"{made}load {one.place.type}, ptr %{one.place.name}")
            case "set":
                assert isinstance(one.place, Register)
                self._line(f"store {_typed(one.operands[0])}, ptr %{one.place.name}")
            case "thread" | "block" | "blocks":
                self._call(f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[kind]}", "i32", (), made)
            case "barrier":
                self._call("llvm.nvvm.barrier0", "void", (), "")
            case "shuffle":
                self._shuffle(one, rest)
            case "mma":
                self._multiply_matrices(one, rest)
            case "tf32":
                assert one.result is not None
                bits = self._fresh()
                self._call("llvm.nvvm.f2tf32.rna", "i32", one.operands, f"{bits} = ")
                self._line(f"{made}bitcast i32 {bits} to float")
            case "exp2":
                self._call("llvm.nvvm.ex2.approx.ftz.f", "float", one.operands, made)
            case "condition":  # of CUDA's device runtime: the driver's compiler has it, no library is linked
                self._call("cudaGraphSetConditional", "void", one.operands, "")
            case "pack_e4m3":  # whose first operand is the upper byte
                self._call(_PACK, "i16", one.operands[::-1], made)
            case "intrinsic":
                assert one.result is not None
                self._call(f"llvm.{rest}.{_SUFFIX[one.result.type]}", one.result.type, one.operands, made)
            case "select":
                self._line(f"{made}select {', '.join(map(_typed, one.operands))}")
            case "fneg":
                self._line(f"{made}fneg {_typed(one.operands[0])}")
            case _ if len(one.operands) == 1:  # a conversion
                assert one.result is not None
                self._line(f"{made}{one.opcode} {_typed(one.operands[0])} to {one.result.type}")
            case _:
                self._line(f"{made}{one.opcode} {_typed(one.operands[0])}, {_read(one.operands[1])}")

    def _memory(self, one: Operation, kind: str, rest: str, made: str) -> None:
        buffer = one.place
        assert isinstance(buffer, KernelBuffer)
        space = _SPACES[buffer.space]
        pointer = f"ptr addrspace({space})" if space else "ptr"
        base = f"@{buffer.name}" if buffer.space == "shared" else f"%{buffer.name}"
        at = self._fresh()
        self._line(f"{at} = getelementptr inbounds {buffer.type}, {pointer} {base}, {_typed(one.operands[0])}")
        if kind == "load":
            self._line(f"{made}load {buffer.type}, {pointer} {at}")
        elif kind == "store":
            self._line(f"store {_typed(one.operands[1])}, {pointer} {at}")
        elif kind == "atomic":
            name = _ATOMICS.get(rest, rest)
            self._line(
                f'{made}atomicrmw {name} {pointer} {at}, {_typed(one.operands[1])} syncscope("device") monotonic'
            )
        else:
            pair = self._fresh()
            expected, new = map(_typed, one.operands[1:])
            orders = 'syncscope("device") monotonic monotonic'
            self._line(f"{pair} = cmpxchg {pointer} {at}, {expected}, {new} {orders}")
            self._line(f"{made}extractvalue {{ {buffer.type}, i1 }} {pair}, 0")

    def _shuffle(self, one: Operation, mode: str) -> None:
        """By 32 bits at a time."""
        result, (value, lane) = one.result, one.operands
        assert result is not None
        name, clamp = _SHUFFLES[mode]
        full = f"llvm.nvvm.shfl.sync.{name}.i32"
        self._declared.add(f"declare i32 @{full}(i32, i32, i32, i32)")

        def move(bits: str, into: str) -> None:
            self._line(f"{into} = call i32 @{full}(i32 -1, i32 {bits}, {_typed(lane)}, i32 {clamp})")

        if value.type == "i32":
            move(_read(value), result.name)
        elif value.type == "float":
            bits, moved = self._fresh(), self._fresh()
            self._line(f"{bits} = bitcast {_typed(value)} to i32")
            move(bits, moved)
            self._line(f"{result.name} = bitcast i32 {moved} to float")
        else:
            halves, low, high, moved_low, moved_high, first, both = (self._fresh() for _ in range(7))
            self._line(f"{halves} = bitcast {_typed(value)} to <2 x i32>")
            for index, (half, moved) in enumerate(((low, moved_low), (high, moved_high))):
                self._line(f"{half} = extractelement <2 x i32> {halves}, i32 {index}")
                move(half, moved)
            self._line(f"{first} = insertelement <2 x i32> poison, i32 {moved_low}, i32 0")
            self._line(f"{both} = insertelement <2 x i32> {first}, i32 {moved_high}, i32 1")
            self._line(f"{result.name} = bitcast <2 x i32> {both} to {result.type}")

    def _multiply_matrices(self, one: Operation, kind: str) -> None:
        """Registers with packed halves are vectors to LLVM, all others words."""
        type = "<2 x half>" if kind == "half" else "i32"
        count = LEFT + RIGHT
        factors: list[str] = []
        for operand in one.operands[:count]:
            if operand.type == type:
                factors.append(_typed(operand))
                continue
            word = self._fresh()
            self._line(f"{word} = bitcast {_typed(operand)} to {type}")
            factors.append(f"{type} {word}")
        sums = one.operands[count:]
        made = f"{{ {', '.join(each.type for each in sums)} }}"
        name = MATRIX_KINDS[kind].intrinsic
        types = ", ".join([type] * count + [each.type for each in sums])
        self._declared.add(f"declare {made} @{name}({types}) convergent nounwind")
        whole = self._fresh()
        self._line(f"{whole} = call {made} @{name}({', '.join([*factors, *map(_typed, sums)])}) convergent")
        for number, result in enumerate(one.results):
            self._line(f"{result.name} = extractvalue {made} {whole}, {number}")

    def _call(self, name: str, type: str, operands: Sequence[Value], made: str) -> None:
        self._declared.add(f"declare {type} @{name}({', '.join(one.type for one in operands)})")
        self._line(f"{made}call {type} @{name}({', '.join(map(_typed, operands))})")


def _typed(value: Value) -> str:
    return f"{value.type} {_read(value)}"


def _read(value: Value) -> str:
    if value.constant is None:
        return value.name
    if value.type == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value.constant))[0]:04X}"
    if value.type == "bfloat":
        import ml_dtypes
        import numpy as np

        bits: Array = np.asarray(value.constant, ml_dtypes.bfloat16).view(np.uint16)
        return f"0xR{int(bits):04X}"
    return literal(value.constant, value.type)


def _read_only(kernel: SimtKernel) -> set[KernelBuffer]:
    return {one for one in kernel.parameters if isinstance(one, KernelBuffer) and not one.written}
