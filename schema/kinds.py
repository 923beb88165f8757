"""Documents that come in several kinds: one schema, a model per kind, chosen by the key `kind`."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from vani.errors import DocumentError
from vani.schema.document import Document, read_text, read_tree, validate
from vani.schema.syntax.yaml_text import line_of


class DocumentOfKinds(Document):
    """The base of all kinds of a document; each is a subclass with a field `kind: Literal[...] = ...`."""

    @classmethod
    def variants(cls) -> tuple[type[DocumentOfKinds], ...]:
        """The kinds that this model covers."""
        return tuple(cls.__subclasses__()) or (cls,)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a document of this kind, or of any kind if called on the base class, from YAML or JSON.

        Raises
        ------
        DocumentError
            The file is not a valid document, or is of another kind.
        """
        text = read_text(path)
        tree = read_tree(text, cls, where=str(path))
        models = {model.model_fields["kind"].default: model for model in cls.variants()}
        kind = tree.get("kind")
        model = models.get(kind) if isinstance(kind, str) else None
        if model is None:
            fault = (
                "key 'kind' is missing at the top" if "kind" not in tree else f"kind is {str(kind)[:40]!r}"
            )
            place = f"{path}:{line_of(text, ('kind',)) if 'kind' in tree else 1}"
            name = str(tree["schema"]).removeprefix("vani.").partition("/")[0]
            raise DocumentError(fault, where=place, todo=f"this takes a {name} of kind {' or '.join(models)}")
        document = validate(tree, model, text=text, where=str(path))
        assert isinstance(document, cls)
        return document
