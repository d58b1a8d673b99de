"""An IPython of its own, and real kernels."""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.widgets.conftest import png, tar

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def _loops_closed() -> Iterator[None]:
    """IPython, jupyter_client and nbclient drop event loops that nobody closes: each is held, and closed behind the last test."""
    made: list[asyncio.BaseEventLoop] = []
    begin = asyncio.BaseEventLoop.__init__

    def noted(loop: asyncio.BaseEventLoop) -> None:
        made.append(loop)
        begin(loop)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.BaseEventLoop, "__init__", noted)
        yield
    for loop in made:
        if not loop.is_running():
            loop.close()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An interactive shell as the terminal has it, with the extension loaded, in a folder with shards `s-0.tar` … `s-2.tar`."""
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    folder = tmp_path / "data"
    folder.mkdir()
    for shard in range(3):
        records = [(f"p/n{shard}{n}", {"png": png((n * 20, 9, 90), (20, 10)), "cls": b"%d" % n, "json": b"{}"}) for n in range(4)]
        tar(folder / f"s-{shard}.tar", records)
    monkeypatch.chdir(folder)
    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell(config=config)
    made.run_line_magic("load_ext", "tarviz")
    yield made
    made.run_line_magic("unload_ext", "tarviz")
    InteractiveShell.clear_instance()
    atexit.unregister(made.atexit_operations)  # it would collect all garbage of this process, and so would each shell of each test


@pytest.fixture(scope="module")
def kernel(shell_folder: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """`kernel(code, allow_stdin=True)`: what a real kernel answers: `id`, `status`, `error`, `outputs` (MIME bundles) and its streams.

    All tests of a module speak to one kernel: to start it and to load what draws pictures takes seconds.
    """
    client_module = pytest.importorskip("jupyter_client.manager")
    manager, client = client_module.start_new_kernel(
        kernel_name="python3",
        cwd=str(shell_folder),
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(shell_folder / "ipython")},
    )

    def run(code: str, *, allow_stdin: bool = True, timeout: float = 60, until: Callable[[], None] | None = None) -> dict[str, Any]:
        outputs: list[dict[str, Any]] = []
        streams = {"stdout": "", "stderr": ""}

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            match message["msg_type"]:
                case "stream":
                    streams[content["name"]] += content["text"]
                case "display_data" | "execute_result" | "update_display_data":
                    outputs.append({"kind": message["msg_type"], **content["data"]})
            if until is not None:
                until()

        reply = client.execute_interactive(code, allow_stdin=allow_stdin, timeout=timeout, output_hook=take, stop_on_error=False)
        content, asked = reply["content"], reply["parent_header"]["msg_id"]
        return {"id": asked, "status": content["status"], "error": content.get("evalue", ""), "outputs": outputs, **streams}

    run.interrupt = manager.interrupt_kernel  # type: ignore[attr-defined]
    run.client = client  # type: ignore[attr-defined]
    run("%load_ext tarviz")
    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def shell_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shards `s-0.tar` … `s-2.tar`."""
    folder = tmp_path_factory.mktemp("shell")
    for shard in range(3):
        tar(folder / f"s-{shard}.tar", [(f"p/n{shard}{n}", {"png": png((n * 20, 9, 90), (20, 10)), "cls": b"%d" % n}) for n in range(4)])
    return folder
