"""The notebooks of the examples: each runs in a copy of its folder, and prints the committed output.

`UPDATE_DOCS=1 python -m pytest tests/test_notebooks.py` writes the present outputs into the notebooks (like `make
docs`): read the diff. Texts are compared, which for a plot are its key numbers. Pictures and HTML tables are for
readers; they depend on versions of other projects and on taste.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from distribution import install

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
NOTEBOOKS = sorted(EXAMPLES.rglob("*.ipynb"))
UPDATE = bool(os.environ.get("UPDATE_DOCS"))

PLOT = "application/vnd.vegalite.v6+json"

each_notebook = pytest.mark.parametrize(
    "notebook", NOTEBOOKS, ids=lambda path: path.relative_to(EXAMPLES).as_posix()
)


def read(path: Path) -> Any:
    import nbformat  # noqa: PLC0415 - slow

    return nbformat.read(path, as_version=4)


async def run_all(notebooks: dict[Path, Any], environment: dict[str, str]) -> None:
    """Run each in its own kernel, in the folder that is its key's parent; two at a time."""
    from nbclient import NotebookClient  # noqa: PLC0415 - slow

    free = asyncio.Semaphore(2)

    async def run(path: Path, notebook: Any) -> None:
        client = NotebookClient(
            notebook,
            timeout=100,
            kernel_name="python3",
            resources={"metadata": {"path": str(path.parent)}},
            # The notebook's own test reports errors.
            allow_errors=True,
            record_timing=False,
        )
        async with free:
            await client.async_execute(env=environment)

    await asyncio.gather(*(run(path, notebook) for path, notebook in notebooks.items()))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Any]:
    """The notebooks with present outputs, all run once in a copy of the examples."""
    work = tmp_path_factory.mktemp("notebooks")
    copy, site = work / "examples", work / "site"
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        for project in copy.glob("*/pyproject.toml"):
            install(project.parent, site, patch)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{site}",
        "VANI_CACHE": str(work / "cache"),
        # Otherwise Python's debugger writes to stderr what it cannot debug.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "IPYTHONDIR": str(work / "ipython"),
        "JUPYTER_CONFIG_DIR": str(work / "jupyter"),
    }
    found = {path: read(path) for path in NOTEBOOKS}
    asyncio.run(run_all({copy / path.relative_to(EXAMPLES): nb for path, nb in found.items()}, environment))
    return found


def joined(outputs: list[Any]) -> list[Any]:
    """The outputs of a cell with its prints merged, since a busy machine delivers them in pieces."""
    from nbformat import NotebookNode  # noqa: PLC0415 - slow

    whole: list[Any] = []
    for output in outputs:
        if whole and output.output_type == "stream" and whole[-1].get("name") == output.name:
            whole[-1] = NotebookNode(whole[-1], text=whole[-1].text + output.text)
        else:
            whole.append(output)
    return whole


def shown(notebook: Any) -> list[list[Any]]:
    """The output of each code cell, without parts that differ between runs and versions."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts: list[Any] = []
            for output in joined(cell.outputs):
                assert output.output_type != "error", "".join(output.traceback)
                if output.output_type == "stream":
                    texts.append((output.name, output.text))
                else:
                    texts.append(("plot" if PLOT in output.data else "value", output.data["text/plain"]))
            cells.append(texts)
    return cells


def tidy(notebook: Any) -> Any:
    """A notebook as it is committed: no times, no version of the writer's Python, no pieces of output."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    return notebook


def test_output_of_a_cell_is_joined_however_it_arrives():
    from nbformat import v4  # noqa: PLC0415 - slow

    pieces = [("stdout", "a\n"), ("stdout", "b"), ("stdout", "\n"), ("stderr", "c\n"), ("stdout", "d\n")]
    outputs = [v4.new_output("stream", name=name, text=text) for name, text in pieces]
    outputs.append(v4.new_output("execute_result", {"text/plain": "7"}))
    notebook = v4.new_notebook(cells=[v4.new_code_cell("...", outputs=outputs)])
    wanted = [("stdout", "a\nb\n"), ("stderr", "c\n"), ("stdout", "d\n"), ("value", "7")]
    assert shown(notebook) == [wanted]
    committed = tidy(notebook)
    assert [out.text for out in committed.cells[0].outputs[:3]] == ["a\nb\n", "c\n", "d\n"]
    assert shown(committed) == [wanted]


@each_notebook
@pytest.mark.slow
def test_notebook_prints_its_committed_output(notebook, executed):
    import nbformat  # noqa: PLC0415 - slow

    now = shown(executed[notebook])
    # Pictures differ from run to run, and are no reason to write on their own.
    if UPDATE and now != shown(read(notebook)):
        nbformat.write(tidy(executed[notebook]), notebook)
    assert now == shown(read(notebook)), "run `make docs`, and read the diff"


@each_notebook
def test_notebook_is_small_and_does_not_describe_the_machine(notebook):
    text = notebook.read_text()
    assert len(text) < 100_000
    assert re.findall(r"/(?:home|root|tmp|Users|work)/[\w./-]*|site-packages", text) == []
    assert 'execution": {' not in text


@each_notebook
def test_a_notebook_shows_outputs_and_no_warning(notebook):
    cells = [cell for cell in read(notebook).cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in cells)
    assert [out.text for cell in cells for out in cell.outputs if out.get("name") == "stderr"] == []


@pytest.mark.parametrize(
    "folder",
    sorted(path for path in EXAMPLES.iterdir() if re.match(r"\d\d-", path.name)),
    ids=lambda path: path.name,
)
def test_a_numbered_example_has_a_readme_and_a_notebook(folder):
    page = (folder / "README.md").read_text()
    assert page.startswith(f"# {int(folder.name[:2])}. ")
    (notebook,) = folder.glob("*.ipynb")
    assert f"]({notebook.name})" in page
    assert f"]({folder.name}/README.md)" in (EXAMPLES / "README.md").read_text()
