"""A record as files in a private folder: what a command left of them, and nothing beside it."""

from __future__ import annotations

import io
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tarviz.commands.proc import proc
from tarviz.model.errors import DataError, LimitError, UsageError
from tarviz.testing.strategies import numbered_records, shard
from tarviz.testing.strategies import records as record_lists
from tarviz.tools import record_shell
from tests.commands.conftest import listed, names, plain
from tests.conftest import DATA, wait_until

TARS = DATA / "corpora" / "generated"
Make = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("tmp")
LARGE = b"\xff" * 70_000


class TestFiles:
    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_what_is_not_touched_stays_bit_for_bit(self, make: Make, out: Path, payload: bytes):
        a = make(numbered_records(30, payload=payload), format=tarfile.PAX_FORMAT, mtime=1.5)

        result = proc(a, out, command="true", workers=3)

        assert a.read_bytes().rstrip(b"\0") == out.read_bytes().rstrip(b"\0")
        assert (30, 0) == (result.records, result.exit_code)

    @pytest.mark.parametrize("payload", [b"x" * 600, LARGE], ids=["tiny", "large"])
    def test_fields_are_changed_added_and_removed(self, make: Make, out: Path, payload: bytes):
        proc(
            make(numbered_records(9, payload=payload)),
            out,
            command="wc -c < sample.png > sample.size; rm sample.cls; printf b >> sample.png",
            workers=2,
        )

        assert [(key, {"png": payload + b"b", "size": b"%d\n" % len(payload)}) for key, _ in numbered_records(9)] == plain(out)
        assert 18 == len(listed(out))

    def test_a_payload_of_the_same_size_is_seen_to_change(self, make: Make, out: Path):
        proc(make(numbered_records(20)), out, command="printf 7 > sample.cls")

        assert [b"7"] * 20 == [fields["cls"] for _, fields in plain(out)]

    def test_a_file_put_in_place_of_another_is_seen_too(self, make: Make, out: Path):
        proc(make(numbered_records(5)), out, command="printf 7 > x; touch -r sample.cls x; mv x sample.cls")

        assert [b"7"] * 5 == [fields["cls"] for _, fields in plain(out)]

    def test_further_base_names_are_further_records(self, make: Make, out: Path):
        proc(make(numbered_records(2)), out, command="for i in 1 2; do cp sample.cls sample-$i.cls; done; printf x > sample_b.txt")

        content = dict(numbered_records(2))
        key = "train/n00000001"
        assert [key.replace("1", "0"), *(f"{key[:-1]}0{s}" for s in ("-1", "-2", "_b")), key, f"{key}-1", f"{key}-2", f"{key}_b"] == [
            each for each, _ in plain(out)
        ]
        assert ({"cls": b"1"}, {"txt": b"x"}, content[key]) == (
            dict(plain(out))[f"{key}-2"],
            dict(plain(out))[f"{key}_b"],
            dict(plain(out))[key],
        )

    def test_a_record_without_files_is_gone(self, make: Make, out: Path):
        result = proc(make(numbered_records(10)), out, command="[ $(cat sample.cls) -ge 3 ] && rm sample.*; true")

        assert (3, 0) == (result.records, result.exit_code)
        assert numbered_records(3) == plain(out)

    def test_other_files_are_not_written_and_told(self, make: Make, out: Path):
        result = proc(
            make(numbered_records(3)),
            out,
            command="touch log; mkdir sub; touch sub/sample.x; ln -s /etc/passwd sample.txt; mkfifo sample.fifo",
        )

        assert numbered_records(3) == plain(out)
        assert {"log": 3, "sub": 3, "sample.txt": 3, "sample.fifo": 3} == result.others
        assert "12 files that are not fields" in str(result)

    def test_links_are_never_followed(self, make: Make, out: Path, tmp_path: Path):
        (tmp_path / "secret").write_bytes(b"secret")

        proc(
            make(numbered_records(1)),
            out,
            command=f"rm sample.cls; ln -s {tmp_path}/secret sample.cls; ln {tmp_path}/secret sample.hard; ls",
        )

        assert {"png": b"x" * 600, "hard": b"secret"} == plain(out)[0][1]

    def test_names_keep_their_case_and_files_are_lower(self, make: Make, out: Path):
        proc(make([("a", {"JPG": b"1", "Seg.PNG": b"2"})]), out, command="printf 3 >> sample.jpg; test -e sample.seg.png")

        assert [b"a.JPG", b"a.Seg.PNG"] == names(out)
        assert {"jpg": b"13", "seg.png": b"2"} == plain(out)[0][1]

    def test_only_some_fields_become_files(self, make: Make, out: Path):
        proc(make([("a", {"x": b"1", "cls": b"2", "y": b"3"})]), out, command="ls > sample.list", fields="cls")

        assert [("a", {"x": b"1", "cls": b"2", "y": b"3", "list": b"sample.cls\nsample.list\n"})] == plain(out)

    def test_time_and_mode_stay_with_a_changed_field(self, make: Make, out: Path):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            member = tarfile.TarInfo("a.txt")
            member.size, member.mtime, member.mode = 1, 1234567, 0o640
            tar.addfile(member, io.BytesIO(b"x"))
        proc(make(data.getvalue()), out, command="echo y >> sample.txt; touch sample.new")

        with tarfile.open(out) as tar:
            assert [("a.txt", 1234567, 0o640), ("a.new", 1234567, 0o640)] == [(each.name, each.mtime, each.mode) for each in tar]

    def test_a_large_result_is_refused(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", "1000")

        with pytest.raises(LimitError, match=r"sample\.big"):
            proc(make(numbered_records(1)), out, command="head -c 1001 /dev/zero > sample.big")

    @settings(max_examples=20, deadline=None)
    @given(record_lists(max_size=5))
    @pytest.mark.matrix
    def test_any_records_pass(self, tmp_path_factory: Any, content: Any):
        folder = tmp_path_factory.mktemp("proc")
        (folder / "a.tar").write_bytes(shard(content, format=tarfile.GNU_FORMAT))

        proc(folder / "a.tar", folder / "out", command="true", any_key=True, tmp=folder)

        assert content == plain(folder / "out")


class TestFolder:
    def test_is_private_and_new_for_each_record(self, make: Make, out: Path, tmp: Path):
        proc(make(numbered_records(3)), out, command="stat -c %a . .. ../.. > sample.modes; pwd > sample.pwd; touch left", workers=1)

        assert {b"700\n700\n700\n"} == {fields["modes"] for _, fields in plain(out)}
        places = [fields["pwd"].decode().strip() for _, fields in plain(out)]
        assert 3 == len(set(places))
        assert all(place.startswith(f"{tmp}/tarviz-proc-") for place in places)

    def test_what_cannot_be_read_is_removed_too(self, make: Make, out: Path):
        proc(make(numbered_records(2)), out, command="mkdir -p a/b; touch a/b/c; chmod 0 a/b; chmod 500 a; cd a")

        assert numbered_records(2) == plain(out)

    def test_a_link_that_a_command_leaves_is_removed_and_not_followed(self, make: Make, out: Path, tmp_path: Path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "kept").write_text("1")
        outside.chmod(0o500)
        before = outside.stat()
        proc(make(numbered_records(2)), out, command=f"mkdir d d/e; ln -s '{outside}' d/link; ln -s '{outside}' link; chmod 500 d")

        assert (before.st_mode, before.st_ctime_ns) == (outside.stat().st_mode, outside.stat().st_ctime_ns)
        assert ["kept"] == [each.name for each in outside.iterdir()]
        outside.chmod(0o700)

    def test_a_command_that_removes_its_folder(self, make: Make, out: Path):
        with pytest.raises((DataError, OSError)):
            proc(make(numbered_records(2)), out, command='rm -r "$PWD"')
        assert not out.exists()

    def test_a_key_that_leads_out_is_refused(self, out):
        for case in ["S01", "S02", "S03", "S04", "S05", "S06", "S07", "S08"]:
            path = next(TARS.glob(f"{case}-*.tar"))
            if case == "S05":  # its key begins with a dot: no record
                assert 1 == proc(path, out, command="true").exit_code
                return

            with pytest.raises(DataError, match="E_HEADER" if case == "S08" else "E_UNSAFE_NAME"):  # a NUL: no name two readers agree on
                proc(path, out, command="true")
            result = proc(path, out, command="true", on_error="skip")
            assert (1, 1) == (result.exit_code, len(result.report.skipped))

    def test_a_key_that_is_no_utf_8_is_byte_exact(self, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("LC_ALL", "C.UTF-8")  # bash's `read` takes the end of such a key for a part of a character
        key = b"caf\xe9"
        (tmp_path / "s.tar").write_bytes(shard([(key.decode("utf-8", "surrogateescape"), {"txt": b"x"})]))

        proc(tmp_path / "s.tar", out, command='printf %s "$TARVIZ_KEY" > sample.key', timeout=20)

        assert [key] == [fields["key"] for _, fields in plain(out)]

    def test_keys_that_attack_shells_are_text(self, out: Path, tmp_path: Path):
        path = next(TARS.glob("S12-*.tar"))
        before = sorted(os.listdir(tmp_path))

        result = proc(path, out, command='printf %s "$TARVIZ_KEY" > sample.key', any_key=True, workers=2, on_error="skip")

        assert (19, ["E_UNSAFE_NAME"]) == (
            result.records,
            [fault.code for fault in result.report.skipped],
        )  # the extension "__class__}.txt"
        assert all(key == fields["key"].decode("utf-8", "surrogateescape") for key, fields in plain(out))
        assert sorted([*before, "out.tar"]) == sorted(os.listdir(tmp_path))

    def test_an_extension_that_is_no_file_name_is_refused(self, make, out):
        for ext in ["a b", "a;b", "a$b", "a\nb", "a*", "a'b", 'a"b', "a`b", "a|b", "a\\b", "x" * 201]:
            with pytest.raises(DataError, match="E_UNSAFE_NAME"):
                proc(make([("a", {ext: b""})], format=tarfile.GNU_FORMAT), out, command="true")

    def test_a_base_that_is_none(self, make, out):
        for base in ["", "a/b", "../x", ".x", "a.b", "-x"]:
            with pytest.raises(UsageError):
                proc(make(numbered_records(1)), out, command="true", base=base)

    def test_another_base(self, make: Make, out: Path):
        proc(make(numbered_records(1)), out, command="cp page.cls page-1.cls", base="page")

        assert ["train/n00000000", "train/n00000000-1"] == [key for key, _ in plain(out)]


class TestCollecting:
    def test_a_record_whose_command_fails_is_kept_as_it_was_left(self, make: Make, out: Path):
        command = "printf 9 > sample.cls; rm sample.png; [ $TARVIZ_KEY = train/n00000001 ]"

        result = proc(make(numbered_records(3)), out, command=command, keep_failed=True, workers=2)

        assert [(key, {"cls": b"9"}) for key, _ in numbered_records(3)] == plain(out)
        assert (1, ["E_COMMAND"] * 2, []) == (result.exit_code, [fault.code for fault in result.report.warnings], result.report.skipped)
        assert ["train/n00000000", "train/n00000002"] == [fault.key for fault in result.report.warnings]

    @pytest.mark.parametrize("line", ["kill -9 $$", "sleep 100"], ids=["killed", "late"])
    @pytest.mark.matrix
    def test_so_is_one_whose_shell_is_killed(self, make: Make, out: Path, line: str):
        result = proc(make(numbered_records(2)), out, command=f"printf 9 > sample.cls; {line}", keep_failed=True, timeout=2, workers=2)

        assert [b"9", b"9"] == [fields["cls"] for _, fields in plain(out)]
        assert 2 == len(result.report.warnings)

    def test_files_of_other_names_become_records_too(self, make: Make, out: Path):
        result = proc(
            make(numbered_records(1)), out, command="touch log; printf n > note.txt; printf t > thumb.jpg; mkdir a.b", others=True
        )

        key = numbered_records(1)[0][0]
        assert [numbered_records(1)[0], (f"{key}note", {"txt": b"n"}), (f"{key}thumb", {"jpg": b"t"})] == plain(out)
        assert {"log": 1, "a.b": 1} == result.others == result.to_dict()["others"]

    def test_a_separator_stands_before_the_rest_of_a_name(self, make: Make, out: Path):
        proc(make(numbered_records(1)), out, command="printf 1 > sample1.cls; printf x > x.cls", others=True, separator="_")

        key = numbered_records(1)[0][0]
        assert [key, f"{key}_1", f"{key}_x"] == [each for each, _ in plain(out)]

    def test_patterns_say_which_files_are_written(self, make: Make, out: Path):
        a = make(numbered_records(2))

        proc(a, out, command="touch sample.tmp sample.txt", exclude=r"\.tmp$|\.png$")
        assert [{"cls", "txt"}] * 2 == [set(fields) for _, fields in plain(out)]

        proc(a, out, command="touch sample.tmp sample.txt", include=r"\.(cls|txt)$", exclude="cls")
        assert [{"txt"}] * 2 == [set(fields) for _, fields in plain(out)]

    @pytest.mark.parametrize("wrong", [{"include": "("}, {"add_log": "a/b"}, {"base": "../x"}])
    def test_what_cannot_be_is_said_before_anything_is_read(self, out: Path, wrong: Any):
        with pytest.raises(UsageError):
            proc("/no/such.tar", out, command="true", **wrong)

    @pytest.mark.parametrize("more", ["", "; true"], ids=["simple", "subshell"])
    def test_what_a_command_prints_can_be_a_field(self, make: Make, out: Path, capfd: Any, more: str):
        proc(make(numbered_records(2)), out, command=f"ls sample.cls /no-such{more}", add_log="log", keep_failed=True)

        for key, fields in plain(out):
            assert {"png", "cls", "log"} == set(fields), key
            assert b"sample.cls\n" in fields["log"]
            assert b"/no-such" in fields["log"]
        assert "sample.cls" not in "".join(capfd.readouterr())

    def test_fields_that_are_required(self, make: Make, out: Path):
        a = make([("a", {"x": b"1", "cls": b"2"}), ("b", {"x": b"1"}), ("c", {"y": b"3", "cls": b"2"})])

        with pytest.raises(DataError, match=r'E_MISSING_FIELD.*record "b".*cls'):
            proc(a, out, command="true", fields="cls", require=True)
        result = proc(a, out, command="true", fields="x;y cls", require=True, only_fields=True, on_error="skip")

        assert [("a", {"x": b"1", "cls": b"2"}), ("c", {"y": b"3", "cls": b"2"})] == plain(out)
        assert {"E_MISSING_FIELD": 1} == result.report.counts()

    def test_only_fields_that_were_shown_pass(self, make: Make, out: Path):
        proc(make([("a", {"x": b"1", "cls": b"2"})]), out, command="printf 3 > sample.y", fields="cls", only_fields=True)

        assert [("a", {"cls": b"2", "y": b"3"})] == plain(out)

    def test_so_many_records_are_read(self, make: Make, out: Path):
        result = proc(make(numbered_records(9)), out, command="true", count=4)

        assert (4, numbered_records(4)) == (result.records, plain(out))

    @pytest.mark.matrix
    def test_lines_of_the_old_tool(self, make: Make, bash: Any, tmp_path: Path):
        make([("a", {"jpg": b"1", "cls": b"2"}), ("b", {"jpg": b"1"})])

        kept = bash("tarproc -e ignore -c 'printf x >> sample.jpg; false' a.tar -o kept.tar")
        missing = bash("tarproc -F error -f jpg,cls -c true a.tar -o missing.tar")
        left = bash("tarproc -f jpg -s _ -E tmp -c 'touch sample.tmp; cp sample.jpg small.jpg' a.tar -o left.tar")

        assert (1, [("a", {"jpg": b"1x", "cls": b"2"}), ("b", {"jpg": b"1x"})]) == (kept.returncode, plain(tmp_path / "kept.tar"))
        assert (2, False) == (missing.returncode, (tmp_path / "missing.tar").exists())
        assert 0 == left.returncode
        assert [("a", {"jpg": b"1"}), ("a_small", {"jpg": b"1"}), ("b", {"jpg": b"1"}), ("b_small", {"jpg": b"1"})] == plain(
            tmp_path / "left.tar"
        )


class TestRunning:
    @pytest.mark.parametrize("workers", [1, 4])
    def test_order_is_kept(self, make: Make, out: Path, workers: int):
        content = [(f"k{at}", {"t": b"0.%d" % (at * 7 % 5)}) for at in range(24)]

        proc(make(content), out, command="sleep $(cat sample.t)e-1", workers=workers)

        assert content == plain(out)

    def test_unless_told_otherwise(self, make: Make, out: Path):
        content = [("slow", {"t": b"0.5"}), *((f"k{at}", {"t": b"0"}) for at in range(12))]

        proc(make(content), out, command="sleep $(cat sample.t)", workers=2, ordered=False)

        assert sorted(content) == sorted(plain(out))
        assert "slow" != plain(out)[0][0]

    def test_workers_run_side_by_side(self, make: Make, out: Path, tmp_path: Path):
        (tmp_path / "here").mkdir()
        command = f"cd {tmp_path}/here; touch $$; until [ $(ls | wc -l) = 8 ]; do sleep 0.02; done"

        assert 8 == proc(make(numbered_records(8)), out, command=command, workers=8, timeout=60).records

    def test_a_failure_is_an_error_with_its_place(self, make: Make, out: Path):
        with pytest.raises(DataError, match=r"ended with exit code 3.*--on-error skip") as caught:
            proc(make(numbered_records(20)), out, command="[ $(cat sample.cls) != 7 ] || exit 3", workers=3)

        assert ("E_COMMAND", "train/n00000007", 7) == (caught.value.code, caught.value.key, caught.value.records_before)
        assert not out.exists()

    def test_or_is_left_out_and_counted(self, make: Make, out: Path):
        result = proc(make(numbered_records(20)), out, command="[ $(cat sample.cls) != 7 ] || kill -9 $BASHPID", workers=3, on_error="skip")

        assert (18, 1) == (result.records, result.exit_code)
        assert ["train/n00000007", "train/n00000017"] == [fault.key for fault in result.report.skipped]
        assert "killed by signal 9" in str(result)

    def test_a_command_that_kills_its_shell_harms_no_other_record(self, make: Make, out: Path):
        result = proc(make(numbered_records(10)), out, command="[ $(cat sample.cls) != 3 ] || kill -9 $$", on_error="skip")

        assert (9, ["train/n00000003"]) == (result.records, [fault.key for fault in result.report.skipped])

    @pytest.mark.matrix
    def test_a_command_that_hangs_is_killed(self, make: Make, out: Path):
        result = proc(
            make(numbered_records(4)), out, command="[ $(cat sample.cls) != 1 ] || sleep 900", timeout=2, on_error="skip", workers=2
        )

        assert ["E_TIMEOUT"] == [fault.code for fault in result.report.skipped]
        assert 3 == result.records

    def test_nothing_it_started_runs_on(self, make: Make, out: Path, tmp_path: Path):
        proc(make(numbered_records(1)), out, command=f"sleep 77.5 & echo $! > {tmp_path}/pid")

        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not _alive(pid))

    def test_stdin_is_empty_and_the_environment_is_there(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("MINE", "yes")

        proc(make(numbered_records(2)), out, command='cat > sample.in; printf %s "$MINE $TARVIZ_KEY $# $-" > sample.env')

        assert [b""] * 2 == [fields["in"] for _, fields in plain(out)]
        assert [f"yes {key} 0 hBc".encode() for key, _ in numbered_records(2)] == [fields["env"] for _, fields in plain(out)]

    def test_where_there_is_no_bash(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(record_shell.shutil, "which", lambda name: None)

        result = proc(
            make(numbered_records(10)),
            out,
            command='printf "$TARVIZ_KEY" > sample.key; [ $(cat sample.cls) != 3 ] || kill -9 $$',
            on_error="skip",
            workers=2,
        )

        assert (9, ["train/n00000003"]) == (result.records, [fault.key for fault in result.report.skipped])
        assert "killed by signal 9" in str(result)
        assert all(key.encode() == fields["key"] for key, fields in plain(out))

    def test_a_script_runs_by_itself_or_by_its_interpreter(self, make: Make, out: Path, tmp_path: Path):
        script = tmp_path / "it's a script"
        script.write_text("import os; open('sample.key', 'w').write(os.environ['TARVIZ_KEY'])\n")
        proc(make(numbered_records(2)), out, script=script, interpreter=f"{sys.executable} -S")
        assert b"train/n00000001" == plain(out)[1][1]["key"]

        script.write_text("printf bash > sample.key\n")
        proc(make(numbered_records(1)), out, script=script)
        assert b"bash" == plain(out)[0][1]["key"]

        script.write_text("#!/bin/sh\nprintf own > sample.key\n")
        script.chmod(0o755)
        proc(make(numbered_records(1)), out, script=script)
        assert b"own" == plain(out)[0][1]["key"]

    @pytest.mark.parametrize("wrong", [{}, {"command": "true", "op": "decode(jpg)"}, {"script": "no such script"}])
    def test_one_thing_to_do(self, make: Make, out: Path, wrong: Any):
        with pytest.raises(UsageError):
            proc(make(numbered_records(1)), out, **wrong)

    def test_damage_makes_no_output(self, make: Make, out: Path):
        with pytest.raises(DataError, match="E_TRUNCATED"):
            proc(make(shard(numbered_records(20))[:9100]), out, command="true")
        assert not out.exists()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False
