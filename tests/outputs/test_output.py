from __future__ import annotations

import errno
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from google_crc32c import value as crc
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz import stores
from tarviz.formats import tfrecord
from tarviz.model.errors import StoreError, TarvizError, UsageError
from tarviz.model.types import URL, to_text
from tarviz.outputs import TAR_END, Names, Output, Outputs, manifest_url, proven, read_manifest, tar_header, tar_member
from tests.conftest import wait_until


def frames(*sizes: int) -> tfrecord.RecordFrames:
    """Records that are so many bytes long with their frame."""
    return tfrecord.frame([bytes([at % 251]) * (size - tfrecord.FRAME) for at, size in enumerate(sizes)])


def outputs(path: Path, **options: object) -> Outputs:
    return Outputs(Names(str(path)), **options)  # type: ignore[arg-type]


class TestNames:
    def test_only_whole_names_are_taken(self, tmp_path: Path):
        (tmp_path / "x-1.tar.bak").touch()
        (tmp_path / "x-1.tar.old.tar").touch()
        (tmp_path / "x-a.tar").touch()
        Names(str(tmp_path / "x-{}.tar")).refuse_taken()
        (tmp_path / "x-27.tar").touch()

        with pytest.raises(UsageError, match=r"x-27\.tar is there already"):
            Names(str(tmp_path / "x-{}.tar")).refuse_taken()

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("out/train-{}.tfrecord", ["out/train-1.tfrecord", "out/train-2.tfrecord"]),
            ("train-{:04d}.record", ["train-0001.record", "train-0002.record"]),
            ("train-{shard:06d}.record", ["train-000000.record", "train-000001.record"]),
            ("train-{shard}-x{}.record", ["train-0-x1.record", "train-1-x2.record"]),
            ("train-%06d.record", ["train-000000.record", "train-000001.record"]),
            ("%d.record", ["0.record", "1.record"]),
            ("s3://data/x%20day.record?sig=%da%0d", ["s3://data/x%20day.record?sig=%da%0d", "s3://data/x%20day-1.record?sig=%da%0d"]),
            ("train.record", ["train.record", "train-1.record"]),
            ("a.b/train", ["a.b/train", "a.b/train-1"]),
            ("my.train.tfrecord.gz", ["my.train.tfrecord.gz", "my.train-1.tfrecord.gz"]),
            ("memory://out/train.record", ["memory://out/train.record", "memory://out/train-1.record"]),
            ("http://host/train.record?sig=a.b", ["http://host/train.record?sig=a.b", "http://host/train-1.record?sig=a.b"]),
        ],
    )
    def test_outputs_are_counted(self, text, expected):
        names = Names(text)

        assert expected == [names.at(0), names.at(1)]

    @pytest.mark.parametrize("text", ["train-{0..3}.record", "train-{", "{name}.record", "{0.__class__}", "{:>9999999}"])
    def test_braces_that_count_nothing_are_refused(self, text):
        with pytest.raises(UsageError, match="counts outputs"):
            Names(text)

    def test_a_folder_is_refused_with_a_name_to_use(self, tmp_path):
        with pytest.raises(UsageError, match=r"train-\{\}\.tfrecord"):
            Names(str(tmp_path))
        with pytest.raises(UsageError, match="folder"):
            Names("out/")

    def test_standard_output_is_one_output(self):
        assert Names("-").at(0) == "-"
        with pytest.raises(UsageError, match="one output"):
            Names("-").at(1)


