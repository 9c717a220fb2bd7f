"""How many of TensorFlow's names are here: `python -m tests.tf1.coverage`; those that only 1.15 has are counted apart.

With `--missing`, the names that are not; with `--write`, those that have no reason get a row in missing.txt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from toolkit.tensorflow import api, names
from toolkit.tensorflow.tables import missing

ARCHITECTURE = Path(__file__).resolve().parent.parent.parent / "ARCHITECTURE.md"
#: classes whose constructors differ, and why
OTHER_SIGNATURES: dict[str, str] = {
    "Tensor": "made by ops alone; its constructor is the client's",
    "Operation": "made by ops alone; its constructor is the client's",
    "dtypes.DType": "there is one of each type, made with the library",
    **dict.fromkeys(
        ("lookup.StaticHashTable", "lookup.StaticVocabularyTable", "lookup.experimental.DenseHashTable"),
        "as 1.15 has it; 2.21 takes anything, and passes on a switch for objects that it saves",
    ),
    "data.experimental.OptionalStructure": "a spelling of OptionalSpec, whose argument has another name since",
    "VariableScope": "opened by variable_scope; its constructor is the client's",
    **dict.fromkeys(
        (f"nn.rnn_cell.{name}" for name in ("RNNCell", "DeviceWrapper", "DropoutWrapper", "ResidualWrapper")),
        "takes anything and passes it on; the client's says what",
    ),
    **dict.fromkeys(
        (name for name in (*api.names(), *api.dropped()) if name.startswith("errors.")),
        "the library's own errors, so that `except tf.errors.X` catches what steps raise",
    ),
}
#: constants that say which program this is
OTHER_VALUES = frozenset({"VERSION", "GIT_VERSION", "COMPILER_VERSION", "CXX_VERSION", "CXX11_ABI_FLAG"})
NOT_YET = "not written yet"


def promised() -> int:
    """The count that ARCHITECTURE.md speaks of."""
    found = re.search(r"(\d[\d,]*) of the [\d,]+ public names", ARCHITECTURE.read_text())
    assert found is not None, "ARCHITECTURE.md does not say how many names are here"
    return int(found[1].replace(",", ""))


def absent(among: Iterable[str]) -> list[str]:
    """Names of TensorFlow that are not here."""
    return [name for name in among if names.find(name) is names.ABSENT]


def write() -> None:
    """Drop rows about names that are here by now, and add one for each name that has none."""
    lines = missing.FILE.read_text().splitlines()
    gone = set(absent((*api.names(), *api.dropped())))
    canonical = {fact.canonical for name in gone if (fact := api.fact(name)) is not None}
    kept = [line for line in lines if line.startswith("#") or not line or _holds(line.partition("\t")[0], canonical)]
    have = {line.partition("\t")[0] for line in kept}
    added = sorted(name for name in canonical if missing.row_of(name) is None or missing.row_of(name) not in have)
    missing.FILE.write_text("\n".join([*kept, *(f"{name}\t{NOT_YET}" for name in added)]) + "\n")
    missing.rows.cache_clear()


def _holds(row: str, gone: set[str]) -> bool:
    return row.endswith(".*") or row in gone or api.fact(row) is None


def main() -> int:
    if "--write" in sys.argv:
        write()
    for among, whose in ((api.names(), "tensorflow.compat.v1"), (api.dropped(), "TensorFlow 1.15 alone")):
        lost = absent(among)
        if "--missing" in sys.argv:
            for name in lost:
                print(f"{name}\t{missing.reason(name)}")
        print(f"{len(among) - len(lost)} of the {len(among)} public names of {whose} are here")
    return 0


if __name__ == "__main__":
    sys.exit(main())
