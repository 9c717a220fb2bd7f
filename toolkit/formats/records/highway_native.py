"""The rounds of HighwayHash as machine code, where LLVM is installed (extra `native`): a thousand times as fast."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

_LANES = ", ".join(["i64 {}"] * 4)
_SHUFFLE = (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)

#: one round; `%v0`, `%v1`, `%m0` and `%m1` are four lanes each, `%p` is the packet
_CODE = """
define void @run(ptr %state, ptr %data, i64 %count) {
entry:
  %a1 = getelementptr i8, ptr %state, i64 32
  %a2 = getelementptr i8, ptr %state, i64 64
  %a3 = getelementptr i8, ptr %state, i64 96
  %s0 = load <4 x i64>, ptr %state, align 8
  %s1 = load <4 x i64>, ptr %a1, align 8
  %s2 = load <4 x i64>, ptr %a2, align 8
  %s3 = load <4 x i64>, ptr %a3, align 8
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %round ]
  %v0 = phi <4 x i64> [ %s0, %entry ], [ %v0.b, %round ]
  %v1 = phi <4 x i64> [ %s1, %entry ], [ %v1.c, %round ]
  %m0 = phi <4 x i64> [ %s2, %entry ], [ %m0.b, %round ]
  %m1 = phi <4 x i64> [ %s3, %entry ], [ %m1.b, %round ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %round, label %done
round:
  %offset = shl i64 %i, 5
  %at = getelementptr i8, ptr %data, i64 %offset
  %p = load <4 x i64>, ptr %at, align 1
  %v1.a = add <4 x i64> %v1, %p
  %v1.b = add <4 x i64> %v1.a, %m0
  %low.0 = and <4 x i64> %v1.b, <LOW>
  %high.0 = lshr <4 x i64> %v0, <HALF>
  %product.0 = mul <4 x i64> %low.0, %high.0
  %m0.b = xor <4 x i64> %m0, %product.0
  %v0.a = add <4 x i64> %v0, %m1
  %low.1 = and <4 x i64> %v0.a, <LOW>
  %high.1 = lshr <4 x i64> %v1.b, <HALF>
  %product.1 = mul <4 x i64> %low.1, %high.1
  %m1.b = xor <4 x i64> %m1, %product.1
  %bytes.0 = bitcast <4 x i64> %v1.b to <32 x i8>
  %mixed.0 = shufflevector <32 x i8> %bytes.0, <32 x i8> %bytes.0, <32 x i32> <SHUFFLE>
  %add.0 = bitcast <32 x i8> %mixed.0 to <4 x i64>
  %v0.b = add <4 x i64> %v0.a, %add.0
  %bytes.1 = bitcast <4 x i64> %v0.b to <32 x i8>
  %mixed.1 = shufflevector <32 x i8> %bytes.1, <32 x i8> %bytes.1, <32 x i32> <SHUFFLE>
  %add.1 = bitcast <32 x i8> %mixed.1 to <4 x i64>
  %v1.c = add <4 x i64> %v1.b, %add.1
  %next = add i64 %i, 1
  br label %test
done:
  store <4 x i64> %v0, ptr %state, align 8
  store <4 x i64> %v1, ptr %a1, align 8
  store <4 x i64> %m0, ptr %a2, align 8
  store <4 x i64> %m1, ptr %a3, align 8
  ret void
}
"""


@functools.cache
def rounds() -> Callable[[Any, Any, int], None] | None:
    """What puts packets through the rounds: (state of 16 uint64, bytes as a uint8 array, packets); None without LLVM.

    The state is changed in place; as many bytes are read as the packets have.
    """
    if os.environ.get("GRAPHMILL_NATIVE", "") == "off":
        return None
    try:
        import llvmlite.binding as llvm_

        llvm: Any = llvm_
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True)
        jit = llvm.create_lljit_compiler(machine)
        shuffle = ", ".join(f"i32 {at}" for at in (*_SHUFFLE, *(16 + at for at in _SHUFFLE)))
        text = _CODE.replace("<LOW>", f"<{_LANES.format(*[0xFFFFFFFF] * 4)}>")
        text = text.replace("<HALF>", f"<{_LANES.format(*[32] * 4)}>").replace("<SHUFFLE>", f"<{shuffle}>")
        library = llvm.JITLibraryBuilder().add_ir(text).export_symbol("run").add_current_process().link(jit, "highway")
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library["run"])
    except (ImportError, OSError, RuntimeError):
        return None

    def run(state: Any, data: Any, count: int) -> None:
        assert state.nbytes == 128 and state.flags.c_contiguous and 0 <= 32 * count <= data.nbytes
        call(state.ctypes.data, data.ctypes.data, count)

    run.keep = (library, jit, machine)  # type: ignore[attr-defined]
    return run
