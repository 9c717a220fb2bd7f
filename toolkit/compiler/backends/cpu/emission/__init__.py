"""From lowered operations to a function: places in memory, primitives, lines of Python."""
