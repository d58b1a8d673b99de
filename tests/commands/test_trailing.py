"""A second archive after the end of the first: an error in every verb that writes, and with lenient reading a warning in its report."""

from __future__ import annotations

import pytest

from tarviz.commands.cat import cat
from tarviz.commands.convert import convert
from tarviz.commands.pcat import pcat
from tarviz.commands.proc import proc
from tarviz.commands.sort import sort
from tarviz.commands.split import split
from tarviz.commands.tsv import tsv
from tarviz.model.errors import DataError
from tarviz.outputs import TAR_END, tar_member

VERBS = {
    "cat": lambda url, **options: cat(url, "o.tar", **options),
    "pcat": lambda url, **options: pcat(url, "o.tar", **options),
    "sort": lambda url, **options: sort(url, "o.tar", **options),
    "split": lambda url, **options: split(url, "o-{}.tar", count=3, **options),
    "proc": lambda url, **options: proc(url, "o.tar", op="keep(txt)", **options),
    "tsv": lambda url, **options: tsv(url, "o.tsv", **options),
    "convert": lambda url, **options: convert(url, "o.tfrecord", **options),
    "convert-split": lambda url, **options: convert(url, "o.tfrecord", max_shard_size="1kB", **options),
}

pytestmark = pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    archives = [b"".join(b"".join(tar_member(f"{which}{at}.txt", b"%d" % at)) for at in range(4)) + TAR_END for which in "ab"]
    (tmp_path / "two.tar").write_bytes(b"".join(archives))
    return "two.tar"


@pytest.mark.parametrize("verb", VERBS)
def test_a_second_archive_is_an_error(url, verb):
    with pytest.raises(DataError, match="E_TRAILING"):
        VERBS[verb](url)


def test_with_lenient_reading_it_is_a_warning(url):
    for verb in VERBS:
        report = VERBS[verb](url, strict=False).report

        assert 1 == report.counts()["W_TRAILING"]
        assert 4 == report.records


@pytest.mark.parametrize("verb", VERBS)
def test_concatenated_reads_on(url, verb):
    report = VERBS[verb](url, concatenated=True).report

    assert {} == report.counts()
    assert 8 == report.records
