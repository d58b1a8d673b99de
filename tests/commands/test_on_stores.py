"""Every verb on an object store, on either side: what it makes there is what it makes on a disk, byte for byte (issue 12, part 7)."""

from __future__ import annotations

import json
import subprocess
import sys
from uuid import uuid4

import pytest

import tarviz
from tarviz import cli, stores
from tarviz.dialects import tar2tf, tfdata
from tarviz.dialects import webdataset as wds
from tarviz.formats import tfrecord
from tarviz.model.types import URL
from tarviz.outputs import tar_member
from tarviz.stores.s3 import S3Store

SHARDS = 3
SECRET = "planted-secret-of-the-test"
VERBS = {
    "cat": ("cat", "{in}/a-{0..2}.tar", "-o", "{out}/all.tar"),
    "cat-mapped": ("cat", "{in}/a-{0..2}.tar", "-o", "{out}/one-{}.tar", "--fields", "txt"),
    "cat-where": ("cat", "{in}/a-{0..2}.tar", "--where", "cls = 3", "-o", "{out}/three.tar"),
    "pcat": ("pcat", "{in}/a-{0..2}.tar", "-o", "{out}/mixed.tar"),
    "split": ("split", "{in}/a-{0..2}.tar", "-o", "{out}/s-%04d.tar", "-n", "5"),
    "sort": ("sort", "{in}/a-{0..2}.tar", "--by", "txt", "-o", "{out}/sorted.tar"),
    "shuffle": ("sort", "{in}/a-{0..2}.tar", "--shuffle", "--seed", "3", "-o", "{out}/shuffled.tar"),
    "proc": ("proc", "{in}/a-0.tar", "-c", "tr 0-9 a-j < sample.txt > sample.low", "-o", "{out}/low.tar"),
    "tsv": ("tsv", "{in}/a-{0..2}.tar", "-f", "cls txt", "-o", "{out}/rows.tsv"),
    "convert": ("convert", "{in}/a-{0..2}.tar", "{out}/t-{}.tfrecord", "--no-manifest"),
    "convert-cut": ("convert", "{in}/a-{0..2}.tar", "-o", "{out}/u-%03d.tfrecord", "--max-shard-size", "400", "--no-manifest"),
    "convert-workers": ("convert", "{in}/a-{0..2}.tar", "{out}/w-{}.tfrecord", "-j", "2", "--no-manifest"),
}


def shard(number: int, count: int = 7) -> bytes:
    records = [
        [*tar_member(f"n{number}{at}.txt", b"%d" % (31 * at % 17)), *tar_member(f"n{number}{at}.cls", b"%d" % at)] for at in range(count)
    ]
    return b"".join(map(b"".join, records)) + bytes(1024)


