"""Loops that run without the interpreter, with lists, stacks and arrays as blocks of memory."""
