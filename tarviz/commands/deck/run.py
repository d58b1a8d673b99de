"""A notebook read from Markdown or JSON, and executed as if a person had pressed Run All."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tarviz.model.config import parse_size
from tarviz.model.errors import DataError, MissingPackageError, NotFoundError, TarvizError

BUDGET = "700kB"  # what each widget may keep for answers without a kernel
_FREEZE = """import sys
if "tarviz.widgets.host.view" in sys.modules:
    sys.modules["tarviz.widgets.host.view"].View.all_to_static({budget})
"""
_STRICT = """def _strict(shell=get_ipython()):
    run = shell.system
    def system(line):
        run(line)
        if code := shell.user_ns.get("_exit_code"):
            raise RuntimeError(f"!{line} ended with {code}")
    shell.system = system
_strict()
del _strict
"""


def read(path: Path, *, outputs: bool = False) -> Any:
    """The notebook in a `.md` or `.ipynb` file; with `outputs` a `.md` takes those stored in the `.ipynb` of the same name."""
    try:
        import jupytext
        import nbformat
        from jupytext.combine import combine_inputs_with_outputs
    except ImportError as error:
        raise MissingPackageError.of("jupytext", "Reading a notebook", "lab") from error

    if not path.is_file():
        raise NotFoundError(f"There is no notebook {path}.")
    try:
        notebook = jupytext.read(path)
    except (ValueError, nbformat.reader.NotJSONError) as error:
        raise DataError(f"{path} is not a notebook: {error}", code="E_NOTEBOOK", hint="Give a .md or .ipynb file.") from error
    stored = path.with_suffix(".ipynb")
    if outputs and stored != path and stored.is_file():
        notebook = combine_inputs_with_outputs(notebook, jupytext.read(stored))
    return notebook


def execute(notebook: Any, folder: Path, *, timeout: int = 600, budget: int | str = BUDGET) -> None:
    """Run all cells in `folder`, with this Python; outputs and the state of widgets are put into the notebook.

    A cell that fails ends it, and so does a `!` line that fails, unless the cell's tag is `raises-exception`. `budget`: bytes that a
    widget may keep for answers without a kernel.
    """
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    except ImportError as error:
        raise MissingPackageError.of("nbclient", "Executing a notebook", "deck") from error

    freeze = nbformat.v4.new_code_cell(_FREEZE.format(budget=parse_size(budget)))
    strict = nbformat.v4.new_code_cell(_STRICT)
    cells, notebook.cells = notebook.cells, [strict, *notebook.cells, freeze]
    client = NotebookClient(notebook, timeout=timeout, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    begun = [0]

    def failed(reason: str) -> TarvizError:
        notebook.cells = [*cells, freeze]
        return failure(notebook, begun[-1] - 1, reason)

    client.on_cell_execute = lambda cell, cell_index: begun.append(cell_index)
    with TemporaryDirectory(prefix="tarviz-") as private:
        said = Path(private) / "stderr"
        manager = client.create_kernel_manager()
        manager.connection_file = str(Path(private) / "kernel.json")
        if os.name == "posix":
            manager.transport = "ipc"  # sockets in that folder: nobody else on this machine can listen
        try:
            with said.open("wb") as stderr:  # what a cell says there comes through the kernel; this is the talk of libraries
                client.execute(env=environment(), stderr=stderr)
        except CellExecutionError as error:
            raise failed(f"{error.ename}: {error.evalue}") from error
        except CellTimeoutError as error:
            raise failed(f"it took more than {timeout} s") from error
        except DeadKernelError as error:
            last = said.read_text("utf-8", "replace").strip().rpartition("\n")[2]
            raise failed(f"the kernel died{f', its last words: {last}' if last else ''}") from error
        finally:
            notebook.cells = cells


def environment() -> dict[str, str]:
    """The environment of the kernel: this Python's commands come first, TensorFlow keeps its start-up talk to itself."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", **os.environ, "PATH": path}


def failure(notebook: Any, at: int, reason: str) -> TarvizError:
    """The error of a notebook that stopped at a cell, with that cell's first line."""
    first = next((line for line in notebook.cells[at].source.splitlines() if line.strip()), "")
    return DataError(f"Cell {at + 1} failed ({first[:80]}): {reason[:500]}", code="E_NOTEBOOK", hint="Run it in JupyterLab to see where.")
