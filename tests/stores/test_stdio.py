"""`-` in a process of its own, where stdin and stdout are real."""

import os
import pty
import subprocess
import sys

import pytest

from tarviz import stores
from tarviz.model.errors import UsageError
from tarviz.model.types import URL

DASH = URL("-")


def run(code, **options):
    begin = "import sys\nfrom tarviz import stores\nstore = stores.of('-')\n"
    return subprocess.run([sys.executable, "-W", "error", "-c", begin + code], capture_output=True, check=False, **options)


ECHO = """
buffer = memoryview(bytearray(70_000))
with store.open('-', offset=OFFSET) as stream, store.create('-') as sink:
    while count := stream.readinto(buffer):
        sink.writev([buffer[:1], b'', buffer[1:count]])
print(stream.stat.size, sink.commit().size, file=sys.stderr)
"""


class TestStdio:
    @pytest.mark.parametrize("offset", [0, 1, 250_000, 300_000, 400_000])
    def test_bytes_go_in_and_out(self, offset):
        data = os.urandom(300_000)
        done = run(ECHO.replace("OFFSET", str(offset)), input=data)

        assert data[offset:] == done.stdout
        assert f"None {len(data[offset:])}\n".encode() == done.stderr

    def test_a_file_as_stdin_has_a_size(self, tmp_path):
        (tmp_path / "a").write_bytes(bytes(1000))
        with (tmp_path / "a").open("rb") as source:
            begin = "import sys\nfrom tarviz import stores\n"
            done = subprocess.run(
                [sys.executable, "-c", f"{begin}print(stores.of('-').stat('-'))"], stdin=source, capture_output=True, check=True
            )

        assert b"Stat(url='-', size=1000, etag=None, mtime=None, ranges=False)\n" == done.stdout

    def test_text_before_stays_in_order(self):
        done = run("sys.stdout.write('a'); sys.stdout.flush(); store.create('-').write(b'b'); sys.stdout.write('c')")

        assert b"abc" == done.stdout

    def test_what_the_system_sends_comes_behind_what_waits_in_the_buffer(self, tmp_path):
        (tmp_path / "a").write_bytes(b"sent")
        code = (
            "import os\nfrom tarviz import stores\nfrom tarviz.stores import stdio\n"
            "stdio.send_file = lambda to, fd, offset, count: os.write(to, os.pread(fd, count, offset))\n"  # not every kernel copies
            "sink = stores.of('-').create('-'); sink.write(b'before ')\n"
            f"with open({str(tmp_path / 'a')!r}, 'rb') as file: sink.send(file.fileno(), 0, 4)\nsink.write(b' after'); sink.commit()"
        )
        with (tmp_path / "out").open("wb") as out:
            subprocess.run([sys.executable, "-c", code], stdout=out, check=True, env={**os.environ, "PYTHONUNBUFFERED": ""})

        assert b"before sent after" == (tmp_path / "out").read_bytes()

    def test_a_terminal_gets_no_tar(self):
        main, side = pty.openpty()
        try:
            code = "from tarviz import stores\ntry: stores.of('-').create('-')\nexcept ValueError as error: print(error)"
            subprocess.run([sys.executable, "-c", code], stdout=side, check=True)
            output = os.read(main, 1000)
            code = "from tarviz import stores\ntry: stores.of('-').open('-')\nexcept ValueError as error: print(error)"
            done = subprocess.run([sys.executable, "-c", code], stdin=side, stdout=subprocess.PIPE, check=True)
        finally:
            os.close(main)
            os.close(side)

        assert b"standard output is a terminal" in output
        assert b"standard input is a terminal" in done.stdout

    def test_a_full_disk_is_said(self):
        with open("/dev/full", "wb") as full:
            code = "from tarviz import stores\nwith stores.of('-').create('-') as sink: sink.write(b'x')"
            done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False)

        assert b"E_WRITE -: standard output cannot be written: No space left on device" in done.stderr

    @pytest.mark.parametrize(
        "call", [lambda store: store.read(DASH, 0, 1), lambda store: store.list(DASH), lambda store: store.delete(DASH)]
    )
    def test_what_a_pipe_cannot_do_is_refused(self, call):
        with pytest.raises(UsageError, match="Save it to a file first"):
            call(stores.of("-"))

    def test_a_notebook_without_binary_output_is_told_to_name_a_file(self, monkeypatch):
        import io

        monkeypatch.setattr(sys, "stdout", io.StringIO())

        with pytest.raises(UsageError, match="Name a file"):
            stores.of("-").create(DASH)

    @pytest.mark.parametrize("mode", ["wb", "ab"])
    def test_a_file_is_sent_behind_text(self, mode, tmp_path):
        data = os.urandom(2_500_000)
        (tmp_path / "source").write_bytes(data)
        code = "import os; fd = os.open(sys.argv[1], os.O_RDONLY); sys.stdout.write('a'); sys.stdout.flush(); sink = store.create('-')\n"
        code += "sink.write(b'b'); sent = sink.send(fd, 5, 9_000_000); sink.write(b'c'); sink.commit(); print(sent, file=sys.stderr)"
        begin = "import sys\nfrom tarviz import stores\nstore = stores.of('-')\n"
        with (tmp_path / "out").open(mode) as out:
            argv = [sys.executable, "-W", "error", "-c", begin + code, str(tmp_path / "source")]
            done = subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, check=True)

        assert b"2499995\n" == done.stderr
        assert b"ab" + data[5:] + b"c" == (tmp_path / "out").read_bytes()