class TestRotation:
    @given(st.lists(st.integers(16, 400), max_size=40), st.integers(1, 1000), st.integers(1, 7))
    @settings(deadline=None)
    def test_no_file_exceeds_the_limit_unless_one_record_does_and_none_is_empty(self, sizes, limit, batch):
        name = URL("memory://rotation/train.record")
        run = Outputs(Names(name), max_size=limit)
        with run:
            for first in range(0, len(sizes), batch):
                run.add(frames(*sizes[first : first + batch]))

        data = [stores.of(each.url).read(each.url, 0, 1 << 20) for each in run.done]
        assert sum(sizes) == sum(map(len, data))
        assert [each.bytes for each in run.done] == list(map(len, data))
        assert [f"{crc(each):08x}" for each in data] == [each.crc32c for each in run.done]
        assert [each.records for each in run.done] == [len(list(tfrecord.read(each))) for each in data]
        assert [run.names.at(at) for at in range(len(run.done))] == [each.url for each in run.done]
        for each, after in zip(run.done, [*data[1:], b""], strict=True):
            assert each.bytes <= limit or each.records == 1
            assert each.records or not sizes
            if after:
                following = len(next(iter(tfrecord.read(after)))) + tfrecord.FRAME
                assert each.bytes + following > limit

    def test_the_bytes_do_not_depend_on_how_records_arrive(self, tmp_path):
        sizes = list(range(20, 120))
        one, two = outputs(tmp_path / "one.record", max_size="1kB"), outputs(tmp_path / "two.record", max_size=1000)
        with one, two:
            one.add(frames(*sizes))
            for at, size in enumerate(sizes):
                two.add(tfrecord.frame([bytes([at]) * (size - tfrecord.FRAME)]))

        assert [Path(each.url).read_bytes() for each in one.done] == [Path(each.url).read_bytes() for each in two.done]

    def test_without_a_limit_there_is_one_output_even_of_nothing(self, tmp_path):
        with outputs(tmp_path / "new" / "train.record") as run:
            pass

        assert [(str(tmp_path / "new" / "train.record"), 0, 0)] == [(each.url, each.records, each.bytes) for each in run.done]

    def test_a_number_of_records_may_be_the_limit(self, tmp_path):
        with outputs(tmp_path / "train-{}.record", max_records=3) as run:
            run.add(frames(20, 20, 20, 20))
            run.add(frames(20, 20, 20, 20))

        assert [3, 3, 2] == [each.records for each in run.done]

    def test_the_least_limit_makes_an_output_of_each_record(self, tmp_path):
        with outputs(tmp_path / "train-{}.record", max_size=1) as run:
            run.add(frames(20, 30))
        with outputs(tmp_path / "other-{}.record", max_records=1) as other:
            other.add(frames(20, 30))

        assert [20, 30] == [each.bytes for each in run.done] == [each.bytes for each in other.done]

    @pytest.mark.parametrize("limit", [0, -1, "much", "1 parsec"])
    def test_a_limit_that_is_none_is_refused(self, tmp_path, limit):
        with pytest.raises(UsageError):
            outputs(tmp_path / "train.record", max_size=limit)
        with pytest.raises(UsageError, match="at least one record"):
            outputs(tmp_path / "train.record", max_records=0)

    def test_what_ends_a_file_is_counted_in(self, tmp_path):
        with outputs(tmp_path / "t-{}.record", max_size=100, ending=b"e" * 20) as run:
            run.add(frames(40, 40, 40))
            run.add(frames(41, 90))

        assert [100, 60, 61, 110] == [each.bytes for each in run.done]

    def test_they_are_counted_from_where_they_start_and_hold_the_first_that_was_added(self, tmp_path):
        with outputs(tmp_path / "t-{}.record", max_records=1, start=3) as run:
            run.add(frames(20, 30))
            run.settle()
            assert ["t-4.record"] == sorted(name for name in os.listdir(tmp_path) if not name.startswith("."))

        assert [f"t-{at}.record" for at in (4, 5)] == [Path(each.url).name for each in run.done]

    @pytest.mark.parametrize(("how", "unpack"), [("gzip", gzip.decompress), ("zlib", zlib.decompress)])
    def test_compressed_outputs_hold_the_same_records_and_stay_below_the_limit(self, tmp_path, how, unpack):
        rng = np.random.default_rng(0)
        records = [rng.bytes(900) for _ in range(300)]
        with outputs(tmp_path / "train-{}.record", max_size=100_000, compression=how) as run:
            run.add(tfrecord.frame(records))

        assert 3 == len(run.done)
        assert all(each.bytes <= 100_000 for each in run.done)
        data = [Path(each.url).read_bytes() for each in run.done]
        assert records == [bytes(record) for each in data for record in tfrecord.read(unpack(each))]
        assert [f"{crc(each):08x}" for each in data] == [each.crc32c for each in run.done]


