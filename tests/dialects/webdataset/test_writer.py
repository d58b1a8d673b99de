"""`TarWriter` and `ShardWriter`: what others read, what is in the files, when they appear, and clear errors."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tarviz.dialects.webdataset as wds
from tarviz.model.errors import SchemaError, TarvizWarning, UsageError
from tarviz.read import stream as read_stream
from tests.conftest import each_case

LONG = "x" * 90 + "/" + "y" * 120
SAMPLES: list[dict[str, Any]] = [
    {"__key__": "d/0001", "png": bytes(range(256)) * 5, "cls": b"7", "txt": "grün"},
    {"__key__": LONG, "bin": b"", "json": b"{}"},
    {"__key__": "d/" + "z" * 98, "bin": b"\0" * 512, "seg.png": b"1" * 513},
]


def raw(sample: dict[str, Any]) -> dict[str, bytes]:
    return {name: value.encode() if isinstance(value, str) else value for name, value in sample.items() if not name.startswith("__")}


def listing(path: Path) -> list[tuple[str, bytes]]:
    with tarfile.open(path) as tar:
        return [(member.name, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    with wds.TarWriter(tmp_path / "a.tar") as sink:
        for sample in SAMPLES:
            sink.write(sample)
    return tmp_path / "a.tar"


class TestOthersReadIt:
    @pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
    def test_webdataset_reads_the_same_records(self, written: Path) -> None:
        theirs = pytest.importorskip("webdataset")

        found = list(theirs.WebDataset(str(written), shardshuffle=False))

        assert [(sample["__key__"], raw(sample)) for sample in SAMPLES] == [(sample["__key__"], raw(sample)) for sample in found]

    @pytest.mark.parametrize("tool", ["tar", "bsdtar"])
    def test_tar_tools_read_the_same_members(self, written: Path, tool: str, tmp_path: Path) -> None:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
        names = [f"{sample['__key__']}.{ext}" for sample in SAMPLES for ext in sorted(raw(sample))]

        out = subprocess.run([tool, "-tf", written], capture_output=True, text=True, check=True)
        assert ("", names) == (out.stderr, out.stdout.splitlines())
        (tmp_path / "x").mkdir()
        subprocess.run([tool, "-xf", written, "-C", tmp_path / "x"], check=True)
        for sample in SAMPLES:
            for ext, data in raw(sample).items():
                assert data == (tmp_path / "x" / f"{sample['__key__']}.{ext}").read_bytes()

    def test_hugging_face_datasets_reads_the_same_records(self, tmp_path: Path) -> None:
        datasets = pytest.importorskip("datasets", reason="datasets is not installed")
        expected = [{"__key__": f"d/{n:04d}", "txt": f"no {n}", "json": {"n": n}} for n in range(20)]
        with wds.TarWriter(tmp_path / "a.tar") as sink:
            for sample in expected:
                sink.write(sample)

        found = datasets.load_dataset("webdataset", data_files=str(tmp_path / "a.tar"), split="train", streaming=True)
        assert expected == [{name: row[name] for name in ("__key__", "txt", "json")} for row in found]

    def test_tarviz_reads_the_same_records(self, written: Path) -> None:
        found = [(record.key, {ext: bytes(record[ext]) for ext in record}) for record in read_stream.records(written)]

        assert [(sample["__key__"], raw(sample)) for sample in SAMPLES] == found


class TestReadsOthers:
    @pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tgz"])
    @pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
    def test_shards_of_webdataset_give_the_same_records(self, tmp_path: Path, suffix: str) -> None:
        theirs = pytest.importorskip("webdataset")
        with theirs.TarWriter(str(tmp_path / f"a.{suffix}")) as sink:
            for sample in SAMPLES[:1] + SAMPLES[2:]:
                sink.write(sample)

        found = list(wds.WebDataset(str(tmp_path / f"a.{suffix}")))

        assert [(s["__key__"], raw(s)) for s in SAMPLES[:1] + SAMPLES[2:]] == [(s["__key__"], raw(s)) for s in found]

    @pytest.mark.parametrize("command", [["tar", "--sort=name", "-cf"], ["tar", "--format=pax", "-cf"], ["bsdtar", "-cf"]])
    def test_shards_of_tar_tools_give_the_same_records(self, tmp_path: Path, command: list[str]) -> None:
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not installed")
        names = []
        for sample in SAMPLES:
            for ext, data in sorted(raw(sample).items()):
                name = f"{sample['__key__']}.{ext}"
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_bytes(data)
                names.append(name)
        subprocess.run([*command, tmp_path / "a.tar", "-C", tmp_path, *names], check=True)

        found = {sample["__key__"]: raw(sample) for sample in wds.WebDataset(str(tmp_path / "a.tar"))}

        assert {sample["__key__"]: raw(sample) for sample in SAMPLES} == found


class TestEncoding:
    def test_values_are_encoded_by_extension(self, tmp_path: Path) -> None:
        image = np.arange(24 * 20 * 3, dtype=np.uint8).reshape(24, 20, 3)
        sample = {
            "__key__": "a",
            "png": Image.fromarray(image),
            "x.png": image[:, :, 0],
            "f.png": image.astype(np.float32) / 255,
            "jpg": image,
            "ppm": image,
            "img": image,
            "cls": np.int64(7),
            "id": 3,
            "json": {"a": [1, 2]},
            "npy": image,
            "txt": "grün",
            "bin": bytearray(b"abc"),
            "note.gz": "hello",
            "_hidden": "x",
        }
        with wds.TarWriter(tmp_path / "a.tar") as sink:
            sink.write(sample)
        found = next(iter(wds.WebDataset(str(tmp_path / "a.tar"))))

        for ext in ("png", "ppm", "img", "f.png"):
            np.testing.assert_array_equal(image, np.asarray(Image.open(io.BytesIO(found[ext])).convert("RGB")))
        np.testing.assert_array_equal(image[:, :, 0], np.asarray(Image.open(io.BytesIO(found["x.png"]))))
        assert (20, 24) == Image.open(io.BytesIO(found["jpg"])).size
        assert (b"7", b"3", {"a": [1, 2]}) == (found["cls"], found["id"], json.loads(found["json"]))
        np.testing.assert_array_equal(image, np.load(io.BytesIO(found["npy"])))
        assert ("grün".encode(), b"abc", b"hello") == (found["txt"], found["bin"], gzip.decompress(found["note.gz"]))
        assert "_hidden" not in found

    def test_what_is_written_decodes_to_what_went_in(self, tmp_path: Path) -> None:
        sample = {"__key__": "a", "cls": 7, "json": {"b": 1}, "txt": "x", "png": np.eye(9, dtype=np.uint8)}
        with wds.TarWriter(tmp_path / "a.tar") as sink:
            sink.write(sample)

        found = next(iter(wds.WebDataset(str(tmp_path / "a.tar")).decode("l8")))

        assert (7, {"b": 1}, "x") == (found["cls"], found["json"], found["txt"])
        np.testing.assert_array_equal(np.eye(9), found["png"])

    @pytest.mark.parametrize("mode", ["1", "P", "I;16"])
    def test_a_png_keeps_the_numbers_of_a_mask_or_a_depth(self, tmp_path: Path, mode: str) -> None:
        mask = Image.new(mode, (5, 4), 1)
        with wds.TarWriter(tmp_path / "a.tar") as sink:
            sink.write({"__key__": "a", "seg.png": mask})
        (sample,) = wds.WebDataset(str(tmp_path / "a.tar"))

        found = Image.open(io.BytesIO(sample["seg.png"]))
        assert mode == found.mode
        np.testing.assert_array_equal(np.asarray(mask), np.asarray(found))

    def test_an_encoder_registered_for_an_extension_is_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(wds.writer.default_handlers, "wav", lambda value: b"RIFF%d" % value)
        with wds.TarWriter(tmp_path / "a.tar") as sink:
            sink.write({"__key__": "a", "wav": 7, "loud.wav": 8})

        (sample,) = wds.WebDataset(str(tmp_path / "a.tar"))
        assert (b"RIFF7", b"RIFF8") == (sample["wav"], sample["loud.wav"])

    def test_own_encoders_go_first(self, tmp_path: Path) -> None:
        with wds.TarWriter(tmp_path / "a.tar", encoder={"wav": lambda value: bytes(value)}) as sink:
            sink.write({"__key__": "a", "wav": [1, 2], "cls": 3})
        with wds.TarWriter(tmp_path / "b.tar", encoder=lambda sample: {"n": str(len(sample))}) as sink:
            sink.write({"__key__": "a", "cls": 3})

        assert [("a.cls", b"3"), ("a.wav", b"\1\2")] == listing(tmp_path / "a.tar")
        assert [("a.n", b"2")] == listing(tmp_path / "b.tar")

    def test_dwrite_takes_underscores_for_dots(self, tmp_path: Path) -> None:
        with wds.TarWriter(tmp_path / "a.tar", keep_meta=True, mtime=17) as sink:
            sink.dwrite("a", seg_txt="x")

        assert [("a.seg.txt", b"x")] == listing(tmp_path / "a.tar")

    @each_case(
        ("sample", "message"),
        [
            ({"png": b""}, "needs a __key__"),
            ({"__key__": 3}, "needs a __key__"),
            ({"__key__": "a", "cls": "x", "png": "text", "mp4": 3}, "no encoder for 'mp4'"),
            ({"__key__": "a", "png": np.zeros((4, 4, 3)) + 2}, r"floats in 0…1, got 2…2"),
            ({"__key__": "a", "png": [1]}, "expects an image"),
            ({"__key__": "a", "jpg": io.BytesIO(b"x")}, r"record \"a\": .* expects an image .* got BytesIO"),
            ({"__key__": "a", "jpg": Image.new("F", (5, 4))}, r"record \"a\": 'jpg' cannot be written: .* more than 8 bits"),
            ({"__key__": "a", "png": np.zeros((4, 4, 3), np.int64)}, "expects a uint8 image"),
            ({"__key__": "a", "cls": 1.5}, "expects a whole number"),
            ({"__key__": "a", "json": {1, 2}}, "cannot write this"),
            ("text", "a sample is a dict"),
        ],
    )
    def test_a_sample_that_cannot_be_written_is_refused(self, tmp_path: Path, sample: Any, message: str) -> None:
        with wds.TarWriter(tmp_path / "a.tar") as sink, pytest.raises((UsageError, SchemaError), match=message):
            sink.write(sample)

    def test_keys_that_readers_would_take_apart_are_told(self, tmp_path: Path) -> None:
        with wds.TarWriter(tmp_path / "a.tar") as sink:
            with pytest.warns(TarvizWarning, match="W_DOTTED_KEY"):
                sink.write({"__key__": "a.b", "cls": 1})
            with pytest.raises(UsageError, match="twice in a row"):
                sink.write({"__key__": "a.b", "txt": "x"})

    def test_bytes_only_when_encoding_is_off(self, tmp_path: Path) -> None:
        with wds.TarWriter(tmp_path / "a.tar", encoder=False) as sink, pytest.raises(SchemaError, match="is int, not bytes"):
            sink.write({"__key__": "a", "cls": 1})


class TestFiles:
    def test_a_tar_appears_when_it_is_complete(self, tmp_path: Path) -> None:
        sink = wds.TarWriter(tmp_path / "a.tar")
        sink.write({"__key__": "a", "cls": 1})
        before = (tmp_path / "a.tar").exists()
        sink.close()
        sink.close()

        assert (False, True) == (before, (tmp_path / "a.tar").exists())

    def test_an_exception_leaves_nothing(self, tmp_path: Path) -> None:
        def work() -> None:
            with wds.TarWriter(tmp_path / "a.tar") as sink:
                sink.write({"__key__": "a", "cls": 1})
                raise KeyError

        with pytest.raises(KeyError):
            work()

        assert [] == list(tmp_path.iterdir())

    @pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
    def test_a_writer_that_is_forgotten_says_so(self, tmp_path: Path) -> None:
        sink = wds.TarWriter(tmp_path / "a.tar")

        with pytest.warns(ResourceWarning, match="not closed"):
            del sink

    @pytest.mark.parametrize("compress", [None, "gz"])
    def test_an_open_file_gets_the_bytes(self, compress: str | None) -> None:
        stream = io.BytesIO()
        with wds.TarWriter(stream, compress=compress) as sink:
            sink.write({"__key__": "a", "cls": 1})
        data = gzip.decompress(stream.getvalue()) if compress else stream.getvalue()

        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            assert ["a.cls"] == tar.getnames()

    @pytest.mark.parametrize("name", ["a.tgz", "a.tar.gz"])
    def test_the_name_says_that_it_is_packed(self, tmp_path: Path, name: str) -> None:
        with wds.TarWriter(str(tmp_path / name)) as sink:
            sink.write({"__key__": "a", "cls": 1})

        assert b"\x1f\x8b" == (tmp_path / name).read_bytes()[:2]
        assert [("a.cls", b"1")] == listing(tmp_path / name)

    @each_case(("name", "compress"), [("bz2", "bz2"), ("xz", "xz"), ("tar.bz2", None), ("tar.xz", None), ("tar.zst", None)])
    def test_other_packings(self, tmp_path: Path, name: str, compress: str | None) -> None:
        shard = tmp_path / f"a.{name}"
        with wds.TarWriter(str(shard), compress=compress) as sink:
            sink.write({"__key__": "a", "cls": 1})

        assert [b"1"] == [sample["cls"] for sample in wds.WebDataset(str(shard))]
        if not name.endswith("zst"):
            assert [("a.cls", b"1")] == listing(shard)

    def test_a_packing_that_is_not_known_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="compress='lz4'"):
            wds.TarWriter(str(tmp_path / "a.tar"), compress="lz4")


class TestShardWriter:
    def fill(self, pattern: Path, count: int, **options: Any) -> list[str]:
        done: list[str] = []
        with wds.ShardWriter(str(pattern), post=done.append, **options) as sink:
            for number in range(count):
                sink.write({"__key__": f"{number:04d}", "bin": bytes(1000)})
        return [Path(name).name for name in done]

    def test_shards_hold_so_many_samples(self, tmp_path: Path) -> None:
        assert ["s-000000.tar", "s-000001.tar", "s-000002.tar"] == self.fill(tmp_path / "s-%06d.tar", 25, maxcount=10)
        assert [10, 10, 5] == [len(listing(tmp_path / f"s-{shard:06d}.tar")) for shard in range(3)]

    def test_size_counts_tar_bytes_and_is_never_exceeded(self, tmp_path: Path) -> None:
        names = self.fill(tmp_path / "s-{shard:02d}.tar", 25, maxsize=8192)

        sizes = [(tmp_path / name).stat().st_size for name in names]
        assert max(sizes) <= 8192
        assert [4, 4, 4, 4, 4, 4, 1] == [len(listing(tmp_path / name)) for name in names]

    def test_one_sample_that_is_larger_gets_a_shard_of_its_own(self, tmp_path: Path) -> None:
        assert 3 == len(self.fill(tmp_path / "s-{}.tar", 3, maxsize=1000))

    def test_there_is_no_empty_shard(self, tmp_path: Path) -> None:
        assert [] == self.fill(tmp_path / "s-%d.tar", 0)
        assert ["s-7.tar"] == self.fill(tmp_path / "s-%d.tar", 10, maxcount=10, start_shard=7)
        assert ["s-7.tar"] == [path.name for path in tmp_path.iterdir()]

    def test_a_pattern_has_to_count(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="counts nothing"):
            wds.ShardWriter(str(tmp_path / "s.tar"))


@each_case("key", ["../../x", "/etc/x", "a/../../x", "..", "~/x", "a\\..\\x", "C:/x", "a\0b"])
def test_a_key_that_leads_out_of_its_folder_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match="E_UNSAFE_NAME"), wds.TarWriter(str(tmp_path / "a.tar")) as sink:
        sink.write({"__key__": key, "bin": b"x"})
    assert [] == list(tmp_path.iterdir())


def copied(urls: str, writer: Any) -> None:
    """Every sample of some shards, written by a writer."""
    with writer as sink:
        for sample in wds.WebDataset(urls, shardshuffle=False):
            sink.write(sample)


class TestInputs:
    """What samples were read from is not written over (`__url__` says where that was): a `UsageError` before any of it is."""

    @pytest.fixture
    def shards(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        monkeypatch.chdir(tmp_path)
        for shard in range(4):
            with wds.TarWriter(f"a-{shard:03d}.tar") as sink:
                for at in range(5):
                    sink.write({"__key__": f"{shard}{at}", "cls": b"%d" % at})
        return sorted(tmp_path.iterdir())

    @pytest.mark.parametrize("name", ["a-002.tar", "./../{folder}/a-002.tar", "link.tar"])
    def test_a_tar_is_refused_as_its_own_output(self, shards: list[Path], name: str) -> None:
        Path("link.tar").symlink_to("a-002.tar")
        before = [path.read_bytes() for path in shards]

        with pytest.raises(UsageError, match="one of the inputs"):
            copied("a-{000..003}.tar", wds.TarWriter(name.format(folder=Path.cwd().name)))
        assert before == [path.read_bytes() for path in shards]
        assert {*shards, Path.cwd() / "link.tar"} == set(Path.cwd().iterdir())

    @each_case(("pattern", "start"), [("a-%03d.tar", 0), ("./a-%03d.tar", 0), ("a-{:03d}.tar", 0), ("a-%03d.tar", 2)])
    @each_case("maxcount", [1, 7, 1000])
    def test_so_are_shards(self, shards: list[Path], pattern: str, start: int, maxcount: int) -> None:
        before = [path.read_bytes() for path in shards]
        first = 2 if start else 0 if pattern != "a-{:03d}.tar" else 1

        with pytest.raises(UsageError, match="one of the inputs"):
            copied(f"a-{{{first:03d}..003}}.tar", wds.ShardWriter(pattern, maxcount=maxcount, start_shard=start))
        assert before == [path.read_bytes() for path in shards]
        assert shards == sorted(Path.cwd().iterdir())

    def test_other_names_and_samples_from_elsewhere_are_written(self, shards: list[Path]) -> None:
        with wds.ShardWriter("b-%03d.tar", maxcount=6) as sink, wds.TarWriter("c.tar") as tar:
            for sample in wds.WebDataset("a-{000..003}.tar", shardshuffle=False):
                sink.write(sample)
                tar.write({**sample, "__url__": "pipe:cat c.tar"})

        assert 20 == sink.total == len(listing(Path("c.tar")))
        assert 4 == len(list(Path.cwd().glob("b-*.tar")))


class TestRefusals:
    @each_case(
        ("encoder", "fields", "message"),
        [
            (True, {"npz": {"a": np.array([None])}}, "the array 'a' holds Python objects"),
            (True, {"npz": [1]}, "npz holds a dict of arrays by name, not list"),
            (True, {"npz": {1: np.zeros(1)}}, "npz holds a dict of arrays by name"),
            (True, {"pyd": 3}, r"encoder={'pyd': pickle\.dumps} does"),
            (True, {"png": np.full((2, 2, 3), -0.5)}, r"expects floats in 0…1, got -0\.5…-0\.5"),
            (True, {"png": np.zeros((2, 2, 2, 3), np.uint8)}, "expects an image .* got ndarray"),
            ({"x": str}, {"x": 3}, "the encoder of the field 'x' returned str, not bytes"),
            (None, {"cls": 3}, "the field 'cls' is int, not bytes"),
            (False, {"_x": 3, "cls": b"1"}, "the field '_x' is int, not bytes"),
        ],
    )
    def test_what_no_encoder_takes_names_field_and_record(self, tmp_path: Path, encoder: Any, fields: dict[str, Any], message: str) -> None:
        with wds.TarWriter(tmp_path / "a.tar", encoder=encoder, keep_meta=True) as sink:
            with pytest.raises(SchemaError, match=message) as caught:
                sink.write({"__key__": "k", **fields})
            sink.write({"__key__": "l", "txt": b""})

        assert "k" == caught.value.key
        assert [("l.txt", b"")] == listing(tmp_path / "a.tar")

    def test_what_messagepack_cannot_hold_is_one(self) -> None:
        pytest.importorskip("msgpack", reason="msgpack is not installed")
        for value in ({1, 2}, 2**70):
            with pytest.raises(SchemaError, match="MessagePack cannot hold this value"):
                wds.writer.default_handlers["mp"](value)

    @each_case(
        ("make", "message"),
        [
            (lambda name: wds.TarWriter(name, encoder=3), "encoder=3 is not an encoder"),
            (lambda name: wds.TarWriter(3), "TarWriter writes to a path, a URL or an open file, got int"),
            (lambda name: wds.ShardWriter(name, post=3), "post=3 is not a function"),
            (lambda name: wds.ShardWriter(name, opener="x"), "opener='x' is not a function"),
            (lambda name: wds.ShardWriter(name, maxcount=0), "maxcount=0 and"),
            (lambda name: wds.ShardWriter(name, maxsize=0), "maxsize=0 must be more than 0"),
        ],
    )
    def test_a_wrong_call_is_refused_at_once(self, tmp_path: Path, make: Any, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            make(str(tmp_path / "s-%d.tar"))
        assert [] == list(tmp_path.iterdir())

    def test_nothing_is_written_to_what_is_closed(self, tmp_path: Path) -> None:
        for sink in (wds.TarWriter(tmp_path / "a.tar"), wds.ShardWriter(str(tmp_path / "s-%d.tar"))):
            sink.close()
            with pytest.raises(UsageError, match="closed"):
                sink.write({"__key__": "a", "cls": 1})

    def test_a_dotted_key_is_told_once(self, tmp_path: Path) -> None:
        with wds.TarWriter(tmp_path / "a.tar") as sink:
            sink.write({"__key__": "d.e/a", "cls": 1})
            with pytest.warns(TarvizWarning, match=re.escape("'d.e/a.b'")):
                sink.write({"__key__": "d.e/a.b", "cls": 1})
            sink.write({"__key__": "d.e/a.c", "cls": 1})  # a warning would be an error


class TestMembers:
    def test_time_mode_and_order_are_those_that_were_asked_for(self, tmp_path: Path) -> None:
        with wds.TarWriter(tmp_path / "a.tar", mtime=17.9, mode=0o640) as sink:
            size = sink.write({"__key__": "a", "txt": "grün", "cls": 17})
        with tarfile.open(tmp_path / "a.tar") as tar:
            found = [(member.name, member.size, member.mtime, member.mode) for member in tar]

        assert 7 == size
        assert [("a.cls", 2, 17, 0o640), ("a.txt", 5, 17, 0o640)] == found

    def test_the_size_is_that_of_the_tar_so_far(self, tmp_path: Path) -> None:
        sizes = []
        with wds.TarWriter(tmp_path / "a.tar") as sink:
            for number in range(3):
                sizes.append(sink.size)
                sink.write({"__key__": str(number), "bin": bytes(513)})
        with wds.ShardWriter(str(tmp_path / "s-%d.tar"), maxcount=2) as shards:
            written = [shards.size]
            for number in range(3):
                shards.write({"__key__": str(number), "bin": bytes(513)})
                written.append(shards.size)

        assert [1024, 2560, 4096] == sizes
        assert [0, 2560, 0, 2560] == written
        assert 5632 == sink.size == (tmp_path / "a.tar").stat().st_size

    @pytest.mark.parametrize("size", [10, 9000, 3 << 20])
    def test_members_of_any_length_come_whole(self, tmp_path: Path, size: int) -> None:
        """Short ones are joined before they are written, long ones are not, and a megabyte waits at most."""
        stream = io.BytesIO()
        expected = [(f"{number}.bin", bytes([number]) * size) for number in range(3)]
        with wds.TarWriter(stream) as sink, wds.TarWriter(tmp_path / "a.tar") as other:
            for number, (_, data) in enumerate(expected):
                for each in (sink, other):
                    each.write({"__key__": str(number), "bin": data})
                if size > 1 << 20:
                    assert stream.tell() > number * size
        (tmp_path / "b.tar").write_bytes(stream.getvalue())

        assert expected == listing(tmp_path / "a.tar") == listing(tmp_path / "b.tar")

    def test_a_shard_ends_before_the_sample_that_is_too_much(self, tmp_path: Path) -> None:
        for limit, expected in ((5632, [3, 1]), (5631, [2, 2])):
            with wds.ShardWriter(str(tmp_path / f"{limit}-%d.tar"), maxsize=limit) as sink:
                for number in range(4):
                    sink.write({"__key__": str(number), "bin": bytes(513)})

            assert expected == [len(listing(tmp_path / f"{limit}-{number}.tar")) for number in range(len(expected))]
            assert expected == [written.records for written in sink.done]

    def test_arrays_are_written_as_npy(self) -> None:
        assert [1, 2] == np.load(io.BytesIO(wds.numpy_dumps(np.array([1, 2])))).tolist()

    @pytest.mark.torch
    def test_tensors_are_written_by_torch(self) -> None:
        torch = pytest.importorskip("torch", reason="torch is not installed")

        assert [1, 2] == wds.torch_loads(wds.torch_dumps(torch.tensor([1, 2]))).tolist()
