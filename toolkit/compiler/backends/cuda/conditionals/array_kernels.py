"""Kernels that look at the words of an array's elements: whether each was written, or read and let go of (`arrays`)."""

from __future__ import annotations

import functools
from typing import Any

from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.primitives.indexing import BLOCK

WRITE, READ = "TensorArrayWriteV3", "TensorArrayReadV3"
#: a write to an array of gradients
ADD = "TensorArrayWriteV3 of a gradient"
_NAMES = {WRITE: "written", READ: "read", ADD: "added"}
#: words of elements
_UNSET, _WRITTEN, _CLEARED = 0, 1, 2


def _pass(
    k: KernelBuilder, op: str, words: Any, word: Any, at: Value, size: Value, option: Value, code: Value
) -> Value:
    """Whether the element at a place may be taken or set; its word then is what it is behind that, else `code` is
    noted, or the next one if it was cleared."""
    zero, one = k.number(0, "i32"), k.number(1, "i32")
    state = k.load(words, at)
    is_set = k.compare("eq", state, k.number(_WRITTEN, "i32"))
    is_unset = k.compare("eq", state, k.number(_UNSET, "i32"))
    may = is_unset
    if op == READ:
        may = k.either(is_set, k.both(is_unset, k.compare("ne", k.load(words, size), zero)))
    elif op == ADD:
        may = k.either(is_set, is_unset)
    wants = k.compare("ne", option, zero)
    with k.when(may):
        if op != READ:
            k.store(words, at, k.number(_WRITTEN, "i32"))
        else:
            with k.when(wants):
                k.store(words, at, k.number(_CLEARED, "i32"))
    with k.otherwise():
        cleared = k.compare("eq", state, k.number(_CLEARED, "i32"))
        k.compare_exchange(word, zero, zero, k.select(cleared, k.add(code, one), code))
    return may


@functools.cache
def entry_kernel(op: str, *, grows: bool = False) -> SimtKernel:
    """Looks at one element, for one thread.

    Takes words [size + 1], index [1], place [2], word [1], size, option (a write tells the shape; a read clears), and
    the code of an index that is out of range, behind which those of `_pass` are.

    Args:
        grows: `size` is how many elements there is memory for, and how many there are is behind `word`; the last number
            is the code of an element that there is no memory for.
    """
    k = KernelBuilder(f"array_{_NAMES[op]}{'_grown' * grows}", 32)
    words, index = k.buffer("words", "i32", written=True), k.buffer("index", "i32")
    place, word = k.buffer("place", "i32", written=True), k.buffer("word", "i32", written=True)
    count = k.buffer("count", "i32", written=op != READ) if grows else None
    size, option, code = (k.scalar(name, "i32") for name in ("size", "option", "code"))
    room = k.scalar("room", "i32") if grows else None
    zero, one = k.number(0, "i32"), k.number(1, "i32")
    with k.when(k.compare("eq", k.global_thread("i32"), zero)):
        at = k.load(index, zero)
        found, there = k.variable(k.number(-1, "i32")), k.variable(zero)
        end = size if count is None or op != READ else k.load(count, zero)
        with k.when(k.both(k.compare("sge", at, zero), k.compare("slt", at, end))):
            there.set(k.convert(k.compare("eq", k.load(words, at), k.number(_WRITTEN, "i32")), "i32"))
            may = _pass(k, op, words, word, at, size, option, k.add(code, one))
            with k.when(may):
                found.set(at)
                if op != READ:
                    with k.when(k.compare("ne", option, zero)):
                        k.store(words, size, one)
                if op != READ and count is not None:
                    with k.when(k.compare("sge", at, k.load(count, zero))):
                        k.store(count, zero, k.add(at, one))
        with k.otherwise():
            none = code if op == READ or room is None else k.select(k.compare("slt", at, zero), code, room)
            k.compare_exchange(word, zero, zero, none)
        k.store(place, zero, found.get())
        k.store(place, one, there.get())
    return k.finish()


@functools.cache
def first_kernel() -> SimtKernel:
    """Reads the first elements, one a thread; the code is that of more elements than there are, then those of `_pass`.

    Takes words [size + 1], how many elements there are [1], how many are read [1], word [1], size, option and code.
    """
    k = KernelBuilder("arrays_first", BLOCK)
    words, there, count = k.buffer("words", "i32", written=True), k.buffer("there", "i32"), k.buffer("count", "i32")
    word = k.buffer("word", "i32", written=True)
    size, option, code = (k.scalar(name, "i32") for name in ("size", "option", "code"))
    zero, at = k.number(0, "i32"), k.global_thread("i32")
    end = k.load(count, zero)
    fits = k.compare("sle", end, k.load(there, zero))
    with k.when(k.both(k.compare("slt", at, size), k.both(fits, k.compare("slt", at, end)))):
        _pass(k, READ, words, word, at, size, option, k.add(code, k.number(1, "i32")))
    with k.when(k.both(k.compare("eq", at, zero), k.inverse(fits))):
        k.compare_exchange(word, zero, zero, code)
    return k.finish()


@functools.cache
def whole_kernel(op: str) -> SimtKernel:
    """Looks at all elements, one a thread; the code is the first one of `_pass`."""
    k = KernelBuilder(f"arrays_{_NAMES[op]}", BLOCK)
    words, word = k.buffer("words", "i32", written=True), k.buffer("word", "i32", written=True)
    size, option, code = (k.scalar(name, "i32") for name in ("size", "option", "code"))
    at = k.global_thread("i32")
    with k.when(k.compare("slt", at, size)):
        _pass(k, op, words, word, at, size, option, code)
    if op != READ:
        told = k.compare("ne", option, k.number(0, "i32"))
        with k.when(k.both(k.compare("eq", at, size), told)):
            k.store(words, size, k.number(1, "i32"))
    return k.finish()
