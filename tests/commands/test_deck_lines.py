"""The command lines of the deck that presented tarproc, as written, under the old names, on local files."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.commands.conftest import listed, plain
from tests.conftest import sampled

Bash = Callable[..., CompletedProcess[bytes]]


@pytest.fixture
def folder(tmp_path: Path, photos: Path) -> Path:
    shutil.copy(photos / "photos-0000.tar", tmp_path / "imagenet_train-0000.tar")
    return tmp_path


def done(result: CompletedProcess[bytes]) -> bytes:
    assert 0 == result.returncode, result.stderr
    return result.stdout


def test_tarscat_reads_ten_records_from_a_pipe(folder: Path, bash: Bash):
    done(bash("gzip -c imagenet_train-0000.tar > imagenet_train-0000.tgz"))
    done(bash("cat imagenet_train-0000.tgz | tarscat -c 10 > small.tar"))

    assert b"10" == done(bash("tar tvf small.tar | fgrep .jpg | wc -l")).strip()
    assert plain(folder / "imagenet_train-0000.tar")[:10] == plain(folder / "small.tar")
    assert listed(folder / "small.tar")


def test_tar2tsv_tabulates_a_field(folder: Path, bash: Bash):
    rows = done(bash("tarscat -c 10 imagenet_train-0000.tar > small.tar; tar2tsv -f cls small.tar")).decode().splitlines()

    assert [f"{key}\t{fields['cls'].decode().strip()}" for key, fields in plain(folder / "small.tar")] == rows[-10:]


@pytest.mark.programs
def test_tarsplit_writes_the_shards_it_says(folder: Path, bash: Bash):
    unpack = "mkdir -p raw/train && tar -C raw/train -xf imagenet_train-0000.tar"
    done(bash(f"{unpack} && tar -cf - --sort=name -C raw train | tarsplit -s 1e9 -o imagenet_train --maxshards 2"))

    assert (folder / "imagenet_train-000000.tar").is_file()
    assert not (folder / "imagenet_train-000001.tar").exists()
    assert len(plain(folder / "imagenet_train-0000.tar")) == len(plain(folder / "imagenet_train-000000.tar"))


@pytest.mark.programs
def test_tarshow_shows_two_records_and_waits_for_nobody(folder: Path, bash: Bash):
    text = done(bash("tarshow  -c 2 imagenet_train-0000.tar < /dev/null")).decode()

    assert [key for key, _ in plain(folder / "imagenet_train-0000.tar")][:2] == [key for key in text.split() if key.startswith("photo/")]


@pytest.mark.programs
@pytest.mark.skipif(not shutil.which("gm"), reason="GraphicsMagick is not here: apt install graphicsmagick")
def test_tarproc_gives_a_tar_and_the_listing_goes_to_standard_error(folder: Path, bash: Bash):
    done(bash("tarscat -c 6 imagenet_train-0000.tar > small.tar"))
    result = bash("tarproc -p 5 -c 'ls; gm mogrify -size 256x256 *.jpg -resize 256x256' small.tar > out.tar")

    # GraphicsMagick passes over options behind the file names: as written in the deck, the pictures keep their size.
    done(result)
    assert 6 == len(plain(folder / "out.tar"))
    assert b"sample.jpg" in result.stderr


@pytest.mark.programs
@pytest.mark.skipif(not shutil.which("gm"), reason="GraphicsMagick is not here: apt install graphicsmagick")
def test_its_mogrify_example_needs_no_process(folder: Path, bash: Bash):
    from PIL import Image

    sizes = []
    for what in ("-c 'gm mogrify -resize 256x256 *.jpg'", "--op 'decode(jpg)|resize(jpg, (192, 256))|encode(jpg, quality=90)'"):
        done(bash(f"tarscat -c 3 imagenet_train-0000.tar | tarproc -p 2 {what} > out.tar"))
        sizes.append([max(Image.open(io.BytesIO(fields["jpg"])).size) for _, fields in plain(folder / "out.tar")])

    assert [[256] * 3] * 2 == sizes


@pytest.mark.programs
def test_tarproc_runs_over_a_range_with_any_job_queue(folder: Path, bash: Bash):
    shutil.copy(folder / "imagenet_train-0000.tar", folder / "imagenet_train-0001.tar")
    work = "tarproc -c 'wc -c < sample.jpg > sample.ocr' imagenet_train-{}.tar -o ocr-{}.tar"
    done(bash(f"printf '%s\\n' 0000 0001 | xargs -I{{}} -P2 {work}"))

    assert ["ocr" in fields for _, fields in plain(folder / "ocr-0001.tar")] == [True] * 12


def test_one_job_takes_a_template_too(folder: Path, bash: Bash):
    shutil.copy(folder / "imagenet_train-0000.tar", folder / "imagenet_train-0001.tar")

    done(bash("tarsort -s cls 'imagenet_train-{0000..0001}.tar' > sorted.tar || test $? = 1"))  # the same keys twice: warned of
    assert 96 == len(listed(folder / "sorted.tar"))


OLD_NAMES = ["tar2tsv", "tarcat", "tarscat", "tarcats", "tarcreate", "tarfirst", "tarpcat", "tarproc", "tarshow", "tarsort", "tarsplit"]


@pytest.mark.parametrize("name", sampled(OLD_NAMES, 2))
def test_every_old_name_has_help_with_an_example(bash: Bash, name: str):
    assert b"Example" in done(bash(f"{name} --help"))
