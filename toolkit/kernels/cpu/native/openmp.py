"""What of OpenMP's runtime code over threads calls: its functions' names and declarations, the call that starts the
threads, and which of them a thread is."""

from __future__ import annotations

_DECLARATIONS = {
    "GOMP_parallel": "void @GOMP_parallel(ptr, ptr, i32, i32)",
    "omp_get_thread_num": "i32 @omp_get_thread_num()",
    "omp_get_num_threads": "i32 @omp_get_num_threads()",
}
#: functions of the runtime that loops over threads call
OPENMP = tuple(_DECLARATIONS)


def openmp_declarations(*, threads: bool) -> list[str]:
    """Those of what `started` and `numbered` call."""
    return [f"declare {declaration}" for declaration in _DECLARATIONS.values()] if threads else []


def started(count: str | int, *, threads: bool) -> str:
    """The line that runs `part` for %operands.

    Args:
        count: of threads, an i32; 0: as many as the runtime has by itself.
        threads: else this thread runs it.
    """
    if not threads:
        return "  call void @part(ptr %operands)"
    return f"  call void @GOMP_parallel(ptr @part, ptr %operands, i32 {count}, i32 0)"


def numbered(*, threads: bool) -> list[str]:
    """The first lines of `part`: %me is the thread's number, of %all."""
    if not threads:
        return ["  %me = add i64 0, 0", "  %all = add i64 0, 1"]
    return ["  %me32 = call i32 @omp_get_thread_num()", "  %all32 = call i32 @omp_get_num_threads()",
            "  %me = zext i32 %me32 to i64", "  %all = zext i32 %all32 to i64"]  # fmt: skip
