"""The section `start_from`: variables that begin with what a checkpoint holds, as in TensorFlow's init_from_checkpoint.

    start_from: ckpt/model-1000          # a prefix, or a folder, whose latest checkpoint is taken

    start_from:
      checkpoint: ckpt
      variables: [encoder/*]             # names or patterns of variables that have their name in the checkpoint
      # or variables: {old/kernel: new/kernel, "old/": "new/"}: names or scopes in the checkpoint, and here

Without `variables`, all variables start from it that it has, whatever else there is. The checkpoint is read when the
variables are initialised, from the path as it stands here.
"""

from __future__ import annotations

import fnmatch

from toolkit.client.spec.builder import FAILED, FollowError, SpecBuilder
from toolkit.client.spec.values import NAME, NAMES
from toolkit.errors import did_you_mean
from toolkit.formats.schema.choices import OneOf
from toolkit.formats.schema.containers import Key, MapOf, Record
from toolkit.formats.schema.scalars import Text
from toolkit.formats.settings.tree import YamlItem
from toolkit.graph.metagraph import GraphKeys

START_FROM = OneOf(
    Text(noun="a checkpoint"),
    Record({
        "checkpoint": Key(Text(), "its prefix, or a folder", required=True),
        "variables": Key(OneOf(MapOf(NAME), NAMES), "names and patterns here, or NAME IN THE CHECKPOINT: NAME HERE"),
    }),
)  # fmt: skip


def build_start(spec: SpecBuilder, found: YamlItem | None) -> None:
    """Let variables be initialised from a checkpoint."""
    if found is None or spec.mistakes.has(found):
        return
    with spec.noting(found):
        from toolkit.client.train.warm_start import initialize_from_checkpoint

        section = found.section() if isinstance(found.value, dict) else None
        checkpoint = found if section is None else section["checkpoint"]
        held = _names_in(checkpoint)
        if spec.mistakes.errors and FAILED in spec.names.found.values():
            raise FollowError("")
        pairs = _pairs(spec, checkpoint, None if section is None else section.get("variables"), held)
        try:
            initialize_from_checkpoint(checkpoint.text(), pairs)
        except ValueError as error:
            raise found.error(str(error)) from None


def _names_in(checkpoint: YamlItem) -> set[str]:
    from toolkit.formats import bundle
    from toolkit.formats.bundle.locate import find_prefix

    with bundle.open_checkpoint(find_prefix(checkpoint.text())) as reader:
        return set(reader)


def _pairs(spec: SpecBuilder, checkpoint: YamlItem, chosen: YamlItem | None, held: set[str]) -> dict[str, str]:
    """Names or scopes in the checkpoint, and here.

    Raises:
        SpecError: a pattern matches no variable, or one that the checkpoint does not have; it has none at all.
    """
    if chosen is not None and isinstance(chosen.value, dict):
        return {name: item.text() for name, item in chosen.section()}
    variables = spec.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    here = [v.op.name if v.slice_info is None else v.slice_info.full_name for v in variables]
    if chosen is None:
        both = [name for name in here if name in held]
        if not both:
            raise checkpoint.error(f"it has none of the variables here ({', '.join(here[:3]) or 'there are none'})")
        return {name: name for name in both}
    pairs: dict[str, str] = {}
    for item in chosen.texts():
        matching = [name for name in here if fnmatch.fnmatchcase(name, item.text())]
        if not matching:
            raise item.error(f"no variable is named '{item.value}'{did_you_mean(item.text(), here)}")
        if lacking := [name for name in matching if name not in held]:
            raise item.error(f"{checkpoint.value}: there is no tensor '{lacking[0]}'{did_you_mean(lacking[0], held)}")
        pairs |= {name: name for name in matching}
    return pairs