class TestManifest:
    def test_it_says_what_the_output_holds_and_where_that_comes_from(self, tmp_path):
        first, second = ({"shard": name, "size": 1, "etag": None, "mtime": None} for name in ("a.tar", "b.tar"))
        run = outputs(tmp_path / "t-{}.record", max_size=100, manifest={"format": "tfrecord"})
        with run:
            run.source(first)
            run.add(frames(40, 40, 40), np.array([0, 2, 3]), 5)
            run.source(second)
            run.add(frames(40), np.array([0]), 1)

        manifests = [json.loads(Path(manifest_url(each.url)).read_text()) for each in run.done]
        assert [[("a.tar", 0, 3)], [("a.tar", 3, 5), ("b.tar", 0, 1)]] == [
            [(part["shard"], part["first"], part["stop"]) for part in each["sources"]] for each in manifests
        ]
        assert [(2, 80, "tfrecord")] * 2 == [(each["records"], each["bytes"], each["format"]) for each in manifests]
        assert [each.crc32c for each in run.done] == [each["crc32c"] for each in manifests]
        assert [True, False] == [each["full"] for each in manifests]

    def test_of_a_source_without_a_record_it_says_so(self, tmp_path):
        with outputs(tmp_path / "t.record", manifest={}) as run:
            run.source({"shard": "grün.tar"})

        (part,) = read_manifest(run.done[0].url)["sources"]
        assert {"shard": "grün.tar", "first": 0, "stop": 0} == part
        assert "grün" in Path(manifest_url(run.done[0].url)).read_text("utf-8")

    def test_it_proves_the_output_it_was_written_with_and_no_other(self, tmp_path):
        with outputs(tmp_path / "t.record", manifest={}) as run:
            run.add(frames(40, 40))
        url = run.done[0].url
        manifest = read_manifest(url)

        kept = proven(url, manifest)
        changed = bytearray(Path(url).read_bytes())
        changed[30] ^= 1
        Path(url).write_bytes(changed)

        assert kept is not None
        assert (2, 80, True) == (kept.records, kept.bytes, kept.kept)
        assert proven(url, manifest) is None
        Path(url).write_bytes(b"short")
        assert proven(url, manifest) is None
        Path(url).unlink()
        assert proven(url, manifest) is None

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe"])
    def test_what_is_no_manifest_is_none(self, tmp_path, content):
        (tmp_path / "t.record.manifest.json").write_bytes(content)

        assert read_manifest(URL(str(tmp_path / "t.record"))) in (None, {})

    def test_an_older_manifest_never_stands_beside_a_newer_output(self, tmp_path, monkeypatch):
        with outputs(tmp_path / "t.record", manifest={}) as run:
            run.add(frames(40))
        seen = []
        replace = os.replace
        monkeypatch.setattr(os, "replace", lambda old, new: (seen.append((new, sorted(os.listdir(tmp_path)))), replace(old, new))[1])
        with outputs(tmp_path / "t.record", manifest={}) as run:
            run.add(frames(50))

        assert not any("t.record.manifest.json" in names for new, names in seen if new.endswith("t.record"))