@pytest.fixture
def places(s3_address, monkeypatch, tmp_path):
    """A folder and a bucket with the same shards, each with room for outputs: `(folder, bucket)`."""
    for name, value in {"AWS_ENDPOINT_URL": s3_address, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": SECRET}.items():
        monkeypatch.setenv(name, value)
    bucket = f"s3://test-{uuid4()}"
    S3Store().wire.send("PUT", URL(f"{bucket}/"), {}, 5.0).close()
    for place in (str(tmp_path), bucket):
        for number in range(SHARDS):
            put(f"{place}/in/a-{number}.tar", shard(number))
    (tmp_path / "out").mkdir()
    return str(tmp_path), bucket


def put(url: str, data: bytes) -> None:
    with stores.of(URL(url)).create(URL(url)) as sink:
        sink.write(data)


def get(url: str) -> bytes:
    return stores.of(URL(url)).read(URL(url), 0, 1 << 20)


def run(place: str, arguments: tuple[str, ...]) -> dict[str, bytes]:
    """The files that a verb makes of `{in}` in `{out}`, by name."""
    words = [word.replace("{in}", f"{place}/in").replace("{out}", f"{place}/out") for word in arguments]
    assert 0 == cli.main(words)
    return made(place)


def made(place: str) -> dict[str, bytes]:
    folder = URL(f"{place}/out/")
    return {row.url.rpartition("/")[2]: get(row.url) for row in stores.of(folder).list(folder)}


class TestVerbs:
    @pytest.mark.parametrize("arguments", VERBS.values(), ids=VERBS)
    def test_what_it_makes_there_is_what_it_makes_here(self, places, arguments):
        here, there = places
        expected = run(here, arguments)

        assert expected
        assert expected == run(there, arguments)

    @pytest.mark.parametrize(
        "arguments",
        [
            ("ls", "{in}/", "--json"),
            ("show", "{in}/a-1.tar", "-n", "2"),
            ("first", "{in}/a-2.tar", "-S", "cls == 3", "-f", "txt"),
            ("verify", "{in}/a-{0..2}.tar", "--deep"),
            ("sql", "SELECT shard, cls, txt FROM records ORDER BY n", "{in}/a-1.tar", "--csv"),
            ("index", "{in}/a-{0..2}.tar", "--json"),
        ],
        ids=lambda arguments: arguments[0],
    )
    def test_what_it_says_there_is_what_it_says_here(self, places, arguments, capsys):
        said = []
        for place in places:
            assert 0 == cli.main([word.replace("{in}", f"{place}/in") for word in arguments])
            out, err = capsys.readouterr()
            assert SECRET not in out + err
            said.append(out.replace(place, ""))

        assert said[0]
        assert said[0] == said[1]

    def test_an_output_that_is_an_input_is_refused(self, places, capsys):
        before = get(f"{places[1]}/in/a-0.tar")

        assert 2 == cli.main(["sort", f"{places[1]}/in/a-0.tar", "-o", f"{places[1]}/in/a-0.tar"])
        assert before == get(f"{places[1]}/in/a-0.tar")
        assert "one of the inputs" in capsys.readouterr().err

    def test_a_damaged_shard_leaves_no_output(self, places):
        put(f"{places[1]}/in/bad.tar", shard(5)[:3000])

        assert 2 == cli.main(["cat", f"{places[1]}/in/a-0.tar", f"{places[1]}/in/bad.tar", "-o", f"{places[1]}/out/all.tar"])
        assert 2 == cli.main(["convert", f"{places[1]}/in/bad.tar", f"{places[1]}/out/bad.tfrecord"])
        with pytest.raises(tarviz.TarvizError):
            made(places[1])

    def test_a_second_run_redoes_only_what_is_missing(self, places):
        arguments = ("convert", "{in}/a-{0..2}.tar", "{out}/t-{}.tfrecord", "--resume")
        first = run(places[1], arguments)
        before = stores.of(URL(f"{places[1]}/out/t-1.tfrecord")).stat(URL(f"{places[1]}/out/t-1.tfrecord"))
        stores.of(URL(places[1])).delete(URL(f"{places[1]}/out/t-2.tfrecord"))

        assert first == run(places[1], arguments)
        assert before == stores.of(before.url).stat(before.url)


class TestPython:
    def test_records_pipelines_and_the_index(self, places):
        here, there = (f"{place}/in/a-{{0..2}}.tar" for place in places)
        plain = [(record.key, {ext: bytes(data) for ext, data in record.items()}) for record in tarviz.records(here)]
        chain = "decode(cls)"

        assert plain == [(record.key, {ext: bytes(data) for ext, data in record.items()}) for record in tarviz.records(there)]
        assert list(map(dict, tarviz.Pipeline(here, chain).eager())) == list(map(dict, tarviz.Pipeline(there, chain).eager()))
        indexed = tarviz.Pipeline(there, chain, select=("txt", "cls")).indexed()
        assert SHARDS * 7 == len(indexed)
        assert [tuple(row) for row in tarviz.Pipeline(here, chain, select=("txt", "cls")).indexed()[[20, 0, 9]]] == [
            tuple(row) for row in indexed[[20, 0, 9]]
        ]
        assert bytes(tarviz.index(there)["n13"]["txt"]) == b"%d" % (31 * 3 % 17)

    def test_what_was_converted_is_read_there(self, places):
        run(places[1], ("convert", "{in}/a-{0..2}.tar", "{out}/t-{}.tfrecord"))

        assert 7 == len(list(tfrecord.read(get(f"{places[1]}/out/t-3.tfrecord"))))
        assert 0 == cli.main(["verify", f"{places[1]}/out/t-3.tfrecord"])

    def test_tf_data(self, places):
        pytest.importorskip("tensorflow", reason="pip install 'tarviz[tf]'")
        rows = [
            [(text.numpy(), int(number)) for text, number in tarviz.Pipeline(f"{place}/in/", "decode(cls)", select=("txt", "cls")).tf()]
            for place in places
        ]

        assert SHARDS * 7 == len(rows[0])
        assert rows[0] == rows[1]


class TestDialects:
    def test_webdataset_reads_and_writes(self, places):
        here, there = places
        for place in places:
            with wds.ShardWriter(f"{place}/out/w-%03d.tar", maxcount=10) as sink:
                for at, sample in enumerate(wds.WebDataset(f"{place}/in/a-{{0..2}}.tar", shardshuffle=False).decode()):
                    sink.write({"__key__": f"{at:04d}", "cls": sample["cls"], "json": {"text": sample["txt"]}})

        assert ["w-000.tar", "w-001.tar", "w-002.tar"] == sorted(made(there))
        assert [json.loads(row["json"]) for row in wds.WebDataset(f"{here}/out/w-{{000..002}}.tar", shardshuffle=False)] == [
            json.loads(row["json"]) for row in wds.WebDataset(f"{there}/out/w-{{000..002}}.tar", shardshuffle=False)
        ]

    def test_go_tfdata_and_tar2tf(self, places):
        pytest.importorskip("tensorflow", reason="pip install 'tarviz[tf]'")
        for place in places:
            pipeline = tfdata.Pipeline().from_tar(f"{place}/in/a-0.tar").sample_to_tf_example({"cls": tfdata.core.FeatureType.INT64})
            pipeline.to_tfrecord(f"{place}/out/one.tfrecord").do()
            tar2tf.Dataset(f"{place}/in").load("a-{0..2}.tar", path=f"{place}/out/train-{{}}.record", record_to_example=dict)

        assert {"one.tfrecord", "train-1.record", "train-2.record", "train-3.record"} <= made(places[1]).keys()
        assert {name: data for name, data in made(places[0]).items() if "manifest" not in name} == {
            name: data for name, data in made(places[1]).items() if "manifest" not in name
        }


class TestWithoutAClient:
    def test_no_cloud_library_is_imported_to_read_s3(self, places):
        code = f"import sys, tarviz; list(tarviz.records('{places[1]}/in/a-0.tar')); print({{'boto3', 'obstore'}} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

        assert "set()" == done.stdout.strip()
