"""`tarviz browse`: the address it prints, how it ends, and what it is without a notebook."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tarviz import cli
from tarviz.commands.browse import can_open, seconds, serve
from tarviz.model.errors import UsageError
from tarviz.widgets.host.rpc import unpack
from tests.widgets.conftest import records, tar

ROOT = Path(__file__).parents[2]


@pytest.fixture
def shard(tmp_path):
    return tar(tmp_path / "a.tar", records(0, 5))


def start(*arguments):
    command = [sys.executable, "-m", "tarviz", "browse", *map(str, arguments), "--no-open"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_it_prints_its_address_serves_and_ends_at_ctrl_c(shard):
    process = start(shard)
    url = process.stdout.readline().strip()
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=100)
    connection.request("GET", f"/?{parts.query}")
    response = connection.getresponse()
    body = response.read()
    connection.close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)

    assert "127.0.0.1" == parts.hostname
    assert 200 == response.status
    assert b"widget.mjs" not in body
    assert b"page.mjs" in body
    assert "" == out
    assert "Traceback" not in err
    assert 0 == process.returncode


def test_class_numbers_have_the_names_of_a_file(shard, tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\nowl\n")
    process = start(shard, "--classes", tmp_path / "classes.txt")
    parts = urlsplit(process.stdout.readline().strip())
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=100)
    connection.request("GET", f"/?{parts.query}")
    cookie = connection.getresponse()
    cookie.read()
    connection.request("GET", "/state?session=a", headers={"Cookie": cookie.headers["Set-Cookie"].partition(";")[0]})
    message, _ = unpack(connection.getresponse().read())
    connection.close()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)

    assert ["0 cat", "1 dog", "2 owl"] == [row["label"] for row in message["_first"]["rows"]["rows"][:3]]


@pytest.mark.matrix
def test_it_ends_by_itself_when_nobody_looks(shard):
    process = start(shard, "--idle-exit", "0.5s")
    out, err = process.communicate(timeout=100)

    assert out.startswith("http://127.0.0.1:")
    assert "" == err
    assert 0 == process.returncode


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nowhere.tar"], "E_"), (["--where", "cls ==", "SHARD"], "cannot be read"), (["--idle-exit", "soon", "SHARD"], "not a time")],
)
def test_what_cannot_work_is_said_in_one_line(shard, arguments, words):
    process = start(*[shard if word == "SHARD" else word for word in arguments])
    out, err = process.communicate(timeout=100)

    assert 2 == process.returncode
    assert "" == out
    assert words in err
    assert 1 == len(err.strip().splitlines())


@pytest.mark.matrix
def test_core_alone_is_enough(shard):
    """The page needs neither Jupyter nor matplotlib nor TensorFlow: with these forbidden it still starts."""
    code = (
        "import sys\n"
        "for name in ('anywidget', 'ipywidgets', 'IPython', 'traitlets', 'matplotlib', 'tensorflow', 'torch', 'simplejpeg', 'zstandard'):\n"
        "    sys.modules[name] = None\n"
        "from tarviz.widgets.host.page import ControllerPage\n"
        "from tarviz.widgets.browse.controller import Browser\n"
        "import json\n"
        f"browser = Browser({str(shard)!r}, cache=False)\n"
        "with ControllerPage(browser).start() as page:\n"
        "    print(json.dumps(browser.first()[0]['poll']['total']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)

    assert 5 == json.loads(done.stdout), done.stderr


def test_times_are_written_as_people_do():
    for text, value in [("", None), ("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)]:
        assert value == seconds(text)


def test_other_times_are_refused():
    for text in ["soon", "-1s", "m", "1e99h"]:
        with pytest.raises(UsageError):
            seconds(text)


def test_a_browser_is_opened_only_where_there_is_a_window():
    assert can_open({}, "darwin")
    assert can_open({"DISPLAY": ":0"}, "linux")
    assert not can_open({}, "linux")


def test_the_browser_is_started_without_the_token(shard, tmp_path):  # F12: every user of the machine sees arguments
    script = tmp_path / "browser"
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "path = sys.argv[1].removeprefix('file://')\n"
        "folder = os.path.dirname(path)\n"
        "modes = [os.stat(path).st_mode & 0o777, os.stat(folder).st_mode & 0o777]\n"
        "print(json.dumps([sys.argv[1:], modes, open(path).read()]), flush=True)\n"
    )
    script.chmod(0o755)
    environment = os.environ | {"BROWSER": str(script), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "tarviz", "browse", str(shard)], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as done:
        assert done.stdout is not None
        url = done.stdout.readline().strip()
        argv, modes, page = json.loads(done.stdout.readline())
        done.send_signal(signal.SIGINT)

    token = url.partition("token=")[2]
    assert len(token) > 40
    assert token not in " ".join(argv)
    assert [0o600, 0o700] == modes
    assert f'content="0;url={url}"' in page
    assert not os.path.exists(argv[0].removeprefix("file://"))


def test_from_a_magic_outside_of_a_notebook_it_is_a_page_of_this_process(shard, tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\nowl\n")
    served = cli.invoke(
        ["browse", str(shard), "--classes", str(tmp_path / "classes.txt"), "--shuffle", "3", "--px", "96", "--where", "cls < 2"]
    )
    try:
        assert f"{served.url}\nserved from this process; .close() ends it" == str(served)
        assert {"url": served.url} == served.to_dict()
        with urllib.request.urlopen(served.url, timeout=100) as answer:
            assert 200 == answer.status
        browser = served.page.controller if hasattr(served.page, "controller") else None
        assert browser is None or browser.wait(4, 60)
    finally:
        served.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(served.url, timeout=100)


def test_serving_ends_where_nobody_looks_and_opens_what_only_this_user_can_read(shard, monkeypatch, capsys):
    seen = []

    def opened(address):
        path = Path(address.removeprefix("file://"))
        seen.append((path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777, path.read_text()))

    monkeypatch.setattr("webbrowser.open", opened)
    monkeypatch.setenv("DISPLAY", ":0")
    assert 0 == cli.main(["browse", str(shard), "--idle-exit", "0.2s"])
    url, _, rest = capsys.readouterr().out.partition("\n")

    assert "" == rest
    ((mode, folder, page),) = seen
    assert (0o600, 0o700) == (mode, folder)
    assert f'<meta http-equiv="refresh" content="0;url={url}"><title>tarviz</title><a href="{url}">Open tarviz</a>\n' in page


def test_a_page_for_the_network_is_warned_of_and_ctrl_c_closes_it(capsys):
    class Page:
        url, host, closed = "http://0.0.0.0:1/?token=x", "0.0.0.0", False

        def serve(self):
            raise KeyboardInterrupt

        def close(self):
            self.closed = True

    serve(page := Page(), opening=False)
    out, err = capsys.readouterr()

    assert page.closed
    assert f"{page.url}\n" == out
    assert "Anyone who can reach 0.0.0.0 and has this address can look at these shards.\n\n" == err


def test_a_signal_closes_it_and_takes_away_what_a_browser_was_shown(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    class Page:
        url, host, closed = "http://127.0.0.1:1/?token=x", "127.0.0.1", False

        def serve(self):
            assert ["open.html"] == [path.name for path in tmp_path.glob("*/*")]
            signal.raise_signal(signal.SIGTERM)

        def close(self):
            self.closed = True

    with pytest.raises(SystemExit) as ended:
        serve(page := Page(), opening=False)

    assert 128 + signal.SIGTERM == ended.value.code
    assert page.closed
    assert [] == list(tmp_path.iterdir())


def test_where_a_window_can_be_expected():
    for environment, platform, there in [
        ({}, "linux", False),
        ({"WAYLAND_DISPLAY": "w"}, "linux", True),
        ({"BROWSER": "b"}, "linux", True),
        ({"DISPLAY": ""}, "linux", False),
        ({}, "win32", True),
    ]:
        assert there == can_open(environment, platform)


@pytest.mark.parametrize(("text", "value"), [("1M", 60), ("0.5H", 1800), ("999999999", 999_999_999)])
def test_times_in_other_letters(text, value):
    assert value == seconds(text)


def test_times_that_are_none():
    for text in ["0", "0s", "1000000000", "1d", "s"]:
        with pytest.raises(UsageError, match="Write 90s, 30m or 2h"):
            seconds(text)
