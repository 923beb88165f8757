"""The base of every document model: unknown keys are errors, and a document never changes.

Modules of `profile.yaml` omit `from __future__ import annotations`: pydantic would parse each annotation again.
"""

from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

_DEPRECATED: Final = {
    "construct", "copy", "dict", "from_orm", "json", "parse_file", "parse_obj", "parse_raw", "schema", "schema_json",
    "update_forward_refs", "validate",
}  # fmt: skip


class Model(BaseModel):
    """A part of a document. Sizes are bytes, times seconds, shares 0..1, rates bytes per second."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True)

    def __dir__(self) -> list[str]:
        """Names for completion, without the deprecated methods of pydantic 1."""
        return [name for name in super().__dir__() if name not in _DEPRECATED]


def schema_field(name: str) -> Any:
    """The field with the name and version of a document's schema."""
    return Field(alias="schema", default=name, description="name and version of this schema")


class SparseModel(Model):
    """A part of a document that leaves some keys out where none of them has a value."""

    optional_keys: ClassVar[tuple[str, ...]] = ()

    def keys_left_out(self) -> tuple[str, ...]:
        """The optional keys if all of them are null or empty, otherwise an empty set."""
        return () if any(getattr(self, name) for name in self.optional_keys) else self.optional_keys

    @model_serializer(mode="wrap")
    def _without_optional_keys(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tree: dict[str, Any] = serialize(self)
        for name in self.keys_left_out():
            tree.pop(name, None)
        return tree
