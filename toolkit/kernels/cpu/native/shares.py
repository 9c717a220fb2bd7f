"""Compiled functions that are called one after the other, in shares that threads have."""

from __future__ import annotations

import functools

from toolkit.kernels.cpu.native.loops import ATTRIBUTES, loop


@functools.cache
def calls(*, threads: bool) -> str:
    """The text of a module with `void run(ptr operands)`.

    The operands are int64s, the number of shares and for each how many calls are in front of it and behind its last,
    and then addresses: of a function and of its operands for each call.

    Args:
        threads: the shares are spread over threads of OpenMP.
    """
    call = ["  %pair = mul i64 %c, 2", "  %at = add i64 %pair, %start",
            "  %function_at = getelementptr ptr, ptr %operands, i64 %at", "  %function = load ptr, ptr %function_at",
            "  %at1 = add i64 %at, 1", "  %given_at = getelementptr ptr, ptr %operands, i64 %at1",
            "  %given = load ptr, ptr %given_at", "  call void %function(ptr %given)"]  # fmt: skip
    part = ["define internal void @part(ptr %operands) #0 {", "entry:",
            "  %shares = load i64, ptr %operands", "  %sizes = mul i64 %shares, 2",
            "  %start = add i64 %sizes, 1"]  # fmt: skip
    if threads:  # there may be fewer of them than shares
        part += ["  %me32 = call i32 @omp_get_thread_num()", "  %all32 = call i32 @omp_get_num_threads()",
                 "  %me = zext i32 %me32 to i64", "  %all = zext i32 %all32 to i64"]  # fmt: skip
    else:
        part += ["  %me = add i64 0, 0", "  %all = add i64 0, 1"]
    part += ["  %some = icmp ult i64 %me, %shares", "  br i1 %some, label %share, label %done",
             "share:", "  %i = phi i64 [%me, %entry], [%i1, %next]", "  %own = mul i64 %i, 2",
             "  %own1 = add i64 %own, 1", "  %own2 = add i64 %own, 2",
             "  %from_at = getelementptr i64, ptr %operands, i64 %own1", "  %from = load i64, ptr %from_at",
             "  %to_at = getelementptr i64, ptr %operands, i64 %own2", "  %to = load i64, ptr %to_at",
             *loop("c", "%from", "%to", 1, call), "  br label %next",
             "next:", "  %i1 = add i64 %i, %all", "  %again = icmp ult i64 %i1, %shares",
             "  br i1 %again, label %share, label %done", "done:", "  ret void", "}"]  # fmt: skip
    run = ["define void @run(ptr %operands) {"]
    if threads:
        run = ["declare void @GOMP_parallel(ptr, ptr, i32, i32)", "declare i32 @omp_get_thread_num()",
               "declare i32 @omp_get_num_threads()", *run, "  %shares = load i64, ptr %operands",
               "  %count = trunc i64 %shares to i32",
               "  call void @GOMP_parallel(ptr @part, ptr %operands, i32 %count, i32 0)"]  # fmt: skip
    else:
        run.append("  call void @part(ptr %operands)")
    return "\n".join([*run, "  ret void", "}", *part, f"attributes #0 = {ATTRIBUTES}", ""])