class TestFailure:
    def test_an_exception_leaves_complete_outputs_and_nothing_else(self, tmp_path):
        def interrupted() -> None:
            with outputs(tmp_path / "t-{}.record", max_size=100) as run:
                run.add(frames(60, 60, 60))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()

        assert ["t-1.record", "t-2.record"] == sorted(os.listdir(tmp_path))
        assert all(1 == len(list(tfrecord.read((tmp_path / name).read_bytes()))) for name in os.listdir(tmp_path))

    def test_a_failed_run_leaves_the_output_of_the_run_before(self, tmp_path):
        (tmp_path / "t.record").write_bytes(b"before")

        def failing() -> None:
            with outputs(tmp_path / "t.record") as run:
                run.add(frames(60))
                raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            failing()

        assert b"before" == (tmp_path / "t.record").read_bytes()
        assert ["t.record"] == os.listdir(tmp_path)

    def test_existing_outputs_are_kept_where_that_is_asked(self, tmp_path):
        (tmp_path / "t.record").write_bytes(b"before")

        with pytest.raises(UsageError, match="exists='replace'"), outputs(tmp_path / "t.record", exists="error") as run:
            run.add(frames(60))
        assert b"before" == (tmp_path / "t.record").read_bytes()

    def test_what_came_there_meanwhile_is_left_alone(self, tmp_path):
        output = Output(str(tmp_path / "t.record"), exists="error")
        output.write([b"ours"])
        (tmp_path / "t.record").write_bytes(b"theirs")

        with pytest.raises(StoreError, match="E_EXISTS"):
            output.commit()
        assert (["t.record"], b"theirs") == (os.listdir(tmp_path), (tmp_path / "t.record").read_bytes())

    def test_a_full_disk_is_one_clear_line(self, tmp_path, monkeypatch):
        def full(fd: int, pieces: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "writev", full)
        with pytest.raises(StoreError, match="disk is full") as caught, outputs(tmp_path / "t.record") as run:
            run.add(frames(60))

        assert "\n" not in str(caught.value)
        assert [] == os.listdir(tmp_path)

    def test_a_real_full_disk_too(self, tmp_path):
        if not os.path.exists("/dev/full"):
            pytest.skip("no /dev/full here")
        with pytest.raises(TarvizError, match="full"), outputs(Path("/dev/full")) as run:
            run.add(frames(60))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_read_only_target_is_one_clear_line(self, tmp_path):
        tmp_path.chmod(0o500)
        with pytest.raises(StoreError, match="permission"), outputs(tmp_path / "t.record") as run:
            run.add(frames(60))

    def test_a_file_in_place_of_a_folder_is_one_clear_line(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")

        with pytest.raises(TarvizError, match="not a folder") as caught, outputs(tmp_path / "file" / "t.record") as run:
            run.add(frames(60))
        assert "\n" not in str(caught.value)

    @pytest.mark.matrix
    def test_a_killed_run_leaves_only_complete_outputs_and_the_next_clears_up(self, tmp_path):
        code = """
import sys
from tarviz.formats import tfrecord
from tarviz.outputs import Names, Outputs
run = Outputs(Names(sys.argv[1]), max_size=300_000, manifest={})
with run:
    for at in range(100_000):
        run.add(tfrecord.frame([bytes(1000)] * 20))
        if at == 10: print("on", flush=True)
"""
        target = tmp_path / "out" / "t-{}.record"
        rng = np.random.default_rng(0)
        for _ in range(4):
            child = subprocess.Popen(
                [sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, cwd=Path(stores.__file__).parents[2]
            )
            assert child.stdout is not None
            with child.stdout:
                child.stdout.readline()
                wait_until(lambda: any(target.parent.glob("t-*.record")))  # the first output is complete when its thread gets to it
                time.sleep(rng.random() * 0.1)
                child.send_signal(signal.SIGKILL)
                child.wait()
            names = [name for name in os.listdir(target.parent) if not name.startswith(".") and name.endswith(".record")]
            assert names
            for name in names:
                data = (target.parent / name).read_bytes()
                assert 295 == len(list(tfrecord.read(data)))
        with outputs(target, max_size=300_000, manifest={}) as run:
            run.add(tfrecord.frame([bytes(1000)] * 20_000))
        assert [] == [name for name in os.listdir(target.parent) if name.startswith(".")]


class TestWritingBehind:
    """Large outputs are written by a thread; nobody should notice."""

    RECORDS = tuple(bytes([at % 251]) * 500_000 for at in range(40))

    def test_the_bytes_and_their_crc_are_right(self, tmp_path):
        with outputs(tmp_path / "t.record") as run:
            for record in self.RECORDS:
                run.add(tfrecord.frame([record]))

        data = (tmp_path / "t.record").read_bytes()
        assert self.RECORDS == tuple(map(bytes, tfrecord.read(data)))
        assert (len(data), f"{crc(data):08x}") == (run.done[0].bytes, run.done[0].crc32c)

    @pytest.mark.parametrize("good", [9, 15, 39])
    def test_a_disk_that_fills_up_is_the_same_clear_line(self, tmp_path, monkeypatch, good):
        calls = []

        def filling(fd: int, pieces: list[bytes]) -> int:
            calls.append(fd)
            if len(calls) > good:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return sum(map(len, pieces))

        monkeypatch.setattr(os, "writev", filling)

        def write() -> None:
            with outputs(tmp_path / "t.record") as run:
                for record in self.RECORDS:
                    run.add(tfrecord.frame([record]))

        with pytest.raises(StoreError, match="disk is full"):
            write()
        assert [] == os.listdir(tmp_path)

    def test_an_interruption_leaves_nothing_and_no_thread(self, tmp_path):
        def interrupted() -> None:
            with outputs(tmp_path / "t.record") as run:
                for record in self.RECORDS:
                    run.add(tfrecord.frame([record]))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()

        assert [] == os.listdir(tmp_path)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("writes ")]


class TestTarHeader:
    @pytest.mark.parametrize(
        "name",
        [
            "a.jpg",
            "x" * 100,
            "x" * 101,
            "d/" * 60 + "k.jpg",
            "p" * 155 + "/" + "n" * 100,
            "p" * 156 + "/" + "n" * 100,
            "ü" * 200,
            "x" * 5000,
        ],
    )
    @pytest.mark.parametrize("size", [0, 1, 511, 512, 70_000])
    def test_tarfile_reads_names_and_sizes_back(self, name, size):
        data = b"".join(tar_member(name, bytes(size), 1_700_000_000)) + TAR_END

        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            (member,) = tar.getmembers()

        assert (name, size, 1_700_000_000, 0o644, True) == (member.name, member.size, member.mtime, member.mode, member.isfile())
        assert 0 == len(data) % 512

    @given(st.binary(min_size=1, max_size=300).filter(lambda name: b"\0" not in name), st.integers(0, 2**40), st.integers(-(2**40), 2**40))
    def test_any_name_bytes_and_numbers_come_back(self, name, size, mtime):
        with tarfile.open(fileobj=io.BytesIO(tar_header(name, size, mtime) + bytes(1024)), errors="surrogateescape") as tar:
            member = tar.next()

        assert member is not None
        assert (to_text(name).rstrip("/") or "", size, mtime) == (member.name.rstrip("/"), member.size, member.mtime) or name.startswith(
            b"/"
        )

    @pytest.mark.parametrize(("name", "size"), [("a\0b", 1), ("", 1), ("a", -1)])
    def test_what_no_tar_can_hold_is_refused(self, name, size):
        with pytest.raises(UsageError):
            tar_header(name, size)


class TestOutput:
    def test_standard_output_takes_the_records(self, capfdbinary, monkeypatch):
        with outputs(Path("-")) as run:
            run.add(frames(20))

        assert 1 == len(list(tfrecord.read(capfdbinary.readouterr().out)))
        assert 1 == run.done[0].records

    def test_many_pieces_are_written_in_order(self, tmp_path):
        output = Output(URL(str(tmp_path / "a")))
        pieces = [b"%06d" % at for at in range(5000)]
        output.write(pieces, 5000)

        written = output.commit()

        assert b"".join(pieces) == (tmp_path / "a").read_bytes()
        assert (f"{crc(b''.join(pieces)):08x}", False) == (written.crc32c, written.kept)
        assert written is output.commit()
        output.abort()
        assert (tmp_path / "a").exists()

    def test_without_a_sum_there_is_no_crc(self, tmp_path):
        with Output(URL(str(tmp_path / "a")), summed=False) as output:
            output.write([b"abc"])

        assert (3, "") == (output.commit().bytes, output.commit().crc32c)

    @pytest.mark.parametrize("packing", [None, "gzip"])
    @pytest.mark.parametrize("summed", [True, False])
    def test_bytes_are_sent_up_to_where_a_file_has_them(self, tmp_path, packing, summed):
        (tmp_path / "in").write_bytes(b"some bytes")
        output = Output(URL(str(tmp_path / "a")), packing=packing, summed=summed)
        with open(tmp_path / "in", "rb") as file:
            assert (4, 10) == (output.send(file.fileno(), 1, 4), output.send(file.fileno(), 8, 99))
        output.commit()

        data = (tmp_path / "a").read_bytes()
        assert b"omees" == (gzip.decompress(data) if packing else data)


def test_an_interrupt_in_the_last_step_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(sink: object) -> None:
        raise KeyboardInterrupt

    output = Output(URL(str(tmp_path / "a.tfrecord")))
    output.write(list(frames(40).buffers()))
    monkeypatch.setattr(type(output._sink), "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        output.commit()

    assert [] == os.listdir(tmp_path)
