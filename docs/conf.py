"""The site: the pages of this repository and the reference of the library. `make site` builds it.

The source folder is the repository, so that a relative link between pages leads to the same page on the code host and
in the site.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE.parent), str(_HERE / "extensions")]

import vani  # noqa: E402 - found by the line above

project = "Vani"
author = "The Vani authors"
project_copyright = author
version = release = vani.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "model_fields", "navigation", "command_help"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "examples/**"]
# Folders without a page are not even walked.
exclude_patterns = [".*", "**/.*", "**/__pycache__", "docs/extensions"]
exclude_patterns += ["advisors", "analyzers", "benchmarks", "build", "dist", "schema", "tests", "vani"]

navigation_indexes = [
    "docs/index",
    "docs/api/README",
    "docs/rules/README",
    "examples/README",
]

man_pages = [("docs/commands", "vani", "storage settings for HPC programs, from a trace", [author], 1)]

html_theme = "furo"
html_title = f"Vani {release}"
html_show_sourcelink = False
# The JSON Schemas, next to the first page.
html_extra_path = ["../schema/json"]
html_copy_source = False

# Links to headings, as code hosts make them.
myst_heading_anchors = 4
# What stands between backticks in a docstring is code.
default_role = "literal"
napoleon_google_docstring = False
# An attribute that a docstring lists is an object already, by its annotation.
napoleon_use_ivar = True
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

nitpicky = True
# A column is called `bytes` in several tables: Sphinx confuses them with the type that a function returns.
suppress_warnings = ["ref.python"]
# Objects of other projects: their pages are not loaded, so that a build needs no network.
_FOREIGN = ["collections", "datetime", "date", "enum", "pathlib", "Path", "types", "typing"]
_FOREIGN += ["networkx", "numpy", "np", "NDArray", "pandas", "pd", "pyarrow", "pa", "pydantic", "pydantic_core"]
nitpick_ignore_regex = [
    ("py:.*", rf"({'|'.join(_FOREIGN)})(\..*)?"),
    # Settings of commands: `vani COMMAND --help` describes their fields.
    ("py:class", r"(.*\.)?[A-Z]\w*Settings"),
]
nitpick_ignore = [
    # A mapping as YAML or JSON gives it, and a variable for any model of a document.
    ("py:class", "Doc"),
    ("py:class", "vani.schema.document.AnyDocument"),
    # What a measure passes on and gives: variables for any type, and for any plain values.
    ("py:class", "vani.analyzers.passes.Partial"),
    ("py:class", "vani.analyzers.passes.Partial_co"),
    ("py:class", "vani.analyzers.passes.Result_co"),
    ("py:class", "vani.analyzers.measurements.Result"),
    ("py:class", "Plain"),
    # The names of a profile's tables.
    ("py:class", "FrameName"),
    # Inner results, which no page describes.
    ("py:class", "vani.analyzers.measures.survey.SurveyResult"),
    ("py:class", "vani.analyzers.entities.view.PhaseRows"),
    ("py:class", "vani.analyzers.entities.flows.Links"),
    ("py:class", "vani.analyzers.intervals.Intervals"),
    ("py:class", "vani.analyzers.workload.Lives"),
    ("py:class", "vani.analyzers.workload.Renames"),
    ("py:class", "vani.analyzers.int_table._ByCell"),
    ("py:class", "vani.columns.Texts"),
    ("py:class", "vani.centre.prediction.behaviour.phases.RunPhases"),
    ("py:class", "RunPhases"),
    ("py:class", "vani.centre.prediction.behaviour.runs.Runs"),
    ("py:class", "vani.centre.prediction.behaviour.predictors.Follower"),
    # What a docstring names next to `sure`.
    ("py:class", "guesses"),
    # The base of patterns, which the guide for them describes.
    ("py:class", "vani.advisors.patterns.Pattern"),
    # Rows of tables and parts of documents, which the functions' texts describe.
    ("py:class", "vani.collect.tracing.outcome.Missed"),
    ("py:class", "vani.centre.service.advise.SiteAdvice"),
    ("py:class", "SacctJob"),
    ("py:class", "SharingRules"),
    ("py:class", "Subject"),
    ("py:class", "Trial"),
    # A history that is open, which a server takes.
    ("py:class", "vani.centre.history.runs.store.Store"),
]
