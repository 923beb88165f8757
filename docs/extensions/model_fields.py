"""Sphinx extension: what autodoc and napoleon lack for Vani's objects.

A document's model is shown with a table of its fields: the name in YAML, the JSON type with its unit, and the
description. A name without its module is resolved to its object.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

_JSON = {
    int: "integer",
    float: "number",
    str: "string",
    bool: "boolean",
    types.NoneType: "null",
    Any: "anything",
}


def json_type(hint: Any) -> str:
    """A type in JSON Schema's terms, as reStructuredText; models are links."""
    if hint in _JSON:
        return _JSON[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        facts = [text for extra in args[1:] for text in _facts(extra)]
        return ", ".join([json_type(args[0]), *facts])
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return f":class:`~{hint.__module__}.{hint.__qualname__}`"
    if origin in (Union, types.UnionType):
        return " or ".join(json_type(part) for part in args)
    if origin is Literal:
        return ", ".join(f"``{part}``" for part in args)
    if origin is tuple:
        return f"array [{'; '.join(json_type(part) for part in args)}]"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"object of {json_type(args[1])}"
    if isinstance(origin, type) and args:
        return f"array of {json_type(args[0])}"
    return f"``{getattr(hint, '__name__', hint)}``"


def _facts(extra: Any) -> list[str]:
    """Unit and bounds of an annotated type."""
    if not isinstance(extra, FieldInfo):
        return []
    bounds = {"Ge": "≥", "Gt": ">", "Le": "≤", "Lt": "<"}
    found = [extra.description.partition(",")[0]] if extra.description else []
    for one in extra.metadata:
        sign = bounds.get(type(one).__name__)
        if sign:
            found.append(f"{sign} {getattr(one, type(one).__name__.lower())}")
    return found


def table(model: type[BaseModel]) -> list[str]:
    """Lines of a reStructuredText table of a model's fields."""
    hints: dict[str, Any] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            hints |= inspect.get_annotations(base, eval_str=True)
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    rows = [("field", "type", "meaning")]
    for name, field in model.model_fields.items():
        meaning = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", field.description or "")
        rows.append((f"``{field.alias or name}``", json_type(hints[name]), meaning))
    for first, *others in rows:
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
    return [*lines, ""]


def _add_fields(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    del app, name, options
    if _is_model(what, obj) and obj.model_fields:
        lines += ["", *table(obj)]


def _skip_settings(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out pydantic's settings, which are not part of a document."""
    del app, what, obj, skip, options
    return True if name == "model_config" else None


_COLON = "\x00"


def _hide_colons(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Hide colons, since napoleon takes the text before one for an attribute's type; here annotations give types."""
    del app, name, obj, options
    if what in ("attribute", "data", "property"):
        lines[:] = [line.replace(":", _COLON) for line in lines]


def _bring_colons_back(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    del app, what, name, obj, options
    lines[:] = [line.replace(_COLON, ":") for line in lines]


def _signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """No signature for a protocol, or for a model, whose table shows more; for others one that can be parsed."""
    del app, name, options
    if _is_model(what, obj) or getattr(obj, "_is_protocol", False):
        return "", None
    return (arguments.replace("<factory>", "..."), returned) if arguments else None


def _is_model(what: str, obj: Any) -> bool:
    return what == "class" and isinstance(obj, type) and issubclass(obj, BaseModel)


def _find(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Resolve short names such as `InputError` to the only object of that name."""
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    named = [name for name in domain.objects if name.endswith("." + node["reftarget"])]
    if len(named) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", named[0], node, content)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    # Before and after napoleon, whose priority is 500.
    app.connect("autodoc-process-docstring", _hide_colons, priority=200)
    app.connect("autodoc-process-docstring", _bring_colons_back, priority=700)
    app.connect("autodoc-process-docstring", _add_fields, priority=800)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skip_settings)
    app.connect("missing-reference", _find)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
