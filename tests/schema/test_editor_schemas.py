"""The JSON Schemas for editors accept every document in the repository, and refuse what Vani refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

import vani
from vani.schema.document import document_modules
from vani.schema.syntax.yaml_text import parse

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    schema["title"]: schema for schema in (json.loads(path.read_text()) for path in (ROOT / "schema/json").glob("*.json"))
}
_NAMED = re.compile(r"^\W*schema\W+(vani\.[a-z]+/\d+)", re.MULTILINE)


def documents() -> list[tuple[Path, str]]:
    """Small documents of the present versions in the repository."""
    found = []
    for folder in ("vani", "examples", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".yaml", ".json") and path.is_file() and path.stat().st_size < 60_000:
                named = _NAMED.search(path.read_text()[:2000])
                if named and named[1] in SCHEMAS and "schema/json" not in str(path):
                    found.append((path, named[1]))
    return found


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schema_is_valid_and_has_a_permanent_name(name):
    schema = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == "urn:" + name.replace(".", ":").replace("/", ":")
    assert len(SCHEMAS) == len(document_modules())


@pytest.mark.parametrize(("path", "name"), documents(), ids=lambda part: getattr(part, "name", ""))
def test_documents_of_the_repository_fit_their_schemas(path, name):
    jsonschema.Draft202012Validator(SCHEMAS[name]).validate(parse(path.read_text(), str(path)))


def test_a_profile_and_its_advice_fit_their_schemas():
    profile = vani.profile(ROOT / "vani/demo/ior-shared-file-8r", system="lassen")
    for document in (profile, vani.advise(profile, system="generic-lustre")):
        tree = json.loads(json.dumps(document.model_dump(by_alias=True, mode="json")))
        jsonschema.Draft202012Validator(SCHEMAS[tree["schema"]]).validate(tree)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("vani.jobs/1", {"schema": "vani.jobs/1", "jobs": [{"name": "a", "nodse": 1}]}),
        ("vani.policy/1", {"schema": "vani.policy/1", "limits": "none"}),
        ("vani.system/2", {"schema": "vani.system/2", "name": 7}),
        ("vani.tuned/1", {"schema": "vani.tuned/1"}),
    ],
)
def test_editor_schemas_refuse_invalid_documents(name, wrong):
    assert not jsonschema.Draft202012Validator(SCHEMAS[name]).is_valid(wrong)
