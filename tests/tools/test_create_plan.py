"""Plans of tars: tables in TSV, CSV and Parquet, what their cells name, and what is wrong with them."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tarviz import stores
from tarviz.commands.create import create
from tarviz.commands.tsv import tsv
from tarviz.model.errors import MissingPackageError, UsageError
from tarviz.model.types import URL
from tarviz.testing.strategies import numbered_records, shard
from tarviz.testing.strategies import records as record_lists
from tarviz.tools.create_plan import Planned, paths_in, read_plan
from tests.commands.conftest import LARGE, listed, plain

Make = Callable[..., Path]


class TestPlan:
    def test_cells_are_text_and_files(self, plan: Any, out: Path, tmp_path: Path):
        result = create(plan("__key__\tcls\t@jpg\ntrain/x\t7\ta b.jpg\ntrain/y\t8\tlarge.bin\n"), out, base=tmp_path)

        assert [("train/x", {"cls": b"7", "jpg": b"small"}), ("train/y", {"cls": b"8", "jpg": LARGE})] == plain(out)
        assert (2, 0, out.stat().st_size) == (result.records, result.exit_code, result.bytes)
        assert 4 == len(listed(out))

    def test_keys_are_numbers_where_the_plan_has_none(self, plan: Any, out: Path):
        create(plan("cls\n7\n8\n"), out)
        assert ["000000000", "000000001"] == [key for key, _ in plain(out)]

        create(plan("cls\n7\n"), out, key="train/{record:04d}")
        assert ["train/0000"] == [key for key, _ in plain(out)]

    def test_csv_with_quotes(self, plan: Any, out: Path, tmp_path: Path):
        create(plan('__key__,txt,@jpg\nx,"a, ""b""\nc",a b.jpg\ny,b,\n', "plan.csv"), out, base=tmp_path)

        assert [("x", {"txt": b'a, "b"\nc', "jpg": b"small"}), ("y", {"txt": b"b"})] == plain(out)

    def test_a_missing_cell_is_no_field(self, plan: Any, out: Path):
        create(plan("__key__\tcls\ttxt\nx\t\\N\tone\ny\t2\t\n"), out)

        assert [("x", {"txt": b"one"}), ("y", {"cls": b"2", "txt": b""})] == plain(out)

    @settings(max_examples=60, deadline=None)
    @given(record_lists())
    @pytest.mark.matrix
    def test_a_table_made_by_tsv_makes_the_records_again(self, tmp_path_factory: Any, content: Any):
        folder = tmp_path_factory.mktemp("create")
        exts = sorted({ext for _, fields in content for ext in fields} or {"jpg"})
        content = [(key, dict(sorted(fields.items()))) for key, fields in content]
        (folder / "a.tar").write_bytes(shard(content, format=tarfile.GNU_FORMAT))

        tsv(folder / "a.tar", folder / "plan.tsv", fields=" ".join(exts))
        create(folder / "plan.tsv", folder / "out.tar")

        assert content == plain(folder / "out.tar")

    def test_windows_lines_and_byte_order_mark(self, plan: Any, out: Path):
        create(plan("\ufeff__key__\tcls\r\nx\t1\r\n"), out)

        assert [("x", {"cls": b"1"})] == plain(out)

    def test_files_may_be_elsewhere(self, plan: Any, out: Path):
        with stores.of("memory://c/x").create("memory://c/x") as sink:  # type: ignore[arg-type]
            sink.write(b"far")

        create(plan("__key__\t@bin\nx\tmemory://c/x\n"), out)

        assert [("x", {"bin": b"far"})] == plain(out)

    def test_a_plan_from_elsewhere_names_no_file_here(self, plan: Any, out: Path, tmp_path: Path):
        with stores.of("memory://c/plan.tsv").create("memory://c/plan.tsv") as sink:  # type: ignore[arg-type]
            sink.write(f"__key__\t@bin\nx\t{plan('')}\n".encode())

        with pytest.raises(UsageError, match="a file of this one"):
            create("memory://c/plan.tsv", out)

    def test_a_plan_that_cannot_be_followed_writes_nothing(self, plan, out, tmp_path, monkeypatch):
        for text, message in [
            ("", "plan is empty"),
            ("cls\tcls\n1\t2\n", "twice"),
            ("cls\t@cls\n1\t2\n", "twice"),
            ("a/b\n1\n", "names no field"),
            (".x\n1\n", "names no field"),
            ("__key__\tcls\na\n", "line 2 of the plan has 1 cell, the header 2"),
            ("__key__\tcls\n\t1\n", "line 2 of the plan has no key"),
            ("__key__\tcls\na.b\t1\n", "cannot be a key"),
            ("__key__\tcls\na\t\\N\n", "line 2: the record 'a' has no field"),
            ("__key__\tcls\na/\t1\n", "cannot be a key"),
            ("__key__\tcls\na\t1\nb\t1\na\t2\n", "line 4: the key 'a' appeared before"),
            ("__key__\t@jpg\na\tno.jpg\n", "line 2: there is no file 'no.jpg'"),
            ("__key__\t@jpg\na\tlarge.bin\nb\tno.jpg\n", "line 3: there is no file"),
        ]:
            place = plan(text)
            monkeypatch.chdir(tmp_path)

            with pytest.raises(UsageError, match=message):
                create(place, out)
            assert not out.exists()

    @pytest.mark.parametrize(
        ("name", "text", "mark"),
        [("a.csv", "cls;txt\n1;0,5\n", ";"), ("a.csv", "cls\ttxt\n1\tx\n", "\\t"), ("a.tsv", "cls,txt\n1,x\n", ",")],
    )
    def test_a_header_that_is_not_cut_says_what_stands_between_cells(self, plan: Any, out: Path, name: str, text: str, mark: str):
        with pytest.raises(UsageError, match="header is one title") as caught:
            create(plan(text, name), out)
        assert f"-d '{mark}' says what stands between the cells." == caught.value.hint

        assert 1 == create(plan(text, name), out, delimiter=mark).records

    def test_a_csv_that_cannot_be_read(self, plan: Any, out: Path):
        with pytest.raises(UsageError, match="line 2"):
            create(plan('cls\n"a" b\n', "plan.csv"), out)

    def test_skip_leaves_out_what_is_missing(self, plan: Any, out: Path, tmp_path: Path):
        result = create(plan("__key__\t@jpg\na\tno.jpg\nb\ta b.jpg\nb\ta b.jpg\n"), out, base=tmp_path, on_error="skip")

        assert ["b"] == [key for key, _ in plain(out)]
        assert (1, {"E_NOT_FOUND": 1, "E_USAGE": 1}) == (result.exit_code, result.report.counts())


class TestParquet:
    def test_nothing_and_a_path_are_no_bytes(self, out: Path, tmp_path: Path):
        arrow = pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        parquet = pytest.importorskip("pyarrow.parquet", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        parquet.write_table(arrow.table({"cls": [1, 2], "id": [1.5, float("nan")]}), tmp_path / "a.parquet")
        parquet.write_table(arrow.table({"jpg": [{"bytes": None, "path": "a.jpg"}]}), tmp_path / "b.parquet")
        parquet.write_table(arrow.table({"__key__": ["a", None]}), tmp_path / "c.parquet")

        create(tmp_path / "a.parquet", out)
        with pytest.raises(UsageError, match=r"the path a\.jpg and not the bytes"):
            create(tmp_path / "b.parquet", out)
        with pytest.raises(UsageError, match="line 2 of the plan has no key"):
            create(tmp_path / "c.parquet", tmp_path / "c.tar")

        assert [{"cls": b"1", "id": b"1.5"}, {"cls": b"2"}] == [fields for _, fields in plain(out)]

    def test_a_plan_in_parquet(self, plan: Any, out: Path, tmp_path: Path):
        arrow = pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        parquet = pytest.importorskip("pyarrow.parquet", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        plan("")
        rows = [
            {"__key__": "a", "@jpg": "a b.jpg", "cls": 7, "json": {"w": 1}, "png": {"bytes": b"\0", "path": "x.png"}, "txt": None},
            {"__key__": "b", "@jpg": "large.bin", "cls": 8, "json": {"w": 2}, "png": None, "txt": "b"},
        ]
        parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "plan.parquet")

        create(tmp_path / "plan.parquet", out, base=tmp_path)

        assert [
            ("a", {"jpg": b"small", "cls": b"7", "json": b'{"w": 1}', "png": b"\0"}),
            ("b", {"jpg": LARGE, "cls": b"8", "json": b'{"w": 2}', "txt": b"b"}),
        ] == plain(out)

    def test_tsv_there_and_back(self, make: Make, out: Path, tmp_path: Path):
        pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")
        content = numbered_records(20)

        tsv(make(content), tmp_path / "plan.parquet", fields="png cls", format="parquet")
        create(tmp_path / "plan.parquet", out)

        assert content == plain(out)


class TestTitles:
    def test_a_header_that_names_no_fields_is_refused(self, tmp_path):
        for text, fields, said in [
            ("", {}, "the plan is empty"),
            ("\t\n", {}, "the plan is empty"),
            ("a\ta\n", {}, "names no field, or one twice"),
            ("@jpg\tJPG\n", {}, "names no field, or one twice"),
            ("a/b\n", {}, "names no field"),
            (".a\n", {}, "names no field"),
            ("a.\n", {}, "names no field"),
            ("a\tb\n", {"y": "cls"}, "no column 'y'; it has a, b"),
            ("a\tb\n", {"a": "cls", "b": "cls"}, "or one twice"),
            ("a\tb\n1\n", {}, "line 2 of the plan has 1 cell, the header 2"),
            ("__key__\tb\n\t1\n", {}, "line 2 of the plan has no key"),
        ]:
            (tmp_path / "plan.tsv").write_text(text)

            with pytest.raises(UsageError, match=said):
                read_plan(str(tmp_path / "plan.tsv"), None, "{n}", "", fields, check=True)

    def test_what_is_no_table_is_refused_by_its_name(self):
        for name in ["p.xlsx", "p.XLS", "p.json", "p.jsonl"]:
            with pytest.raises(UsageError, match="a plan is a table in CSV, TSV or Parquet"):
                read_plan(name, None, "{n}", "", {}, check=True)

    def test_the_whole_of_a_plan(self, tmp_path: Path):
        (tmp_path / "plan.csv").write_text("file, label ,\na.jpg,dog,1\n,cat,2\n\nc.jpg,,3\n")
        records, labels = read_plan(str(tmp_path / "plan.csv"), None, "k{n:02d}", "in", {"file": "@jpg", "label": "cls"}, check=False)

        assert ["cat", "dog"] == labels
        assert [
            Planned(b"k00", [(b"jpg", URL("in/a.jpg")), (b"cls", b"1")], "line 2"),
            Planned(b"k01", [(b"cls", b"0")], "line 3"),
            Planned(b"k02", [(b"jpg", URL("in/c.jpg"))], "line 5"),
        ] == records


class TestPaths:
    """A column of paths that is taken for text says how the files are taken."""

    RECORDS = (
        Planned(b"k0", [(b"file", b"a.JPG"), (b"txt", b"a dog"), (b"none", b"x.png"), (b"jpg", URL("a.jpg"))], "line 2"),
        Planned(b"k1", [(b"file", b"b.png"), (b"txt", b"b.png"), (b"none", b"y.png")], "line 3"),
        Planned(b"k2", [(b"file", b"sub/c.png")], "line 4"),
    )

    @pytest.mark.parametrize(
        ("there", "folders", "more"), [("sub/c.png", [".", "in"], ""), ("in/b.png", [".", "in"], " -C in"), ("b.png", ["in", ""], "")]
    )
    def test_where_one_of_the_files_is_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, folders: list[str], more: str
    ):
        monkeypatch.chdir(tmp_path)
        Path(there).parent.mkdir(exist_ok=True)
        Path(there).write_bytes(b"")

        how = f"--as @png=file{more} takes the files, --as cls=COLUMN the labels beside them."
        assert [f"file holds paths of files, and their text was written; {how}"] == list(paths_in(list(self.RECORDS), folders))

    def test_nothing_is_said_where_none_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        Path("a dog").write_bytes(b"")

        assert [] == list(paths_in(list(self.RECORDS), [""]))


def test_without_pyarrow_a_plan_in_parquet_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "p.parquet").write_bytes(b"no table")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"A plan in Parquet needs the package pyarrow.*tarviz\[table\]"):
        read_plan(str(tmp_path / "p.parquet"), None, "{n}", "", {}, check=True)
    monkeypatch.undo()
    pytest.importorskip("pyarrow", reason="a table needs pyarrow: pip install 'tarviz[table]'")
    with pytest.raises(UsageError, match="this is no Parquet file"):
        read_plan(str(tmp_path / "p.parquet"), None, "{n}", "", {}, check=True)
