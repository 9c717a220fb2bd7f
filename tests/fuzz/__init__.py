"""The fuzzer that stays: hostile files and graphs through every command, judged by rules that hold for any input.

    python -m tests.fuzz --seed 1 --count 1000 --kind all --jobs 2

A *case* (`case.py`) is a handful of files and command lines, made of a kind, a seed and a number and nothing else. Who
makes cases (`sources.py` lists them by kind):

    formats.py       files of seeds.py, damaged: by messages.py (protobuf, by descriptors), formats_*.py (by what each
                     format is), hostile.py (text and bytes that break things)
    graphs.py        valid graphs whose nodes, attributes, shapes, functions were changed by graphs_mutate.py
    networks.py      random networks and training graphs, valid, fed with numbers of every kind (feeds.py)
    loops.py         loops of both kinds with arrays, lists and variables, half of them damaged
    ops.py           one op with any inputs and attributes, from single_ops.py
    command_lines.py what files of each kind are given to

Who runs them: `pool.py` forks children that have everything imported; a child takes a batch of numbers, makes each
case, and runs it (`child.py`) in a folder of its own under limits and an audit of what it opens (`confine.py`). A case
that kills or hangs its child is known by its number; the rest of the batch goes to the next child. `judge.py` has the
rules; `executors.py` holds compiled runs to the definition; `reference.py` asks TensorFlow. `session.py` confirms what
is found in a child of its own, has it made smaller (`shrink.py`) and keeps it (`case.py`) in `corpus/`. Long runs keep
what they did, block by block, in a file (`tally.py`): `--tally FILE` goes on where a run was interrupted, `--summary
FILE...` adds such files up.
"""
