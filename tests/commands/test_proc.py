"""Commands, scripts and chains on each record: private folders, nothing followed, nothing left, order and faults kept."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.proc import proc
from tarviz.model.errors import ChainError, DataError
from tarviz.testing.strategies import numbered_records
from tests.commands.conftest import ROOT, plain
from tests.conftest import wait_until

Make = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("tmp")
LARGE = b"\xff" * 70_000


class TestChain:
    def test_pictures_get_smaller_without_a_process(self, photos: Path, out: Path):
        from PIL import Image

        result = proc(photos / "photos-0000.tar", out, op="decode(jpg)|resize(jpg, (64, 48))|encode(jpg, quality=90)", workers=2)

        for (key, fields), (old_key, old) in zip(plain(out), plain(photos / "photos-0000.tar"), strict=True):
            assert (key, (48, 64), old["cls"], "JPEG") == (
                old_key,
                (image := Image.open(io.BytesIO(fields["jpg"]))).size,
                fields["cls"],
                image.format,
            )
        assert 0 == result.exit_code

    def test_is_what_the_chain_says(self, photos: Path, out: Path):
        from tarviz import ops
        from tarviz.read import stream

        chain = ops.parse_chain("decode(jpg)|resize(jpg, (64, 48))|encode(jpg, quality=90)")
        proc(photos / "photos-0000.tar", out, op=chain)

        with stream.records(photos / "photos-0000.tar") as records:
            assert [bytes(chain.run(record)["jpg"]) for record in records] == [fields["jpg"] for _, fields in plain(out)]

    def test_random_ops_depend_on_key_and_seed_alone(self, photos: Path, out: Path):
        chain = "decode(jpg)|random_crop(jpg, (32, 32))|encode(jpg)"
        results = []
        for workers, seed in ((1, 0), (3, 0), (3, 1)):
            proc(photos / "photos-0000.tar", out, op=chain, workers=workers, seed=seed)
            results.append(out.read_bytes())

        assert results[0] == results[1] != results[2]

    def test_fields_are_renamed_and_dropped(self, photos: Path, out: Path):
        proc(photos / "photos-0000.tar", out, op="keep(jpg, cls)|rename(image=jpg)")

        assert {"image", "cls"} == set(plain(out)[0][1])

    def test_a_field_that_is_no_bytes_is_refused(self, photos: Path, out: Path):
        with pytest.raises(DataError, match=r"encode\(jpg\)"):
            proc(photos / "photos-0000.tar", out, op="decode(jpg)")

    def test_a_record_that_fails_is_counted(self, make: Make, out: Path):
        result = proc(make([("a", {"jpg": b"no picture"}), ("b", {"txt": b""})]), out, op="decode(jpg)|encode(jpg)", on_error="skip")

        assert (0, ["a", "b"], 1) == (result.records, [fault.key for fault in result.report.skipped], result.exit_code)

    def test_a_chain_that_cannot_be_read(self, make: Make, out: Path):
        with pytest.raises(ChainError):
            proc(make(numbered_records(1)), out, op="decod(jpg)")


class TestShell:
    def test_the_example_of_the_issue(self, make: Make, bash: Any, tmp_path: Path):
        make([("a", {"jpg": b"12345"}), ("b", {"jpg": b""})], "in.tar")

        done = bash("tarviz proc -p 2 -c 'wc -c < sample.jpg > sample.size' in.tar -o out.tar")

        assert (0, b"") == (done.returncode, done.stderr)
        assert [b"5\n", b"0\n"] == [fields["size"] for _, fields in plain(tmp_path / "out.tar")]

    def test_what_commands_print_stays_out_of_the_tar(self, make: Make, bash: Any, tmp_path: Path):
        make(numbered_records(2))

        done = bash("tarviz proc -c 'ls; echo oops >&2' a.tar > out.tar")

        assert b"sample.cls\nsample.png\noops\n" * 2 == done.stderr
        assert numbered_records(2) == plain(tmp_path / "out.tar")

    def test_one_failure_ends_with_two_and_skips_with_one(self, make: Make, bash: Any, tmp_path: Path):
        make(numbered_records(3))

        failed = bash("tarviz proc -c 'false' a.tar -o out.tar")
        skipped = bash("tarviz proc -c '[ $(cat sample.cls) = 1 ]' --on-error skip a.tar -o out.tar --json")

        assert (2, 1) == (failed.returncode, skipped.returncode)
        assert b"E_COMMAND" in failed.stderr
        assert 1 == json.loads(skipped.stdout)["records"]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_ends_all_of_it(self, make: Make, tmp_path: Path, tmp: Path, number: signal.Signals):
        a, sleep = make(numbered_records(50)), f"sleep 966.{os.getpid()}"  # told from those of a run beside this one
        argv = [
            sys.executable,
            "-m",
            "tarviz",
            "proc",
            "-j",
            "3",
            "-c",
            f"mktemp {tmp_path}/began-XXXXXX > /dev/null; {sleep}",
            str(a),
            "-o",
            str(tmp_path / "o.tar"),
        ]
        process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True)
        wait_until(lambda: 3 == len(list(tmp_path.glob("began-*"))))
        process.send_signal(number)
        _, errors = process.communicate(timeout=100)  # the commands would take longer

        assert (130 if number == signal.SIGINT else 128 + number, b"") == (process.returncode, errors)
        assert [] == os.listdir(tmp)
        assert [] == [path for path in tmp_path.iterdir() if ".tmp-" in path.name or path.name == "o.tar"]
        assert sleep.encode() not in subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout

    def test_a_reader_that_leaves_is_no_error(self, make: Make, bash: Any):
        make(numbered_records(40, payload=LARGE))

        done = bash("tarviz proc -c true -j 2 a.tar | head -c 100 | wc -c; echo ${PIPESTATUS[0]}")

        assert (b"100\n141\n", b"") == (done.stdout, done.stderr)

    def test_graphicsmagick_and_the_chain_agree_on_the_size(self, photos: Path, bash: Any, tmp_path: Path):
        if not Path("/usr/bin/gm").exists():
            pytest.skip("GraphicsMagick is not installed")
        from PIL import Image

        done = bash(f"tarviz proc -p 2 -c 'gm mogrify -resize 256x256 *.jpg' {photos}/photos-0000.tar > out.tar")

        assert (0, b"") == (done.returncode, done.stderr)
        assert {256} == {max(Image.open(io.BytesIO(fields["jpg"])).size) for _, fields in plain(tmp_path / "out.tar")}

    def test_the_folder_of_a_worker_is_closed_to_others(self, make: Make, out: Path, tmp: Path):
        proc(make(numbered_records(1)), out, command=f"stat -c %a {tmp}/* > sample.mode")

        assert "700" == plain(out)[0][1]["mode"].decode().strip()
        assert stat.S_IMODE(tmp.stat().st_mode) & 0o700
