"""Conditions: what they mean, and that every verb and reader takes them."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tarviz
from tarviz.cli import main
from tarviz.formats import example, tfrecord
from tarviz.model.errors import ChangedError, UsageError
from tarviz.read.chosen import resolve
from tarviz.read.stream import ReadOptions
from tarviz.read.stream import blocks as read_blocks
from tarviz.table.conditions import join
from tarviz.table.streamed import StreamCondition
from tarviz.testing.strategies import shard

PIECES = st.sampled_from(
    [
        *[
            ")",
            "(",
            " or ",
            " and ",
            "cls = 3",
            "1=1",
            "cls",
            "dog",
            "true",
            " -- ",
            "/*",
            "*/",
            ";",
            " order by ",
            "\n",
            ",",
            "'",
            '"',
            "$$",
        ],
        *[
            " union select 1 ",
            " then ",
            " end ",
            "case when ",
            "select 1 ",
            " from tags",
            " limit 1",
            " < ",
            "not ",
            "[",
            "]",
            " as x",
            "3",
        ],
    ]
)
CAT = {
    "cls": b"3\n",
    "jpg": b"x" * 900,
    "seg.png": b"y" * 20,
    "json": b'{"w": 500, "meta": {"src": "web"}, "boxes": [[1, 2], [3, 4]], "ok": true, "a b": 1.5, "none": null}',
    "txt": "Ein Kätzchen auf dem Dach".encode(),
}
DOG = {
    "cls": b"4",
    "jpg": b"x" * 100,
    "wav": b"w",
    "json": b'{"w": 100, "meta": {"src": "disk"}, "boxes": [], "ok": false, "a b": 2, "none": 1}',
    "txt": b"5",
}
BARE = {"bin": b"1"}


@pytest.fixture
def animals(make) -> Path:
    return make([("train/Cat_0001", CAT), ("val/dog_2", DOG), ("val/bare", BARE)])


MEANT = [
    ("", True),
    ("cat", True),
    ("Cat_", True),
    ("CAT", True),
    ("train/Cat_00", True),
    ("dog", False),
    ("cls==3", True),
    ("cls == '3'", True),
    ("cls != 4", True),
    ("cls in (1, 2, 3)", True),
    ("cls not in [1, 2]", True),
    ("cls==3 and json.w>300", True),
    ("cls==3 and json.w>600", False),
    ("json.meta.src == 'web'", True),
    ("json['a b'] == 1.5", True),
    ("json.boxes[-1][0] == 3", True),
    ("json.boxes[9][0] == 3", False),
    ("len(json.boxes) == 2", True),
    ("json.ok == true", True),
    ("json.w / 2 + 1 == 251", True),
    ("json.w % 7 == 3 and -json.w < 0", True),
    ("json.w / 0 > 1", False),
    ("100 < json.w <= 500", True),
    ("has:json", True),
    ("has:wav", False),
    ("not has:wav and has:seg.png", True),
    ("has(seg.png)", True),
    ("size(jpg) > 800", True),
    ("size('seg.png') == 20", True),
    ("txt.startswith('Ein')", True),
    ("endswith(txt, 'Dach')", True),
    ("'Kätz' in txt", True),
    ("txt.contains('Hund')", False),
    ("txt.lower() == 'ein kätzchen auf dem dach'", True),
    ("key.matches('^val/')", False),
    ("index == 0", True),
    ("int(cls) + 1 == 4", True),
    ("float(json.w) == 500.0", True),
    ("field('cls') == 3", True),
    ("json.w == 'five'", False),
    ("txt > 3", False),
    ("int(txt) == 3", False),
    ("len(list_filter(json.meta.src, lambda x: x = 3)) is null", True),
    ("cls in []", False),
    ("cls not in [] and json.ok not in ()", True),
    ("3 in [] or wav.size not in []", False),
    ("json = 'web' or json.meta = 'web' or json < 3", False),
    ("json.meta != 'web'", False),
    ("abs(-cls) == 3", True),
    ("json.ok", True),
    ("json.none is null", True),
    ("json['none'] == null", True),
    ("wav.size is null", True),
    ("txt is true", False),
    ("coalesce(json.none, 7) = 7", True),
    ("case when json.ok then json.w else 0 end = 500", True),
    ("json.w * 9223372036854775807 * 9223372036854775807 > 1", True),
    ("sqrt(-json.w) > 0", False),
    ("json.w::varchar = '500'", True),
    ("cast(txt as integer) > 0", False),
    ("json.w in (5, '500')", True),
    ("json.w not in (5, 6.5)", True),
    ("json.meta.src not between 'a' and 'b'", True),
    ("json.meta is not null and json.meta = 'web'", False),
    ("'web' in json.meta.src", True),
    ("json.w > json.boxes[0][1]", True),
    ("json.w = json.meta.src", False),
    ("round(json['a b']) = 2", True),
    ("year(json.meta.src) = 2020", False),
    ("greatest(json.w, cls) = 500", True),
]


def fits(text: str, path: Path) -> list[int]:
    """The records of a condition, asked of a table and of a stream, which say the same."""
    condition = StreamCondition(text)
    streamed = [row + block.first for block in read_blocks(path) for row in condition.fits(block).tolist()]

    assert streamed == tarviz.table(path).rows(text).n.tolist()
    return streamed


class TestOneRecord:
    @pytest.mark.parametrize(("text", "truth"), MEANT)
    def test_is_meant_or_not(self, animals, text, truth):
        assert truth is (0 in fits(text, animals))

    def test_what_cannot_be_read_is_refused_with_a_hint(self, animals):
        for text in [
            "__import__('os')",
            "cls ==",
            "(1",
            "cls = 1; drop view records",
            "1) UNION (SELECT 1",
            "x) or (1=1",
            "txt) or (1=1) --",
            "1 < cls < 3, 4",
            "x y = 3",
            "nothing.at.all > 3",
        ]:
            with pytest.raises(UsageError):
                tarviz.table(animals).rows(text)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("json.meta.src lik '%w%'", "'lik' does not fit there.*Nearest: like"),
            ("json.w betwen 3 and 5", "'betwen' does not fit.*Nearest: between"),
            ("json.meta.src startswith 'A'", r"Write startswith\(…"),
            ("json.meta.src like", "missing at its end"),
            ("txt.a lik 'x'", "Nearest: like"),
            ("cls = 3 adn json.w > 3", "Nearest: and"),
            ("dog json.w", "does not fit there"),
        ],
    )
    def test_a_condition_that_is_misspelled_is_no_search_for_its_words(self, animals, text, said):
        for ask in (tarviz.table(animals).rows, lambda text: tarviz.table(animals).rows(join((text, "cls = 3")))):
            with pytest.raises(UsageError, match=said) as error:
                ask(text)
            assert "E_QUERY" == error.value.code
        with pytest.raises(UsageError, match="Nearest: like"):
            tarviz.table(animals).rows("seg.png lik 'x'")

    @pytest.mark.matrix
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(PIECES, min_size=1, max_size=7).map("".join))
    def test_is_one_expression_by_itself_and_another_beside_it_only_narrows(self, animals, text):
        table = tarviz.table(animals)

        def asked(where: str) -> list[int] | None:
            with contextlib.suppress(UsageError):
                return table.rows(where).n.tolist()
            return None

        alone, beside = asked(text), None
        with contextlib.suppress(UsageError):
            beside = asked(join((text, "cls = 3")))
        assert beside == (None if alone is None else [at for at in alone if at == 0])

    @pytest.mark.parametrize(
        "text", ["on the roof", '"json.w" dog', "a n.b dog", "key.ring toy", "it's a dog", "v1.5 of it", "dog.jpeg here"]
    )
    def test_plain_words_are_a_search(self, animals, text):
        assert [] == tarviz.table(animals).rows(text).n.tolist()

    def test_fields_named_like_words_of_sql(self, make):
        table = tarviz.table(make([("a", {"class": b"1", "order": b"x", "select": b"y", "json": b'{"order": 3, "group": {"by": 1}}'})]))

        assert 1 == len(table.rows("class = 1 and json.order = 3 and json.group.by = 1"))
        assert 1 == len(table.rows("size(order) = 1 and has:select"))

    def test_quotes_in_names_and_texts_do_no_harm(self, make):
        table = tarviz.table(make([("it's", {'a"b': b"1", "json": json.dumps({"it's": 1, 'a"b': 2}).encode()})]))

        assert 1 == len(table.rows("it's"[:2]))
        assert 1 == len(table.rows("key = 'it''s' and json['a\"b'] = 2"))
        assert 1 == len(table.rows("has:json"))


CONTENT = [
    (f"{'ab'[at % 2]}/{at:03}", {"jpg": bytes([at]) * 3000 * (at % 3 + 1), "cls": b"%d" % (at % 5), "json": b'{"w": %d}' % at})
    for at in range(60)
]


@pytest.fixture(params=["plain", "gzip"])
def shards(make, request) -> list[Path]:
    suffix = ".tar" if request.param == "plain" else ".tar.gz"
    made = []
    for number in range(2):
        data = shard(CONTENT[30 * number : 30 * number + 30])
        if request.param == "gzip":
            import gzip

            data = gzip.compress(data)
        made.append(make(data, f"s-{number}{suffix}"))
    return made


WHERE = "cls = 3 and json.w > 20"
KEYS = [key for at, (key, _) in enumerate(CONTENT) if at % 5 == 3 and at > 20]


class TestReaders:
    def test_records(self, shards):
        records = list(tarviz.records(shards, where=WHERE))

        assert KEYS == [record.key for record in records]
        assert [bytes([int(key[2:])]) for key in KEYS] == [bytes(record["jpg"][:1]) for record in records]
        assert [int(key[2:]) % 30 for key in KEYS] == [record.index for record in records]

    def test_records_by_key(self, shards, tmp_path):
        (tmp_path / "keys").write_text("b/003\na/044\n")

        assert ["b/003", "a/044"] == [record.key for record in tarviz.records(shards, keys=("b/003", "a/044"))]
        assert ["b/003"] == [record.key for record in tarviz.records(shards, keys=str(tmp_path / "keys"), where="cls = 3")]

    def test_index(self, shards):
        index = tarviz.index(shards, where=WHERE)

        assert KEYS == list(index.keys())
        assert (b'{"w": 23}', 23) == (bytes(index["b/023"]["json"]), index["b/023"].index)

    def test_pipeline(self, shards):
        pipeline = tarviz.Pipeline([str(each) for each in shards], where=WHERE, select="json")

        assert [b'{"w": %d}' % int(key[2:]) for key in KEYS] == [bytes(each) for each in pipeline]
        assert pipeline == tarviz.Pipeline.of(repr(pipeline))
        assert None is pipeline.count()

    def test_only_the_chosen_bytes_are_read(self, shards):
        run = tarviz.records(shards[0], where="key = 'b/023'")
        total = sum(len(record["jpg"]) for record in run)

        if shards[0].suffix == ".tar":
            assert run.report.bytes < total + 5 * 512 + 2048
        assert 1 == run.report.records

    def test_a_shard_replaced_after_its_records_were_chosen_is_an_error(self, shards):
        options = resolve([str(each) for each in shards], ReadOptions(where=WHERE))
        shards[0].write_bytes(shards[1].read_bytes() + bytes(512))

        with pytest.raises(ChangedError):
            list(tarviz.records(shards, options=options))

    def test_a_condition_that_fits_nothing_gives_nothing(self, shards):
        assert [] == list(tarviz.records(shards, where="cls = 77"))


def names(path: Path) -> list[str]:
    with tarfile.open(path) as tar:
        return list(dict.fromkeys(member.name.partition(".")[0] for member in tar))


class TestVerbs:
    def test_cat_copies_what_is_chosen_bit_for_bit(self, shards, tmp_path):
        assert 0 == main(["cat", "--where", WHERE, "-o", str(tmp_path / "o.tar"), *map(str, shards)])

        assert KEYS == names(tmp_path / "o.tar")
        expected = dict(CONTENT)
        assert all(bytes(record["jpg"]) == expected[record.key]["jpg"] for record in tarviz.records(tmp_path / "o.tar"))

    def test_counts_and_slices_are_of_what_is_chosen(self, shards, tmp_path):
        tarviz.cat(shards, tmp_path / "o.tar", where=WHERE, skip=1, count=2)

        assert KEYS[1:3] == names(tmp_path / "o.tar")

    def test_sort(self, shards, tmp_path):
        assert 0 == main(["sort", "--where", WHERE, "-o", str(tmp_path / "o.tar"), *map(str, shards)])

        assert sorted(KEYS) == names(tmp_path / "o.tar")

    def test_split(self, shards, tmp_path):
        assert 0 == main(["split", "--where", WHERE, "-n", "3", "-o", str(tmp_path / "o-{}.tar"), *map(str, shards)])

        assert KEYS == [key for part in sorted(tmp_path.glob("o-*.tar")) for key in names(part)]

    def test_tsv(self, shards, tmp_path):
        assert 0 == main(["tsv", "--where", WHERE, "-f", "cls", "-o", str(tmp_path / "o.tsv"), *map(str, shards)])

        assert [f"{key}\t3" for key in KEYS] == (tmp_path / "o.tsv").read_text().splitlines()[1:]

    def test_proc(self, shards, tmp_path):
        assert 0 == main(["proc", "--where", WHERE, "--op", "drop(jpg)", "-o", str(tmp_path / "o.tar"), *map(str, shards)])

        assert KEYS == names(tmp_path / "o.tar")

    def test_convert(self, shards, tmp_path):
        made = tarviz.convert(shards, tmp_path / "o.record", where=WHERE, num_workers=1)

        assert len(KEYS) == made.report.records

    def test_show_ls_verify_and_first(self, shards, capsys):
        assert KEYS[:2] == [record.key for record in tarviz.show(shards, where=WHERE, count=2).records]
        assert len(KEYS) == sum(listed.records for listed in tarviz.ls(shards, where=WHERE).shards)
        assert len(KEYS) == tarviz.verify(shards, where=WHERE).records
        assert KEYS[0] == tarviz.first(shards, where=WHERE, field="cls").key

    def test_keys_from_a_file(self, shards, tmp_path):
        (tmp_path / "keys").write_text("\n".join(KEYS[2:4]) + "\n")
        assert 0 == main(["cat", "--keys", str(tmp_path / "keys"), "-o", str(tmp_path / "o.tar"), *map(str, shards)])

        assert KEYS[2:4] == names(tmp_path / "o.tar")

    def test_standard_input_is_asked_while_it_comes(self, shards, tmp_path, monkeypatch):
        for verb, more in (("cat", []), ("sort", []), ("proc", ["--op", "drop(jpg)"])):
            with shards[0].open("rb") as file:
                monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
                assert 0 == main([verb, "--where", WHERE, *more, "-o", str(tmp_path / "o.tar"), "-"])

            assert sorted(KEYS[:2]) == sorted(names(tmp_path / "o.tar"))

    def test_a_name_that_no_record_of_a_stream_has_is_said(self, shards, tmp_path, monkeypatch, capsys):
        with shards[0].open("rb") as file:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
            assert 1 == main(["cat", "--where", "json.ww > 3", "-o", str(tmp_path / "o.tar"), "-"])
        assert "no record has json.ww" in capsys.readouterr().err

    @pytest.mark.parametrize("where", ["is:dup", "tag:x", "json.w > (select avg(json.w) from records)", "max(cls) > 3"])
    def test_what_needs_all_records_is_refused_on_a_stream(self, where, capsys):
        assert 2 == main(["cat", "--where", where, "-o", "/dev/null", "-"])
        assert "Write the stream to a file first" in capsys.readouterr().err

    def test_a_column_that_is_not_there_is_answered_with_what_is_near(self, shards, capsys):
        assert 2 == main(["cat", "--where", "json.ww > 3", "-o", "/dev/null", *map(str, shards)])
        assert "json.w" in capsys.readouterr().err

    def test_a_bench_reads_what_is_chosen(self, shards):
        from tarviz.widgets.bench.controller import BenchRun

        run = BenchRun([str(each) for each in shards], where=WHERE, batch=1, count=3, seconds=5, warmup=0)
        assert run.wait(60)

        assert run.pipeline is not None
        assert KEYS[:1] == [record.key for record in tarviz.records(run.pipeline.urls, where=run.pipeline.options.where)][:1]
        assert run.result.rows

    def test_bench_takes_a_condition_but_no_peers_with_it(self, shards, capsys):
        assert 0 == main(["bench", "-q", "--where", WHERE, "--batch", "1", "--for", "0.2", "--warmup", "0", *map(str, shards)])
        assert 2 == main(["bench", "--where", WHERE, "--vs", "webdataset", *map(str, shards)])
        assert "do not go together" in capsys.readouterr().err

    def test_a_dataset_of_tar2tf_reads_what_is_chosen(self, shards):
        made = tarviz.Dataset(shards[0].parent, conversions=[], selections="json", where=WHERE)

        assert [b'{"w": %d}' % int(key[2:]) for key in KEYS] == [bytes(each) for each in made.pipeline([each.name for each in shards])]
        with pytest.raises(UsageError, match="every record"):
            made.load(shards[0].name, path="x.record")


def _written(verb: str, *more: str):
    def keys(shards, choice, folder):
        assert 0 == main([verb, *choice, *more, "-o", str(folder / "o.tar"), *map(str, shards)])
        return names(folder / "o.tar")

    return keys


def _split(shards, choice, folder):
    assert 0 == main(["split", *choice, "-n", "3", "-o", str(folder / "o-{}.tar"), *map(str, shards)])
    return [key for part in sorted(folder.glob("o-*.tar")) for key in names(part)]


def _tsv(shards, choice, folder):
    assert 0 == main(["tsv", *choice, "-f", "cls", "-o", str(folder / "o.tsv"), *map(str, shards)])
    return [line.partition("\t")[0] for line in (folder / "o.tsv").read_text().splitlines()[1:]]


def _convert(shards, choice, folder):
    assert 0 == main(["convert", *choice, *map(str, shards), str(folder / "o.record")])
    return [example.decode(each)["__key__"][0].decode() for each in tfrecord.read(io.BytesIO((folder / "o.record").read_bytes()))]


def _shown(verb: str, *more: str):
    """The JSON that a verb prints."""

    def found(shards, choice, capsys):
        assert 0 == main([verb, "--json", *choice, *more, *map(str, shards)])
        return json.loads(capsys.readouterr().out)

    return found


VERBS = {
    "cat": _written("cat"),
    "pcat": _written("pcat"),
    "sort": _written("sort"),
    "proc": _written("proc", "--op", "drop(jpg)"),
    "split": _split,
    "tsv": _tsv,
    "convert": _convert,
}


@pytest.fixture(params=["--where", "--keys"])
def choice(request, tmp_path) -> list[str]:
    """The same records, by a condition and by a list of their keys."""
    (tmp_path / "list.txt").write_text("\n".join(KEYS) + "\n")
    return [request.param, WHERE if request.param == "--where" else str(tmp_path / "list.txt")]


class TestEveryDoor:
    """One condition, and one list of keys, choose the same records wherever they are written."""

    @pytest.fixture
    def shards(self, make) -> list[Path]:
        return [make(CONTENT[30 * number : 30 * number + 30], f"s-{number}.tar") for number in range(2)]

    @pytest.mark.parametrize("verb", VERBS)
    def test_of_a_verb_that_writes(self, verb, shards, choice, tmp_path):
        assert sorted(KEYS) == sorted(VERBS[verb](shards, choice, tmp_path))

    def test_of_a_verb_that_shows(self, shards, choice, capsys):
        assert KEYS == [record["key"] for record in _shown("show", "-n", "99")(shards, choice, capsys)["records"]]
        assert [2, 6] == [each["records"] for each in _shown("ls")(shards, choice, capsys)["shards"]]
        assert len(KEYS) == _shown("verify")(shards, choice, capsys)["records"]
        assert 2 == main(["verify", "--json", "--deep", *choice, *map(str, shards)])  # none of these pictures is one
        assert KEYS == [fault["record"] for fault in json.loads(capsys.readouterr().out)["faults"]]
        assert KEYS[0] == tarviz.first(shards, field="cls", **{choice[0][2:]: choice[1]}).key

    def test_of_the_browser_and_the_bench(self, shards, choice):
        from tarviz.widgets.bench.controller import BenchRun
        from tarviz.widgets.browse.controller import Browser

        wish = {choice[0][2:]: choice[1]}
        with contextlib.closing(Browser(shards, cache=False, **wish)) as browser:
            assert browser.wait(len(KEYS), 60)
            assert KEYS == [record.key for record in browser.records()]
        run = BenchRun([str(each) for each in shards], **wish, batch=1, count=2, seconds=5, warmup=0)
        assert run.wait(60)
        assert run.pipeline is not None
        assert KEYS == [record.key for record in tarviz.records(run.pipeline.urls, options=run.pipeline.options)]

    def test_of_the_readers(self, shards, choice):
        wish = {choice[0][2:]: choice[1]}
        json_of = [b'{"w": %d}' % int(key[2:]) for key in KEYS]

        assert KEYS == [record.key for record in tarviz.records(shards, **wish)]
        assert KEYS == list(tarviz.index(shards, **wish).keys())
        pipeline = tarviz.Pipeline([str(each) for each in shards], select="json", **wish)
        assert json_of == [bytes(each) for each in pipeline] == [bytes(each) for each in pipeline.indexed()]
        if "where" in wish:
            made = tarviz.Dataset(shards[0].parent, conversions=[], selections="json", **wish)
            assert json_of == [bytes(each) for each in made.pipeline([each.name for each in shards])]

    def test_of_sql(self, shards):
        assert (
            KEYS
            == tarviz.sql(f"SELECT key FROM records WHERE {WHERE} ORDER BY n + 30 * (shard LIKE '%s-1.tar')::INT", shards)
            .table["key"]
            .to_pylist()
        )
