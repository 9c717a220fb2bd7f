"""What the Tab key offers in the checkpoint commands: checkpoints, tensors, and patterns of tensors.

It runs at every press of the key, so it reads an index and nothing else, and imports neither numpy nor protobuf.
Whatever goes wrong must not disturb the line that is being typed: there is then no offer.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from commands import shell

#: more names than this are offered scope by scope
_FEW = 30


def complete_tensor(ctx: Any, incomplete: str) -> list[str]:
    """Names of the checkpoint on the command line that start as typed, scopes as globs, and globs completed."""
    from toolkit.errors import GraphmillError
    from toolkit.formats.bundle.names import tensor_names

    for candidate in _candidates(ctx):
        try:
            return offers(shell.plain(tensor_names(candidate)), incomplete) if shell.can_go_on(incomplete) else []
        except (GraphmillError, OSError, ValueError):
            continue
    return []


def _candidates(ctx: Any) -> Iterable[str]:
    """The words of the command line that can be a checkpoint, the likeliest first."""
    given: list[Any] = [
        *(ctx.params.get(key) for key in ("prefix", "a", "prefixes")),
        *(getattr(ctx, "args", None) or []),
    ]
    for value in given:
        yield from (value if isinstance(value, list | tuple) else [value]) if value else []
    # The parser gives up at an option that waits for its value, which is just when the value is to be completed, so
    # the words also come from where the shell has put them: after "graphmill checkpoint COMMAND".
    text = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    yield from (word for word in words[3:] if not word.startswith("-"))


def offers(names: Iterable[str], typed: str) -> list[str]:
    """What `typed` can become: names, with a glob for each scope that they part in; a glob becomes a longer glob."""
    if "*" in typed or "?" in typed:
        return sorted(_globs(names, typed))
    found = sorted(name for name in names if name.startswith(typed))
    if len(found) <= _FEW:
        scope = typed.rpartition("/")[0]
        return [*found, f"{scope}/*"] if scope and len(found) > 1 else found
    steps: list[str] = []
    prefix = typed
    while len(steps) < 2:  # everything may be in one scope: go into it
        steps = sorted({_step(name, len(prefix)) for name in found})
        if len(steps) == 1:
            if steps[0] == prefix:
                break
            prefix = steps[0]
    return [offer for step in steps for offer in ([step, f"{step}*"] if step.endswith("/") else [step])]


def _step(name: str, begin: int) -> str:
    """A name up to its next slash."""
    end = name.find("/", begin)
    return name if end < 0 else name[: end + 1]


def _globs(names: Iterable[str], typed: str) -> set[str]:
    if typed.endswith(("*", "?")):
        return {typed}
    parts = [{"*": ".*?", "?": "."}.get(part) or re.escape(part) for part in re.split(r"([*?])", typed)]
    pattern = re.compile("".join(parts), re.DOTALL)
    matches = ((name, pattern.match(name)) for name in names)
    return {typed + name[match.end() :] for name, match in matches if match}


def complete_prefix(incomplete: str) -> list[str]:
    """Prefixes of checkpoints, tensor files and folders that start with what has been typed."""
    from toolkit.formats.bundle.locate import in_folder

    typed = Path(incomplete or ".")
    folder = typed if incomplete.endswith("/") or not incomplete else typed.parent
    try:
        names = sorted(folder.iterdir())
    except OSError:
        return []
    found = [f"{path}/" for path in names if path.is_dir()]
    found += [str(path) for path in names if path.suffix in (".npz", ".safetensors")]
    found += [str(folder / name) for name in in_folder(folder)]
    start = incomplete.removeprefix("./")
    return shell.plain(name for name in found if name.startswith(start)) if shell.can_go_on(incomplete) else []
