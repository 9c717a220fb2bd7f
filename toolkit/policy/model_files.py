"""The files of a SavedModel that are read to bring it to life, each of which may be a link to somewhere else.

`run` asks before it restores anything, `validate` says what `run` would say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from toolkit.formats.models.savedmodel import VARIABLES, asset_path
from toolkit.policy.access import Access, Wish, links_of
from toolkit.policy.outside import Reach

#: who wants them, in messages
READER = "this SavedModel"


def check_files(access: Access, folder: Path, assets: Iterable[str], *, variables: bool = True) -> None:
    """Refuse a SavedModel whose variables or assets lie, by name or through links, where it may not read.

    Args:
        assets: the names of those that are wanted.
        variables: whether they are.

    Raises:
        RefusedError: so; it names every file, and the one option that allows them all.
        FormatError: an asset's name is none.
    """
    if not access.policy.is_everything:
        wishes = [*(_variables(folder) if variables else ()), *_assets(folder, assets)]
        access.judge(wishes, None, READER, before=True)


def _variables(folder: Path) -> Iterator[Wish]:
    variables = folder / VARIABLES
    real = Path(os.path.realpath(variables.parent), variables.name)
    if variables.with_name(f"{variables.name}.index").is_file():
        for path in (*links_of(str(variables)), *_files(real)):
            yield Wish(Reach.READ, path)


def _assets(folder: Path, assets: Iterable[str]) -> Iterator[Wish]:
    for name in dict.fromkeys(assets):
        yield Wish(Reach.READ, str(asset_path(folder, name)))


def _files(prefix: Path) -> list[str]:
    return sorted(str(path) for path in prefix.parent.glob(f"{prefix.name}.*") if not path.is_symlink())
