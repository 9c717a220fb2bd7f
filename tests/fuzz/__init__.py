"""The fuzzer that stays: hostile files and graphs through every command, judged by rules that hold for any input.

    python -m tests.fuzz --seed 1 --count 1000 --kind all --jobs 2

A *case* (`case.py`) is a handful of files and command lines. Who makes cases (`sources.py` lists them all by kind):

    formats.py, formats_*.py   damaged files of every format, by mutators that know the format
    graphs.py, graphs_*.py     valid graphs whose nodes, attributes, shapes, functions were then changed
    networks.py                random networks and training graphs, valid, fed with numbers of every kind
    loops.py                   loops of both kinds with arrays, lists and variables
    single_ops.py              one op with any inputs and attributes

A module beside these joins in by its name. `formats_<format>.py` has `mutate(rng, data) -> bytes`, which is taken for
that format's seeds beside the general mutators, and may have `SEEDS: dict[str, bytes]`. `graphs_*.py` and
`single_ops.py` have `cases(seed) -> Iterable[Case | GraphDef | bytes]`.

Who runs them: `pool.py` forks children that have everything imported; a child takes a batch of numbers, makes each
case from its number, and runs it (`child.py`) in a folder of its own under limits and an audit of what it opens
(`confine.py`). `judge.py` has the rules; `executors.py` holds compiled runs to the definition; `reference.py` asks
TensorFlow. What is found is confirmed alone, made smaller (`shrink.py`) and kept in `corpus/`.
"""
