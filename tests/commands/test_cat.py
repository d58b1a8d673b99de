"""Concatenation: raw bytes kept, records chosen, fields and keys changed, damage never passed on."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarviz.cli import tar_tool_options
from tarviz.commands.cat import cat
from tarviz.formats.records import split_name
from tarviz.model.errors import ChangedError, DataError, NotFoundError, UsageError
from tarviz.testing.strategies import numbered_records, shard
from tarviz.testing.strategies import records as record_lists
from tarviz.tools import field_selection
from tests.commands.conftest import listed, names, plain
from tests.conftest import DATA

TARS = DATA / "corpora" / "generated"
Make = Callable[..., Path]
LARGE = b"\xff" * 70_000


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out" / "all.tar"


class TestPassThrough:
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_bytes_stay_as_they_are(self, make: Make, out: Path, payload: bytes):
        one, two = numbered_records(40, payload=payload), numbered_records(30, payload=payload, prefix="test/n")
        a, b = make(one), make(two, "b.tar")

        result = cat([a, b], out)

        assert shard([*one, *two]).rstrip(b"\0") == out.read_bytes().rstrip(b"\0")
        assert (70, 0) == (result.records, result.exit_code)
        assert out.stat().st_size == result.bytes

    @pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    def test_long_names_and_fractions_of_seconds_survive(self, make: Make, out: Path, format: int):
        content = [("é" * 40 + "/n" * 20 + f"{number}", {"jpg": b"1", "cls": b"2"}) for number in range(50)]
        a = make(content, format=format, mtime=0.5 if format == tarfile.PAX_FORMAT else 0)

        cat(a, out)

        assert a.read_bytes().rstrip(b"\0") == out.read_bytes().rstrip(b"\0")
        assert 100 == len(listed(out))

    @settings(max_examples=60, deadline=None)
    @given(st.lists(record_lists(), min_size=1, max_size=3), st.booleans())
    @pytest.mark.matrix
    def test_records_come_out_in_order(self, tmp_path_factory: Any, contents: Any, packed: bool):
        folder = tmp_path_factory.mktemp("cat")
        for number, content in enumerate(contents):
            data = shard(content, format=tarfile.GNU_FORMAT)
            (folder / f"{number}.tar").write_bytes(gzip.compress(data) if packed else data)
        result = cat([folder / f"{number}.tar" for number in range(len(contents))], folder / "out")

        expected = [record for content in contents for record in content]
        written = sum(1 for fault in result.report.warnings if fault.code == "W_MERGED_RECORD")
        assert len(expected) == result.records
        if not written:
            keys = [key for key, _ in expected]
            options = {"strict": len(set(keys)) == len(keys)}
            assert expected == plain(folder / "out", **options)

    def test_folders_and_links_stay_behind(self, out: Path):
        result = cat(next(TARS.glob("A25-*.tar")), out)

        assert 1 == result.exit_code
        assert {"W_SKIPPED_TYPE": 5} == result.report.counts()
        assert 2 == len(plain(out))

    def test_a_global_header_renames_nothing(self, out: Path):
        cat(TARS / "A44-pax-global-path.tar", out)

        assert 2 == len(listed(out))
        assert ["k0", "k1"] == [key for key, _ in plain(out)]

    def test_name_bytes_stay(self, out: Path):
        for path in sorted([*TARS.glob("A19-*.tar"), *TARS.glob("A20-*.tar"), *TARS.glob("A21-*.tar"), *TARS.glob("S0[1-7]-*.tar")]):
            result = cat(path, out)
            assert 2 >= result.exit_code
            expected = [name for name in names(path) if split_name(name)]

            assert expected == names(out), path

    def test_sparse_members_stay_sparse(self, out: Path):
        for path in sorted([*TARS.glob("A46-*.tar"), *TARS.glob("A47-*.tar")]):
            cat(path, out)

            assert plain(path) == plain(out)
            assert 4099 == len(plain(out)[0][1]["bin"])


class TestChoice:
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"count": 3}, [0, 1, 2]),
            ({"skip": 27}, [27, 28, 29]),
            ({"skip": 5, "count": 2}, [5, 6]),
            ({"slice": "1:30:13"}, [1, 14, 27]),
            ({"slice": slice(25, None, 2)}, [25, 27, 29]),
            ({"slice": ":2"}, [0, 1]),
            ({"count": 0}, []),
            ({"skip": 99}, []),
        ],
    )
    def test_records_are_counted_over_shards(self, make: Make, out: Path, options: Any, expected: list[int], payload: bytes):
        content = numbered_records(30, payload=payload)
        paths = [make(content[low : low + 10], f"{low}.tar") for low in (0, 10, 20)]

        cat(paths, out, **options)

        assert [content[number] for number in expected] == plain(out)

    def test_no_more_is_read_than_wanted(self, make: Make, tmp_path: Path, out: Path):
        a = make(numbered_records(3))
        (tmp_path / "broken.tar").write_bytes(a.read_bytes()[:2000])

        assert 3 == cat([a, tmp_path / "broken.tar"], out, count=3).records

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_a_shuffle_is_a_permutation_and_its_seed_repeats_it(self, make: Make, out: Path, payload: bytes):
        content = numbered_records(100, payload=payload)
        paths = [make(content[low : low + 25], f"{low}.tar") for low in range(0, 100, 25)]

        cat(paths, out, shuffle=30, seed=1)
        first = plain(out)
        cat(paths, out, shuffle=30, seed=1)
        again = plain(out)
        cat(paths, out, shuffle=30, seed=2)

        assert content != first
        assert content == sorted(first)
        assert first == again
        assert first != plain(out)

    def test_a_wrong_slice_is_refused(self, make, out):
        for wrong in ["3", "a:b", "1:2:0", "-3:2", "1:2:3:4"]:
            with pytest.raises(UsageError):
                cat(make(numbered_records(1)), out, slice=wrong)


class TestFields:
    CONTENT = [("a", {"jpg": b"1", "cls": b"2", "json": b"{}"}), ("b", {"PNG": b"3", "cls": b"4"}), ("c", {"cls": b"5", "jpg": b"6"})]

    def test_fields_are_kept_in_file_order(self, make: Make, out: Path):
        cat(make(self.CONTENT), out, fields="cls jpg;png")

        assert [b"a.jpg", b"a.cls", b"b.PNG", b"b.cls", b"c.cls", b"c.jpg"] == names(out)

    def test_the_first_alternative_that_is_there_is_taken(self, make: Make, out: Path):
        cat(make([("a", {"png": b"1", "jpg": b"2"})]), out, fields="jpg;png")

        assert [b"a.jpg"] == names(out)

    def test_a_field_gets_a_new_name(self, make: Make, out: Path):
        cat(make(self.CONTENT), out, fields="image:jpg;png cls")

        assert [("a", {"image": b"1", "cls": b"2"}), ("b", {"image": b"3", "cls": b"4"}), ("c", {"cls": b"5", "image": b"6"})] == plain(out)

    def test_a_record_that_lacks_a_field_is_an_error(self, make: Make, out: Path):
        with pytest.raises(DataError, match=r'E_SCHEMA .* record "b".* no field json; it has png cls.*json\?') as caught:
            cat(make(self.CONTENT), out, fields="json cls")

        assert "b" == caught.value.key
        assert not out.exists()

    def test_it_is_left_out_and_counted_when_asked(self, make: Make, out: Path):
        result = cat(make(self.CONTENT), out, fields="json cls", on_error="skip")

        assert ["a"] == [key for key, _ in plain(out)]
        assert (1, ["b", "c"]) == (result.exit_code, [fault.key for fault in result.report.skipped])

    def test_it_may_lack_an_optional_one(self, make: Make, out: Path):
        cat(make(self.CONTENT), out, fields="json? cls")

        assert [2, 1, 1] == [len(fields) for _, fields in plain(out)]

    def test_fields_are_dropped(self, make: Make, out: Path):
        cat(make(self.CONTENT), out, drop="json jpg")

        assert [b"a.cls", b"b.PNG", b"b.cls", b"c.cls"] == names(out)

    @settings(max_examples=60, deadline=None)
    @given(record_lists(), st.booleans())
    @pytest.mark.matrix
    def test_any_records_keep_what_is_asked_for(self, tmp_path_factory: Any, content: Any, rename: bool):
        folder = tmp_path_factory.mktemp("fields")
        (folder / "a.tar").write_bytes(shard(content, format=tarfile.GNU_FORMAT))
        new = "image" if rename else None
        cat(folder / "a.tar", folder / "out", fields=f"{'image:' if rename else ''}jpg;seg.png? cls?")

        expected = []
        for key, fields in content:
            taken = "jpg" if "jpg" in fields else "seg.png"
            kept = {new if new and ext == taken else ext: value for ext, value in fields.items() if ext in (taken, "cls")}
            expected += [(key, kept)] if kept else []
        assert expected == plain(folder / "out")

    def test_a_wrong_list_is_refused(self, make, out):
        for wrong in ["", "jpg jpg", "a:jpg a:png", "jpg;;png", ":jpg", "jpg image:jpg", "a/b"]:
            with pytest.raises(UsageError):
                cat(make(self.CONTENT), out, fields=wrong)


class TestKeys:
    def test_a_template_makes_new_keys(self, make: Make, out: Path):
        cat(make([("train/x1", {"JPG": b"1"}), ("train/x2", {"jpg": b"2"})], "s-07.tar"), out, key="val/{shard}/{base}_{n:04d}")

        assert [b"val/s-07/x1_0000.JPG", b"val/s-07/x2_0001.jpg"] == names(out)

    def test_a_pattern_is_replaced(self, make: Make, out: Path):
        cat(make([("train/x1", {"jpg": b"1"})]), out, sub=(r"^train/(\w)", r"val/\1-"))

        assert [b"val/x-1.jpg"] == names(out)

    def test_payload_time_and_mode_stay(self, make: Make, out: Path):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as tar:
            member = tarfile.TarInfo("a.bin")
            member.size, member.mtime, member.mode = 700, 1234567, 0o640
            tar.addfile(member, io.BytesIO(LARGE[:700]))
        cat(make(data.getvalue()), out, key="new/{key}" + "k" * 200)

        with tarfile.open(out) as tar:
            member = tar.getmembers()[0]
            assert ("new/a" + "k" * 200 + ".bin", 1234567, 0o640) == (member.name, member.mtime, member.mode)
            assert LARGE[:700] == tar.extractfile(member).read()  # type: ignore[union-attr]

    def test_sparse_members_are_unfolded_under_a_new_name(self, out: Path):
        for path in sorted([*TARS.glob("A46-*.tar"), *TARS.glob("A47-*.tar")]):
            cat(path, out, key="n{n}")

            assert [fields for _, fields in plain(path)] == [fields for _, fields in plain(out)]
            assert 2 == len(listed(out))

    def test_a_template_that_makes_no_key_is_refused(self, make, out):
        for template in ["{what}", "{key:03d}", "a.b", "{base}/", "{", "x{n}.y"]:
            with pytest.raises(UsageError):
                cat(make(numbered_records(2)), out, key=template)
            assert not out.exists()

    def test_one_key_side_by_side_is_warned_of(self, make: Make, out: Path):
        result = cat([make([("a", {"x": b""})]), make([("a", {"y": b""})], "b.tar")], out)

        assert (1, {"W_MERGED_RECORD": 1}) == (result.exit_code, result.report.counts())

    @pytest.mark.parametrize("options", [{}, {"key": "{key}"}, {"fields": "x y?"}])
    def test_one_key_side_by_side_since_what_stood_between_is_left_out(self, make: Make, out: Path, options: dict[str, str]):
        """The record between has a field twice; both the others are kept, and nothing told that they are read as one now."""
        shard = make([("a", {"x": b"1"}), ("b", {"x": b"2"}), ("b", {"x": b"2"}), ("a", {"y": b"3", "x": b"4"})])
        result = cat(shard, out, strict=False, on_error="skip", **options)

        counts = result.report.counts()
        assert (1, 2, 1) == (result.exit_code, result.records, counts["W_MERGED_RECORD"])
        assert "E_DUP_FIELD" in counts


class TestDamage:
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    @pytest.mark.parametrize("cut", [100, 1024, 5000, -513, -1024, -1500])
    def test_nothing_has_the_name_when_the_input_is_cut(self, make: Make, out: Path, cut: int, payload: bytes):
        data = shard(numbered_records(30, payload=payload)).rstrip(b"\0")
        data += bytes(-len(data) % 512)

        with pytest.raises(DataError):
            cat(make((data + bytes(1024))[:cut]), out)
        assert [] == list(out.parent.iterdir())

    def test_damage_is_placed_as_reading_places_it(self, make: Make, out: Path):
        data = bytearray(shard(numbered_records(30, payload=LARGE)))
        place = data.index(b"train/n00000017.cls")
        data[place] ^= 1

        with pytest.raises(DataError) as caught:
            cat(make(bytes(data)), out)

        assert ("E_CHECKSUM", place, 18, "train/n00000017") == (
            caught.value.code,
            caught.value.offset,
            caught.value.records_before,
            caught.value.details["pending"]["key"],
        )

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_skip_goes_on_and_counts(self, make: Make, out: Path, payload: bytes):
        content = numbered_records(30, payload=payload)
        data = bytearray(shard(content))
        data[data.index(b"train/n00000017.png")] ^= 1
        a, b = make(bytes(data)), make(numbered_records(2, prefix="b"), "b.tar")

        result = cat([a, b], out, on_error="skip")

        assert [key for key, _ in content if not key.endswith("17")] + ["b00000000", "b00000001"] == [key for key, _ in plain(out)]
        assert 1 == result.exit_code
        assert 1 == len(result.report.skipped)

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_a_key_that_comes_back_is_refused(self, make: Make, out: Path, payload: bytes):
        content = [*numbered_records(30, payload=payload), ("train/n00000003", {"txt": b""})]

        with pytest.raises(DataError, match=r"E_SPLIT_RECORD.*sort"):
            cat(make(content), out)

        assert (31, 1) == (cat(make(content), out, strict=False).records, cat(make(content), out, strict=False).exit_code)

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_a_field_given_twice_is_refused_or_chosen(self, make: Make, out: Path, payload: bytes):
        data = shard([("a", {"x": payload}), ("a", {"x": b"2", "y": b""}), *numbered_records(30, payload=payload)])

        with pytest.raises(DataError, match="E_DUP_FIELD"):
            cat(make(data), out)

        cat(make(data), out, duplicates="first")
        assert ("a", {"x": payload, "y": b""}) == plain(out)[0]
        cat(make(data), out, duplicates="last")
        assert ("a", {"x": b"2", "y": b""}) == plain(out)[0]

    def test_lenient_takes_a_tar_without_end(self, make: Make, out: Path):
        data = shard(numbered_records(30, payload=LARGE)).rstrip(b"\0")
        data += bytes(-len(data) % 512)

        result = cat(make(data), out, strict=False)

        assert (30, 1, {"W_NO_EOF": 1, "W_PENDING": 1}) == (len(plain(out)), result.exit_code, result.report.counts())

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_a_file_that_changes_meanwhile_is_noticed(self, make: Make, out: Path, payload: bytes, monkeypatch: pytest.MonkeyPatch):
        a = make(numbered_records(4000 if len(payload) < 1000 else 100, payload=payload))
        put = field_selection.Form.put

        def grow(*args: Any) -> None:
            with a.open("ab") as file:
                file.write(b"more")
            put(*args)

        monkeypatch.setattr(field_selection.Form, "put", grow)

        with pytest.raises(ChangedError):
            cat(a, out)
        assert not out.exists()

    def test_two_archives_in_one_file(self, make: Make, out: Path):
        data = shard(numbered_records(2)) + shard(numbered_records(2, prefix="b"))

        with pytest.raises(DataError, match="E_TRAILING"):
            cat(make(data), out)
        assert not out.exists()
        assert {"W_PENDING": 1, "W_TRAILING": 1} == cat(make(data), out, strict=False).report.counts()
        assert (4, 0) == ((result := cat(make(data), out, concatenated=True)).records, result.exit_code)


class TestPlaces:
    @pytest.mark.parametrize("name", ["o.tar", "o.tar.gz", "o.tgz", "o.tar.zst", "o.tar.bz2", "o.tar.xz"])
    def test_the_name_says_how_it_is_packed(self, make: Make, tmp_path: Path, name: str):
        if name.endswith("zst"):
            pytest.importorskip("zstandard")
        content = numbered_records(100)

        result = cat(make(content), tmp_path / name)

        assert content == plain(tmp_path / name)
        assert (name == "o.tar") == ((tmp_path / name).stat().st_size == result.bytes)

    def test_packed_bytes_do_not_depend_on_the_day(self, make: Make, tmp_path: Path):
        cat(make(numbered_records(10)), tmp_path / "1.gz")
        cat(make(numbered_records(10)), tmp_path / "2.gz")

        assert (tmp_path / "1.gz").read_bytes() == (tmp_path / "2.gz").read_bytes()

    def test_stores_are_inputs_and_outputs(self, make: Make):
        cat(make(numbered_records(10, payload=LARGE)), "memory://cat/a.tar")
        cat(["memory://cat/a.tar"], "memory://cat/b.tar", skip=8)

        assert numbered_records(10, payload=LARGE)[8:] == plain("memory://cat/b.tar")

    def test_a_file_is_not_replaced_by_what_is_made_of_it(self, make: Make):
        a = make(numbered_records(10, payload=LARGE))

        with pytest.raises(UsageError, match="one of the inputs"):
            cat(a, a, count=3)
        assert 10 == len(plain(a))

    def test_lists_name_shards(self, make: Make, tmp_path: Path, out: Path):
        a, b = make(numbered_records(2)), make(numbered_records(2, prefix="b"), "b.tar")
        (tmp_path / "list").write_text(f"# shards\n{a}\n\n{b}\n")

        assert 4 == cat((), out, files=str(tmp_path / "list")).records

    def test_a_list_from_elsewhere_may_not_name_local_files(self, make: Make, out: Path):
        from tarviz import stores

        with stores.of("memory://lists/1").create("memory://lists/1") as sink:  # type: ignore[arg-type]
            sink.write(f"{make(numbered_records(2))}\n".encode())

        with pytest.raises(UsageError, match="a file of this one"):
            tar_tool_options.listing("memory://lists/1")

    def test_a_missing_shard_is_named(self, make: Make, tmp_path: Path, out: Path):
        with pytest.raises(NotFoundError, match=r"b\.tar"):
            cat([make(numbered_records(1)), tmp_path / "b.tar"], out)
        assert not out.parent.exists()


class TestShell:
    def test_pipes_compose(self, make: Make, bash: Any, tmp_path: Path):
        make(numbered_records(50))

        done = bash("tarviz cat a.tar | tarviz cat -f cls -c 10 - | tar tf -")

        assert (0, b"") == (done.returncode, done.stderr)
        assert 10 == len(done.stdout.splitlines())

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    @pytest.mark.matrix
    def test_a_reader_that_leaves_is_no_error(self, make: Make, bash: Any, payload: bytes):
        make(numbered_records(9000 if len(payload) < 1000 else 100, payload=payload))

        done = bash("tarviz cat a.tar a.tar --lenient | head -c 1000 | wc -c; echo ${PIPESTATUS[0]}")

        assert b"1000\n141\n" == done.stdout
        assert b"" == done.stderr

    def test_a_broken_input_leaves_no_end_mark_in_the_pipe(self, make: Make, bash: Any, tmp_path: Path):
        data = shard(numbered_records(50))
        make(data[: len(data) // 2 + 100], "cut.tar")

        done = bash("tarviz cat cut.tar > out.tar")

        assert 2 == done.returncode
        assert b"E_TRUNCATED" in done.stderr
        with pytest.raises(DataError):
            plain(tmp_path / "out.tar")

    def test_json_goes_where_the_tar_does_not(self, make: Make, bash: Any):
        make(numbered_records(5))

        piped, named = bash("tarviz cat a.tar --json > out.tar"), bash("tarviz cat a.tar --json -o out.tar")

        assert 5 == json.loads(piped.stderr)["records"] == json.loads(named.stdout)["records"]
        assert b"" == named.stderr

    def test_a_filter_is_silent_but_for_warnings(self, make: Make, bash: Any):
        make([("a", {"x": b""}), *numbered_records(2)])
        make([("a", {"x": b""}), ("b/", {"x": b""})], "b.tar")

        done = bash("tarviz cat b.tar | wc -c")

        assert b"W_NO_KEY" in done.stderr
        assert 1 == done.returncode

    def test_a_terminal_gets_no_tar(self, make: Make, bash: Any):
        make(numbered_records(1))

        done = bash("script -qec 'tarviz cat a.tar' /dev/null")

        assert b"terminal" in done.stdout


def test_the_seed_orders_the_shards(make: Make, out: Path):
    paths = [make(numbered_records(1, prefix=f"{number}/"), f"{number}.tar") for number in range(8)]

    def order(seed: int) -> tuple[str, ...]:
        cat(paths, out, shuffle=1, seed=seed)
        return tuple(key for key, _ in plain(out))

    assert order(1) == order(1)
    assert 1 < len({order(seed) for seed in range(5)})


@pytest.mark.parametrize("options", [{"count": 1}, {"skip": 1}, {"count": 0}])
def test_a_slice_stands_alone(make: Make, out: Path, options: Any):
    with pytest.raises(UsageError, match="leave out count and skip"):
        cat(make(numbered_records(3)), out, slice="0:2", **options)


def test_a_slice_is_that_of_a_list(make, out):
    for part, expected in [
        (slice(None), [0, 1, 2, 3]),
        (slice(1, None, None), [1, 2, 3]),
        ("2:", [2, 3]),
        ("::2", [0, 2]),
        (slice(0, 0), []),
        ("1:2:1", [1]),
    ]:
        cat(make(numbered_records(4)), out, slice=part)

        assert [numbered_records(4)[at] for at in expected] == plain(out)


def test_a_slice_goes_forward(make, out):
    for part in [slice(-1, None), slice(0, -1), slice(0, 3, 0), slice(3, 0, -1)]:
        with pytest.raises(UsageError, match="goes forward"):
            cat(make(numbered_records(4)), out, slice=part)


def test_a_key_is_substituted_before_it_is_put_into_a_template(make: Make, out: Path):
    cat(make([("train/x1", {"jpg": b"1"})]), out, sub=("x", "y"), key="{folder}/{base}-{n}")

    assert [b"train/y1-0.jpg"] == names(out)


@pytest.mark.parametrize("drop", ["JPG cls", ["jpg", "cls"], ("jpg", "cls")])
def test_what_is_dropped_is_a_text_or_a_list(make: Make, out: Path, drop: Any):
    cat(make([("a", {"jpg": b"1", "cls": b"2", "txt": b"3"})]), out, drop=drop)

    assert [("a", {"txt": b"3"})] == plain(out)


def test_steps_go_on_over_the_borders_of_shards(make: Make, out: Path):
    paths = [make(numbered_records(count, prefix=name), f"{name}.tar") for name, count in (("a", 4), ("b", 1), ("c", 5))]
    whole = [key for name, count in (("a", 4), ("b", 1), ("c", 5)) for key, _ in numbered_records(count, prefix=name)]
    for first, step in ((0, 3), (1, 3), (2, 4), (5, 2)):
        cat(paths, out, slice=slice(first, None, step))

        assert whole[first::step] == [key for key, _ in plain(out)]
