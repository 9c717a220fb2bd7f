"""Work in shares that threads have, and compiled functions that are called one after the other in such shares."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from toolkit.kernels.cpu.native.loops import ATTRIBUTES, loop
from toolkit.kernels.cpu.native.openmp import numbered, openmp_declarations, started


def start(*, threads: bool) -> list[str]:
    """Run `part` for all of %shares shares of what %operands says."""
    counted = ["  %shares32 = trunc i64 %shares to i32"] if threads else []
    return [*counted, started("%shares32", threads=threads)]


def part(head: Sequence[str], share: Sequence[str], *, threads: bool) -> list[str]:
    """The function of one thread: it does its shares, of which there may be more than threads.

    Args:
        head: before the first share; it makes %shares.
        share: of number %i, from the block %share on.
    """
    lines = ["define internal void @part(ptr %operands) #0 {", "entry:", *numbered(threads=threads)]
    return [*lines, *head, "  %some = icmp ult i64 %me, %shares", "  br i1 %some, label %share, label %done",
            "share:", "  %i = phi i64 [%me, %entry], [%i1, %shared]", *share, "  br label %shared",
            "shared:", "  %i1 = add i64 %i, %all", "  %again = icmp ult i64 %i1, %shares",
            "  br i1 %again, label %share, label %done", "done:", "  ret void", "}"]  # fmt: skip


@functools.cache
def calls(*, threads: bool) -> str:
    """The text of a module with `void run(ptr operands)`.

    The operands are int64s, the number of shares and for each how many calls are in front of it and behind its last,
    and then addresses: of a function and of its operands for each call.

    Args:
        threads: the shares are spread over threads of OpenMP.
    """
    known = ["  %shares = load i64, ptr %operands"]
    call = ["  %pair = mul i64 %c, 2", "  %at = add i64 %pair, %start",
            "  %function_at = getelementptr ptr, ptr %operands, i64 %at", "  %function = load ptr, ptr %function_at",
            "  %at1 = add i64 %at, 1", "  %given_at = getelementptr ptr, ptr %operands, i64 %at1",
            "  %given = load ptr, ptr %given_at", "  call void %function(ptr %given)"]  # fmt: skip
    share = ["  %own = mul i64 %i, 2", "  %own1 = add i64 %own, 1", "  %own2 = add i64 %own, 2",
             "  %from_at = getelementptr i64, ptr %operands, i64 %own1", "  %from = load i64, ptr %from_at",
             "  %to_at = getelementptr i64, ptr %operands, i64 %own2", "  %to = load i64, ptr %to_at",
             *loop("c", "%from", "%to", 1, call)]  # fmt: skip
    head = [*known, "  %sizes = mul i64 %shares, 2", "  %start = add i64 %sizes, 1"]
    return "\n".join(
        [*openmp_declarations(threads=threads), "define void @run(ptr %operands) {", *known, *start(threads=threads),
         "  ret void", "}", *part(head, share, threads=threads), f"attributes #0 = {ATTRIBUTES}", ""]
    )  # fmt: skip
