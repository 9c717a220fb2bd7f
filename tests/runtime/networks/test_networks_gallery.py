"""Models of the kinds that people export, in every form: SavedModels, frozen graphs, MetaGraphs with checkpoints."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import tests.runtime.networks.gallery_numbers
import tests.runtime.networks.gallery_signals
import tests.runtime.networks.gallery_text
import tests.runtime.networks.gallery_vision  # noqa: F401 - each registers its models
from tests.runtime.networks.gallery import EXAMPLES, FORMS

pytestmark = pytest.mark.tensorflow
OTHERS = [form for form in FORMS if form != "saved_model"]
#: each model as a SavedModel and in one form more, in turn; the rest with -m long
QUICK = [("saved_model", name) for name in EXAMPLES] + [
    (OTHERS[position % len(OTHERS)], name) for position, name in enumerate(EXAMPLES)
]


@pytest.mark.parametrize(("form", "name"), QUICK)
def test_model(tf: ModuleType, tmp_path: Path, form: str, name: str) -> None:
    FORMS[form](tf, EXAMPLES[name], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("form", "name"), [(f, n) for f in FORMS for n in EXAMPLES if (f, n) not in QUICK])
def test_in_the_other_forms(tf: ModuleType, tmp_path: Path, form: str, name: str) -> None:
    FORMS[form](tf, EXAMPLES[name], tmp_path)
