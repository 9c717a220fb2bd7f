"""What of a file's names may be offered to a shell.

What completion offers goes through the shell: zsh evaluates it, bash puts it into the command line as it is. Names in a
file may be anything, `$(command)` too. So what has a sign that means something to a shell is not offered at all:
quoting would have to be right for four shells and for what is typed already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: letters, digits and signs that neither bash, zsh, fish nor PowerShell reads as anything but text
_PLAIN = re.compile(r"[A-Za-z0-9_./:@^+,-]*")
#: what zsh acts upon inside of the quotes that its completion puts around an offer
_EVALUATED = re.compile(r"[\\$`\x00-\x1f\x7f]")


def is_plain(name: str) -> bool:
    """Whether a name out of a file can be offered."""
    return _PLAIN.fullmatch(name) is not None


def plain(names: Iterable[str]) -> list[str]:
    """The names that can be offered."""
    return [name for name in names if is_plain(name)]


def can_go_on(typed: str) -> bool:
    """Whether anything can be offered after what has been typed, which is part of each offer."""
    return _EVALUATED.search(typed) is None
