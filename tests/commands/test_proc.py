"""Commands, scripts and chains on each record: private folders, nothing followed, nothing left, order and faults kept."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.proc import proc
from tarviz.model.errors import ChainError, DataError, UsageError
from tarviz.testing.strategies import numbered, shard
from tarviz.tools import record_shell
from tests.commands.conftest import ROOT, plain
from tests.conftest import DATA, wait_until

TARS = DATA / "corpora" / "generated"
Make = Callable[..., Path]
LARGE = b"\xff" * 70_000


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.tar"


@pytest.fixture(autouse=True)
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Private folders are made in `tmp`, and none is left there."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield folder
    wait_until(lambda: [] == os.listdir(folder))


class TestCollecting:
    def test_a_record_whose_command_fails_is_kept_as_it_was_left(self, make: Make, out: Path):
        command = "printf 9 > sample.cls; rm sample.png; [ $TARVIZ_KEY = train/n00000001 ]"

        result = proc(make(numbered(3)), out, command=command, keep_failed=True, workers=2)

        assert [(key, {"cls": b"9"}) for key, _ in numbered(3)] == plain(out)
        assert (1, ["E_COMMAND"] * 2, []) == (result.exit_code, [fault.code for fault in result.report.warnings], result.report.skipped)
        assert ["train/n00000000", "train/n00000002"] == [fault.key for fault in result.report.warnings]

    @pytest.mark.parametrize("line", ["kill -9 $$", "sleep 100"], ids=["killed", "late"])
    @pytest.mark.matrix
    def test_so_is_one_whose_shell_is_killed(self, make: Make, out: Path, line: str):
        result = proc(make(numbered(2)), out, command=f"printf 9 > sample.cls; {line}", keep_failed=True, timeout=2, workers=2)

        assert [b"9", b"9"] == [fields["cls"] for _, fields in plain(out)]
        assert 2 == len(result.report.warnings)

    def test_files_of_other_names_become_records_too(self, make: Make, out: Path):
        result = proc(make(numbered(1)), out, command="touch log; printf n > note.txt; printf t > thumb.jpg; mkdir a.b", others=True)

        key = numbered(1)[0][0]
        assert [numbered(1)[0], (f"{key}note", {"txt": b"n"}), (f"{key}thumb", {"jpg": b"t"})] == plain(out)
        assert {"log": 1, "a.b": 1} == result.others

    def test_a_separator_stands_before_the_rest_of_a_name(self, make: Make, out: Path):
        proc(make(numbered(1)), out, command="printf 1 > sample1.cls; printf x > x.cls", others=True, separator="_")

        key = numbered(1)[0][0]
        assert [key, f"{key}_1", f"{key}_x"] == [each for each, _ in plain(out)]

    def test_patterns_say_which_files_are_written(self, make: Make, out: Path):
        a = make(numbered(2))

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
        proc(make(numbered(2)), out, command=f"ls sample.cls /no-such{more}", add_log="log", keep_failed=True)

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
        result = proc(make(numbered(9)), out, command="true", count=4)

        assert (4, numbered(4)) == (result.records, plain(out))

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

        assert 8 == proc(make(numbered(8)), out, command=command, workers=8, timeout=60).records

    def test_a_failure_is_an_error_with_its_place(self, make: Make, out: Path):
        with pytest.raises(DataError, match="ended with exit code 3") as caught:
            proc(make(numbered(20)), out, command="[ $(cat sample.cls) != 7 ] || exit 3", workers=3)

        assert ("E_COMMAND", "train/n00000007", 7) == (caught.value.code, caught.value.key, caught.value.records_before)
        assert not out.exists()

    def test_or_is_left_out_and_counted(self, make: Make, out: Path):
        result = proc(make(numbered(20)), out, command="[ $(cat sample.cls) != 7 ] || kill -9 $BASHPID", workers=3, on_error="skip")

        assert (18, 1) == (result.records, result.exit_code)
        assert ["train/n00000007", "train/n00000017"] == [fault.key for fault in result.report.skipped]
        assert "killed by signal 9" in str(result)

    def test_a_command_that_kills_its_shell_harms_no_other_record(self, make: Make, out: Path):
        result = proc(make(numbered(10)), out, command="[ $(cat sample.cls) != 3 ] || kill -9 $$", on_error="skip")

        assert (9, ["train/n00000003"]) == (result.records, [fault.key for fault in result.report.skipped])

    @pytest.mark.matrix
    def test_a_command_that_hangs_is_killed(self, make: Make, out: Path):
        result = proc(make(numbered(4)), out, command="[ $(cat sample.cls) != 1 ] || sleep 900", timeout=2, on_error="skip", workers=2)

        assert ["E_TIMEOUT"] == [fault.code for fault in result.report.skipped]
        assert 3 == result.records

    def test_nothing_it_started_runs_on(self, make: Make, out: Path, tmp_path: Path):
        proc(make(numbered(1)), out, command=f"sleep 77.5 & echo $! > {tmp_path}/pid")

        pid = int((tmp_path / "pid").read_text())
        wait_until(lambda: not _alive(pid))

    def test_stdin_is_empty_and_the_environment_is_there(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("MINE", "yes")

        proc(make(numbered(2)), out, command='cat > sample.in; printf %s "$MINE $TARVIZ_KEY $# $-" > sample.env')

        assert [b""] * 2 == [fields["in"] for _, fields in plain(out)]
        assert [f"yes {key} 0 hBc".encode() for key, _ in numbered(2)] == [fields["env"] for _, fields in plain(out)]

    def test_where_there_is_no_bash(self, make: Make, out: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(record_shell.shutil, "which", lambda name: None)

        result = proc(
            make(numbered(10)), out, command='printf "$TARVIZ_KEY" > sample.key; [ $(cat sample.cls) != 3 ]', on_error="skip", workers=2
        )

        assert (9, ["train/n00000003"]) == (result.records, [fault.key for fault in result.report.skipped])
        assert all(key.encode() == fields["key"] for key, fields in plain(out))

    def test_a_script_runs_by_itself_or_by_its_interpreter(self, make: Make, out: Path, tmp_path: Path):
        script = tmp_path / "it's a script"
        script.write_text("import os; open('sample.key', 'w').write(os.environ['TARVIZ_KEY'])\n")
        proc(make(numbered(2)), out, script=script, interpreter=f"{sys.executable} -S")
        assert b"train/n00000001" == plain(out)[1][1]["key"]

        script.write_text("printf bash > sample.key\n")
        proc(make(numbered(1)), out, script=script)
        assert b"bash" == plain(out)[0][1]["key"]

        script.write_text("#!/bin/sh\nprintf own > sample.key\n")
        script.chmod(0o755)
        proc(make(numbered(1)), out, script=script)
        assert b"own" == plain(out)[0][1]["key"]

    @pytest.mark.parametrize("wrong", [{}, {"command": "true", "op": "decode(jpg)"}, {"script": "no such script"}])
    def test_one_thing_to_do(self, make: Make, out: Path, wrong: Any):
        with pytest.raises(UsageError):
            proc(make(numbered(1)), out, **wrong)

    def test_damage_makes_no_output(self, make: Make, out: Path):
        with pytest.raises(DataError, match="E_TRUNCATED"):
            proc(make(shard(numbered(20))[:9100]), out, command="true")
        assert not out.exists()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


class TestChain:
    def test_pictures_get_smaller_without_a_process(self, photos: Path, out: Path):
        from PIL import Image

        result = proc(photos / "photos-0000.tar", out, op="decode(jpg)|resize(jpg, (64, 48))|encode(jpg, quality=90)", workers=2)

        for (key, fields), (old_key, old) in zip(plain(out), plain(photos / "photos-0000.tar"), strict=True):
            assert (key, (48, 64), old["cls"], "JPEG") == (
                old_key,
                (image := Image.open(io.BytesIO(fields["jpg"]))).size,
                fields["cls"],
                image.format,
            )
        assert 0 == result.exit_code

    def test_is_what_the_chain_says(self, photos: Path, out: Path):
        from tarviz import ops
        from tarviz.read import stream

        chain = ops.parse_chain("decode(jpg)|resize(jpg, (64, 48))|encode(jpg, quality=90)")
        proc(photos / "photos-0000.tar", out, op=chain)

        with stream.records(photos / "photos-0000.tar") as records:
            assert [bytes(chain.run(record)["jpg"]) for record in records] == [fields["jpg"] for _, fields in plain(out)]

    def test_random_ops_depend_on_key_and_seed_alone(self, photos: Path, out: Path):
        chain = "decode(jpg)|random_crop(jpg, (32, 32))|encode(jpg)"
        results = []
        for workers, seed in ((1, 0), (3, 0), (3, 1)):
            proc(photos / "photos-0000.tar", out, op=chain, workers=workers, seed=seed)
            results.append(out.read_bytes())

        assert results[0] == results[1] != results[2]

    def test_fields_are_renamed_and_dropped(self, photos: Path, out: Path):
        proc(photos / "photos-0000.tar", out, op="keep(jpg, cls)|rename(image=jpg)")

        assert {"image", "cls"} == set(plain(out)[0][1])

    def test_a_field_that_is_no_bytes_is_refused(self, photos: Path, out: Path):
        with pytest.raises(DataError, match=r"encode\(jpg\)"):
            proc(photos / "photos-0000.tar", out, op="decode(jpg)")

    def test_a_record_that_fails_is_counted(self, make: Make, out: Path):
        result = proc(make([("a", {"jpg": b"no picture"}), ("b", {"txt": b""})]), out, op="decode(jpg)|encode(jpg)", on_error="skip")

        assert (0, ["a", "b"], 1) == (result.records, [fault.key for fault in result.report.skipped], result.exit_code)

    def test_a_chain_that_cannot_be_read(self, make: Make, out: Path):
        with pytest.raises(ChainError):
            proc(make(numbered(1)), out, op="decod(jpg)")


class TestShell:
    def test_the_example_of_the_issue(self, make: Make, bash: Any, tmp_path: Path):
        make([("a", {"jpg": b"12345"}), ("b", {"jpg": b""})], "in.tar")

        done = bash("tarviz proc -p 2 -c 'wc -c < sample.jpg > sample.size' in.tar -o out.tar")

        assert (0, b"") == (done.returncode, done.stderr)
        assert [b"5\n", b"0\n"] == [fields["size"] for _, fields in plain(tmp_path / "out.tar")]

    def test_what_commands_print_stays_out_of_the_tar(self, make: Make, bash: Any, tmp_path: Path):
        make(numbered(2))

        done = bash("tarviz proc -c 'ls; echo oops >&2' a.tar > out.tar")

        assert b"sample.cls\nsample.png\noops\n" * 2 == done.stderr
        assert numbered(2) == plain(tmp_path / "out.tar")

    def test_one_failure_ends_with_two_and_skips_with_one(self, make: Make, bash: Any, tmp_path: Path):
        make(numbered(3))

        failed = bash("tarviz proc -c 'false' a.tar -o out.tar")
        skipped = bash("tarviz proc -c '[ $(cat sample.cls) = 1 ]' --on-error skip a.tar -o out.tar --json")

        assert (2, 1) == (failed.returncode, skipped.returncode)
        assert b"E_COMMAND" in failed.stderr
        assert 1 == json.loads(skipped.stdout)["records"]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_ends_all_of_it(self, make: Make, tmp_path: Path, tmp: Path, number: signal.Signals):
        a, sleep = make(numbered(50)), f"sleep 966.{os.getpid()}"  # told from those of a run beside this one
        argv = [
            sys.executable,
            "-m",
            "tarviz",
            "proc",
            "-j",
            "3",
            "-c",
            f"mktemp {tmp_path}/began-XXXXXX > /dev/null; {sleep}",
            str(a),
            "-o",
            str(tmp_path / "o.tar"),
        ]
        process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True)
        wait_until(lambda: 3 == len(list(tmp_path.glob("began-*"))))
        process.send_signal(number)
        _, errors = process.communicate(timeout=100)  # the commands would take longer

        assert (130 if number == signal.SIGINT else 128 + number, b"") == (process.returncode, errors)
        assert [] == os.listdir(tmp)
        assert [] == [path for path in tmp_path.iterdir() if ".tmp-" in path.name or path.name == "o.tar"]
        assert sleep.encode() not in subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout

    def test_a_reader_that_leaves_is_no_error(self, make: Make, bash: Any):
        make(numbered(40, payload=LARGE))

        done = bash("tarviz proc -c true -j 2 a.tar | head -c 100 | wc -c; echo ${PIPESTATUS[0]}")

        assert (b"100\n141\n", b"") == (done.stdout, done.stderr)

    def test_graphicsmagick_and_the_chain_agree_on_the_size(self, photos: Path, bash: Any, tmp_path: Path):
        if not Path("/usr/bin/gm").exists():
            pytest.skip("GraphicsMagick is not installed")
        from PIL import Image

        done = bash(f"tarviz proc -p 2 -c 'gm mogrify -resize 256x256 *.jpg' {photos}/photos-0000.tar > out.tar")

        assert (0, b"") == (done.returncode, done.stderr)
        assert {256} == {max(Image.open(io.BytesIO(fields["jpg"])).size) for _, fields in plain(tmp_path / "out.tar")}

    def test_the_folder_of_a_worker_is_closed_to_others(self, make: Make, out: Path, tmp: Path):
        proc(make(numbered(1)), out, command=f"stat -c %a {tmp}/* > sample.mode")

        assert "700" == plain(out)[0][1]["mode"].decode().strip()
        assert stat.S_IMODE(tmp.stat().st_mode) & 0o700
