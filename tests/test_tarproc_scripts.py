"""Old command lines in today's words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tarviz
from tarviz import tarproc_scripts


def test_a_line_is_translated():
    for old, new in [
        ("tar2tsv -f cls --nokey --noheader small.tar", "tsv -f cls --nokey --noheader small.tar"),
        ("tarscat -c 10", "cat -c 10"),
        ("tarcat -v -b -T list x-{0..3}.tar", "cat -T list x-{0..3}.tar"),
        ("tarscat --shuffle a.tar", "cat --shuffle 1000 a.tar"),
        ("tarscat --shuffle 50 a.tar", "cat --shuffle 50 a.tar"),
        ("tarcreate -f , -k {record:04d} -C dir plan out.tar", "create --delimiter , -k {record:04d} -C dir plan out.tar"),
        ("tarcats --eof --output-mode random --nodata a.tar", "cat --count 0 a.tar"),
        ("tarscat a.tar#0,3", "cat --count 4 a.tar"),
        ("tarshow -f jpg a.tar#3", "show --count 4 -f jpg a.tar"),
        ("tarscat a.tar#2,3", "cat a.tar#2,3"),
        ("tarfirst -v -S True -f jpg a.tar", "first --select True -f jpg a.tar"),
        ("tarfirst -S cat a.tar", "first --select cat a.tar"),
        ("tarfirst --select cls==3 a.tar", "first --select cls==3 a.tar"),
        ("tarpcat -p4 -s 100 -b x.tar", "pcat --workers 4 --shuffle 100 x.tar"),
        ("tarpcat --dummy a.tar", "pcat --output /dev/null a.tar"),
        ("tarproc -p 5 -c true small.tar", "proc --others -p 5 -c true small.tar"),
        ("tarproc -S run.sh -e abort -w tmp a.tar -o b.tar", "proc --others --script run.sh --on-error raise a.tar -o b.tar"),
        ("tarproc --error-handling=ignore -c true a.tar", "proc --others --keep-failed -c true a.tar"),
        ("tarproc -e skip -c true a.tar", "proc --others --on-error skip -c true a.tar"),
        ("tarproc -f jpg,cls -F error -c true a.tar", "proc --others --only-fields -f jpg,cls --require -c true a.tar"),
        ("tarproc -f jpg -F ignore -c true a.tar", "proc --others --only-fields -f jpg -c true a.tar"),
        ("tarproc -E tmp -I jpg$ -s _ -c true a.tar", "proc --others --exclude tmp --include jpg$ --separator _ -c true a.tar"),
        ("tarproc -s run.sh --keepdir -O /dev/null a.tar", "proc --others -s run.sh a.tar"),
        ("tarproc --count 1e2 --add-log log -c ls a.tar", "proc --others --count 100 --add-log log -c ls a.tar"),
        ("tarproc --mode lines -c true a.txt", "proc --others --mode lines -c true a.txt"),
        ("tarshow -c 2 small.tar", "show -c 2 small.tar"),
        ("tarshow -d 0 -N -C gray --silent -f jpg", "show -f jpg -"),
        ("tarshow", "show -"),
        ("tarshow -", "show -"),
        ("tarshow --help", "show --help"),
        ("tarsort -s cls -S int -r 10 --update a.tar", "sort --by cls --as int a.tar"),
        ("tarsort -S shuffle -t tmp.db a.tar", "sort --shuffle a.tar"),
        ("tarsplit -s 1e9 -o imagenet_train --maxshards 2", "split -s 1e9 -o imagenet_train --maxshards 2"),
        ("tarsplit --max-size=1e9 -v --num-samples 3 -- -x.tar", "split --output temp --size 1e9 --count 3 -- -x.tar"),
        ("tarsplit -n 1e4 -z --nodelete a.tar", "split --output temp.tgz --count 10000 a.tar"),
        ("tarsplit -z -n4 -otrain a.tar", "split --count 4 -otrain.tgz a.tar"),
        ("tarsplit -z -o |cat a.tar", "split -o |cat a.tar"),
        ("tarsplit -z a.tar -o", "split --output temp.tgz a.tar -o"),
        ("tarsplit a.tar -o", "split --output temp a.tar -o"),
        ("tarsplit -z --output=s-{shard}.tgz a.tar", "split --output=s-{shard}.tgz a.tar"),
    ]:
        name, *arguments = old.split()

        assert new.split() == tarproc_scripts.translate(name, arguments)


@pytest.mark.parametrize(("given", "command"), [("echo", "echo\n"), ("echo {}", "echo {}")])
def test_a_command_gets_no_argument_it_did_not_ask_for(given: str, command: str):
    assert ["split", "--output", "temp", "--command", command, "a.tar"] == tarproc_scripts.translate("tarsplit", ["-C", given, "a.tar"])


@pytest.mark.parametrize("count", ["many", "1.5", "1e999"])
def test_what_is_no_whole_number_is_left_for_the_verb_to_refuse(count: str):
    assert ["--count", count] == tarproc_scripts.translate("tarsplit", ["-o", "x", "-n", count])[-2:]


def test_a_script_runs_its_verb_and_may_write_into_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tarviz.write([{"__key__": "a", "cls": 1}, {"__key__": "b", "cls": 2}], tmp_path / "a.tar")
    monkeypatch.setattr(sys, "argv", ["tarsort", "-S", "shuffle", "-o", f"|cat > {tmp_path}/b.tar", str(tmp_path / "a.tar")])

    assert 0 == tarproc_scripts.tarsort()
    assert {"a", "b"} == {record.key for record in tarviz.records(str(tmp_path / "b.tar"))}


@pytest.mark.parametrize("name", list(tarproc_scripts.VERBS))
def test_every_flag_of_today_exists(name: str):
    from tarviz.model import plugins

    verb, flags = tarproc_scripts.VERBS[name].verb, tarproc_scripts.VERBS[name].flags()
    there = {option for parameter in plugins.load("commands", verb).command.params for option in parameter.opts + parameter.secondary_opts}

    assert {now.partition("=")[0] for now, _ in flags.values() if now and now != "+gzip"} <= there
