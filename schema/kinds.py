"""Documents that come in several kinds: one schema, a model per kind, told apart by the key `kind`."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from vani.schema.model import Model

__all__ = ["DocumentOfKinds"]


class DocumentOfKinds(Model):
    """What all kinds of a document have in common; each is a subclass with a field `kind: Literal[...] = ...`."""

    @classmethod
    def variants(cls) -> tuple[type[DocumentOfKinds], ...]:
        """The kinds that this model stands for."""
        return tuple(cls.__subclasses__()) or (cls,)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a document of this kind, or, where called on what the kinds have in common, of any, from YAML or JSON.

        Raises
        ------
        DocumentError
            The file is no valid document, or one of another kind.
        """
        from vani.errors import DocumentError  # noqa: PLC0415 - YAML is not needed to build documents
        from vani.schema.document import read_text, read_tree, validate  # noqa: PLC0415
        from vani.schema.yaml.read import line_of  # noqa: PLC0415

        text = read_text(path)
        tree = read_tree(text, cls, where=str(path))
        known = {model.model_fields["kind"].default: model for model in cls.variants()}
        found = tree.get("kind")
        model = known.get(found) if isinstance(found, str) else None
        if model is None:
            what = (
                "key 'kind' is missing at the top" if "kind" not in tree else f"kind is {str(found)[:40]!r}"
            )
            place = f"{path}:{line_of(text, ('kind',)) if 'kind' in tree else 1}"
            name = str(tree["schema"]).removeprefix("vani.").partition("/")[0]
            raise DocumentError(what, where=place, todo=f"this takes a {name} of kind {' or '.join(known)}")
        checked = validate(tree, model, text=text, where=str(path))
        assert isinstance(checked, cls)
        return checked

    def to_yaml(self) -> str:
        """Write the document as YAML."""
        from vani.schema.document import dumps  # noqa: PLC0415

        return dumps(self)
