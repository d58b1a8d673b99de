"""The verb `index`: an index that says how it went, and the text that NVIDIA DALI reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tarviz import cli
from tarviz.commands.index import index
from tarviz.formats.index import parse_dali
from tarviz.model.errors import UsageError
from tests.conftest import DATA

TARS = DATA / "corpora" / "generated"


class TestIndex:
    def test_finds_records_by_number_and_key(self, digits: Path):
        made = index(str(digits / "train-{0000..0003}.tar"))

        assert 1500 == len(made)
        assert bytes(made[17]["png"]) == bytes(made["train/n00000017"]["png"])
        assert "train/n00001499" == made[-1].key

    def test_says_how_it_went(self, digits: Path):
        made = index(str(digits / "test-0000.tar"))

        assert 0 == made.exit_code
        assert "297" in str(made)
        assert 297 == made.to_dict()["records"]

    def test_damage_is_exit_code_two(self, capsys: pytest.CaptureFixture[str]):
        assert 2 == cli.main(["index", str(TARS / "B14-trunc-in-data.tar")])
        assert "E_TRUNCATED" in capsys.readouterr().out

    def test_json(self, digits: Path, capsys: pytest.CaptureFixture[str]):
        assert 0 == cli.main(["index", "--json", "--no-cache", str(digits)])
        assert {"png": 1797, "cls": 1797} == json.loads(capsys.readouterr().out)["fields"]


class TestDali:
    def test_writes_a_file_that_reads_back(self, digits: Path, tmp_path: Path):
        index(str(digits / "test-0000.tar"), dali=tmp_path / "test.idx")

        records = parse_dali((tmp_path / "test.idx").read_text())
        data = (digits / "test-0000.tar").read_bytes()
        ext, offset, size, name = records[3][0]
        assert (297, "png", "test/n00000003.png") == (len(records), ext, name)
        assert data[offset : offset + size].startswith(b"\x89PNG")

    def test_a_folder_gets_a_file_a_shard(self, digits: Path, tmp_path: Path):
        made = index(str(digits), dali=f"{tmp_path}/idx/")

        assert 5 == len(made.written)
        assert (tmp_path / "idx" / "train-0002.idx").is_file()

    def test_several_shards_need_a_folder(self, digits: Path, tmp_path: Path):
        with pytest.raises(UsageError, match="folder"):
            index(str(digits), dali=tmp_path / "one.idx")

    def test_a_compressed_shard_is_refused(self, digits: Path, tmp_path: Path):
        path = tmp_path / "a.tar.gz"
        path.write_bytes(gzip.compress((digits / "test-0000.tar").read_bytes()))

        with pytest.raises(UsageError, match="compressed"):
            index(str(path), dali=tmp_path / "a.idx")
