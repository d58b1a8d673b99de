"""Old command lines in today's words."""

from __future__ import annotations

import pytest

from tarviz import tarproc_scripts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tar2tsv -f cls --nokey --noheader small.tar", "tsv -f cls --nokey --noheader small.tar"),
        ("tarscat -c 10", "cat -c 10"),
        ("tarcat -v -b -T list x-{0..3}.tar", "cat -T list x-{0..3}.tar"),
        ("tarscat --shuffle a.tar", "cat --shuffle 1000 a.tar"),
        ("tarscat --shuffle 50 a.tar", "cat --shuffle 50 a.tar"),
        ("tarcreate -f , -k {record:04d} -C dir plan out.tar", "create --delimiter , -k {record:04d} -C dir plan out.tar"),
        ("tarfirst -v -S True -f jpg a.tar", "first -f jpg a.tar"),
        ("tarfirst --select cls==3 a.tar", "first --select cls==3 a.tar"),
        ("tarpcat -p4 -s 100 -b x.tar", "pcat --workers 4 --shuffle 100 x.tar"),
        ("tarproc -p 5 -c true small.tar", "proc -p 5 -c true small.tar"),
        ("tarproc -S run.sh -e abort -w tmp a.tar -o b.tar", "proc --script run.sh --on-error raise a.tar -o b.tar"),
        ("tarproc --error-handling=ignore -c true a.tar", "proc --on-error skip -c true a.tar"),
        ("tarshow -c 2 small.tar", "show -c 2 small.tar"),
        ("tarshow -d 0 -N -C gray --silent -f jpg", "show -f jpg -"),
        ("tarshow", "show -"),
        ("tarshow -", "show -"),
        ("tarshow --help", "show --help"),
        ("tarsort -s cls -S int -r 10 --update a.tar", "sort --by cls --as int a.tar"),
        ("tarsort -S shuffle -t tmp.db a.tar", "sort --shuffle a.tar"),
        ("tarsplit -s 1e9 -o imagenet_train --maxshards 2", "split -s 1e9 -o imagenet_train --maxshards 2"),
        ("tarsplit --max-size=1e9 -v --num-samples 3 -- -x.tar", "split --size 1e9 --count 3 -- -x.tar"),
    ],
)
def test_a_line_is_translated(old: str, new: str):
    name, *arguments = old.split()

    assert new.split() == tarproc_scripts.translated(name, arguments)


@pytest.mark.parametrize("name", list(tarproc_scripts.VERBS))
def test_every_flag_of_today_exists(name: str):
    from tarviz.model import plugins

    verb, flags = tarproc_scripts.VERBS[name]
    there = {option for parameter in plugins.load("commands", verb).command.params for option in parameter.opts + parameter.secondary_opts}

    assert {flag.now for flag in flags.values() if flag.now} <= there
