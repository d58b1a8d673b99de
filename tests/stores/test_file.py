"""Files: the contract of all stores, then what only files do."""

import errno
import os
import signal
import stat as modes
import subprocess
import sys
import threading
import time

import pytest

from tarviz import stores
from tarviz.model.errors import ChangedError, NotFoundError, StoreError
from tarviz.model.types import URL
from tarviz.stores import file
from tarviz.testing.stores import StoreTests
from tests.conftest import each_case
from tests.full_disk import full_disk


@pytest.fixture
def store():
    return file.store()


def buffer(size):
    return memoryview(bytearray(size))


class TestFileStore(StoreTests):
    @pytest.fixture
    def store(self):
        return file.store()

    @pytest.fixture
    def folder(self, tmp_path):
        return URL(str(tmp_path))


class TestFileStoreByURL(StoreTests):
    """The same through `file://`; listed and joined names are plain paths."""

    @pytest.fixture
    def store(self):
        return file.store()

    @pytest.fixture
    def folder(self, tmp_path):
        return URL(f"file://{tmp_path}")


@pytest.mark.fault("F51")
class TestChanges:
    def test_a_file_cut_while_it_is_read_is_noticed(self, store, tmp_path):
        path = tmp_path / "a.tar"
        path.write_bytes(bytes(100_000))
        with store.open(URL(str(path))) as stream:
            stream.readinto(buffer(1000))
            os.truncate(path, 50_000)

            with pytest.raises(ChangedError, match=r"E_CHANGED .*changed while it was in use: .*100000-.* 50000-"):
                stores.fill(stream, buffer(100_000))

    @pytest.mark.parametrize("mode", ["ab", "r+b"])
    def test_a_file_written_while_it_is_read_is_noticed(self, store, tmp_path, mode):
        path = tmp_path / "a.tar"
        path.write_bytes(bytes(100_000))
        time.sleep(0.02)  # longer than the grain of the file system's clock
        with store.open(URL(str(path))) as stream, path.open(mode) as other:
            stream.readinto(buffer(1000))
            other.write(b"x")
            other.flush()

            with pytest.raises(ChangedError):
                stores.fill(stream, buffer(200_000))

    def test_a_file_rewritten_in_place_with_its_time_restored_has_another_version(self, store, tmp_path):
        path = tmp_path / "a.tar"
        path.write_bytes(b"old")
        before, times = store.stat(URL(str(path))), path.stat()
        while path.stat().st_ctime_ns == times.st_ctime_ns:  # until the file system's clock has moved on
            path.write_bytes(b"new")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

        assert (3, before.mtime) == (path.stat().st_size, store.stat(URL(str(path))).mtime)
        for call in (lambda: store.open(before.url, etag=before.etag), lambda: store.read(before.url, 0, 3, etag=before.etag)):
            with pytest.raises(ChangedError):
                call()

    def test_a_file_may_be_moved_linked_and_protected_while_it_is_read(self, store, tmp_path):
        path = tmp_path / "a.tar"
        path.write_bytes(bytes(5))
        with store.open(URL(str(path))) as stream:
            version = path.stat().st_ctime_ns
            while path.stat().st_ctime_ns == version:
                path.chmod(0o400)
            os.link(path, tmp_path / "b.tar")
            path.rename(tmp_path / "c.tar")

            assert 5 == stores.fill(stream, buffer(9))

    def test_a_file_replaced_while_it_is_read_stays_as_it_was(self, store, tmp_path):
        path = tmp_path / "a.tar"
        path.write_bytes(b"old")
        with store.open(URL(str(path))) as stream:
            (tmp_path / "b").write_bytes(b"new")
            (tmp_path / "b").replace(path)
            found = buffer(9)

            assert 3 == stores.fill(stream, found)
            assert b"old" == found[:3]
        assert b"new" == store.read(URL(str(path)), 0, 9)


class TestRefusals:
    def test_a_folder_is_no_file(self, store, tmp_path):
        for call in (store.stat, store.open, store.create, lambda url: store.read(url, 0, 1)):
            with pytest.raises(StoreError, match="it is a folder"):
                call(URL(str(tmp_path)))

    def test_a_name_that_ends_like_a_folders_makes_none(self, store, tmp_path):
        with pytest.raises(StoreError, match="it is a folder"):
            store.create(URL(f"{tmp_path}/a.tar/"))

        assert [] == os.listdir(tmp_path)

    def test_a_missing_file_names_what_is_near(self, store, tmp_path):
        (tmp_path / "train-0001.tar").write_bytes(b"")

        with pytest.raises(NotFoundError, match=r"there is no such file\. Hint: Nearest in .*: train-0001\.tar\."):
            store.open(URL(str(tmp_path / "train-001.tar")))

    def test_a_file_in_the_way_of_a_folder_is_said(self, store, tmp_path):
        (tmp_path / "a").write_bytes(b"")

        with pytest.raises(StoreError, match="cannot be written"):
            store.create(URL(str(tmp_path / "a" / "b.tar")))

    def test_a_name_that_is_too_long_is_said(self, store, tmp_path):
        with pytest.raises(StoreError, match="file name too long"), store.create(URL(str(tmp_path / ("x" * 300)))) as sink:
            sink.write(b"x")

        assert [] == os.listdir(tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
    def test_a_lack_of_permission_is_said(self, store, tmp_path):
        path = tmp_path / "a.tar"
        path.write_bytes(b"x")
        path.chmod(0)
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(StoreError, match="cannot be read: permission denied"):
                store.open(URL(str(path)))
            with pytest.raises(StoreError, match="cannot be written: permission denied"):
                store.create(URL(str(tmp_path / "b.tar")))
        finally:
            tmp_path.chmod(0o700)

    def test_a_lack_of_permission_is_said_in_words(self):
        error = file._error(PermissionError(errno.EACCES, "Permission denied"), "/a", "E_WRITE")

        assert "E_WRITE /a: cannot be written: permission denied." in str(error)

    def test_a_full_disk_is_said(self, store):
        with (
            pytest.raises(StoreError, match="E_WRITE /dev/full: cannot be written: the disk is full"),
            store.create(URL("/dev/full")) as sink,
        ):
            sink.write(b"x")

    def test_a_full_disk_leaves_nothing_behind(self, store, tmp_path):
        too_large = pytest.raises(StoreError, match="larger than the system allows")
        with full_disk(100_000), too_large, store.create(URL(str(tmp_path / "a.tar"))) as sink:
            sink.writev([bytes(1000)] * 200)

        assert [] == os.listdir(tmp_path)


class TestWriting:
    def test_folders_are_made(self, store, tmp_path):
        with store.create(URL(str(tmp_path / "a" / "b" / "c.tar"))) as sink:
            sink.write(b"x")

        assert b"x" == (tmp_path / "a" / "b" / "c.tar").read_bytes()

    def test_the_mode_follows_the_umask(self, store, tmp_path):
        before = os.umask(0o027)
        try:
            store.create(URL(str(tmp_path / "a"))).commit()
        finally:
            os.umask(before)

        assert 0o640 == modes.S_IMODE((tmp_path / "a").stat().st_mode)

    def test_a_link_stays_and_what_it_points_to_is_replaced(self, store, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "target").write_bytes(b"old")
        (tmp_path / "link").symlink_to("elsewhere/target")
        (tmp_path / "far").symlink_to("link")
        (tmp_path / "dangling").symlink_to("new/one")
        for name in ("link", "far", "dangling"):
            with pytest.raises(ZeroDivisionError), store.create(URL(str(tmp_path / name))) as sink:
                sink.write(bytes([len(name) // 0]))
            with store.create(URL(str(tmp_path / name))) as sink:
                sink.write(name.encode())

        assert all((tmp_path / name).is_symlink() for name in ("link", "far", "dangling"))
        assert b"far" == (tmp_path / "elsewhere" / "target").read_bytes()
        assert b"dangling" == (tmp_path / "new" / "one").read_bytes()
        assert ["target"] == os.listdir(tmp_path / "elsewhere")

    def test_a_relative_name_needs_no_folder(self, store, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with store.create(URL("a.tar")) as sink:
            sink.write(b"x")

        assert b"x" == store.read(URL("a.tar"), 0, 5)

    @pytest.mark.parametrize("name", [b"gr\xf6\xdfe.tar", "größe.tar".encode(), b"a\nb.tar", b"~x.tar", b"a?b#c%20.tar"])
    def test_names_are_kept_byte_for_byte(self, store, tmp_path, name):
        url = stores.join(str(tmp_path), os.fsdecode(name))
        with store.create(url) as sink:
            sink.write(name)

        assert [name] == os.listdir(os.fsencode(tmp_path))
        assert name == store.read(url, 0, 99)
        assert [url] == stores.expand(url)

    def test_a_sink_that_is_forgotten_leaves_nothing(self, store, tmp_path):
        sink = store.create(URL(str(tmp_path / "a.tar")))
        sink.write(b"x")
        del sink

        assert [] == os.listdir(tmp_path)

    def test_a_forked_child_does_not_drop_its_parents_file(self, store, tmp_path):
        code = f"""
import os, sys
from tarviz.stores import file
sink = file.store().create({str(tmp_path / "a.tar")!r})
sink.write(b"ab")
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
sink.write(b"c")
sink.commit()
"""
        subprocess.run([sys.executable, "-c", code], check=True)

        assert b"abc" == (tmp_path / "a.tar").read_bytes()

    def test_a_folder_of_many_files_is_not_listed_for_each_output(self, store, tmp_path, monkeypatch):
        """Else ten thousand outputs read the names of fifty million files."""
        for number in range(20):
            (tmp_path / f"{number}.txt").touch()
        now, listed, scandir = [0.0], [], os.scandir
        monkeypatch.setattr(file, "_MANY", 10)
        monkeypatch.setattr(file, "_listed", ("", 0.0, 0.0, []))
        monkeypatch.setattr(file.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(file.time, "thread_time", lambda: float(len(listed)))  # a listing takes a second
        monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
        for number in range(5):
            with store.create(URL(str(tmp_path / f"a-{number}"))) as sink:
                sink.write(b"a")
        assert 1 == len(listed)
        (tmp_path / ".b.tmp-0123456789ab").touch()
        now[0] = 50.0
        with store.create(URL(str(tmp_path / "b"))) as sink:
            sink.write(b"b")

        assert 2 == len(listed)
        assert ".b.tmp-0123456789ab" not in os.listdir(tmp_path)

    def test_names_near_one_that_is_missing_are_looked_for_when_somebody_reads_of_them(self, store, tmp_path, monkeypatch):
        (tmp_path / "train.tar").touch()
        monkeypatch.setattr(file, "nearest", None)
        with pytest.raises(NotFoundError) as caught:
            store.delete(URL(str(tmp_path / "trian.tar")))
        monkeypatch.undo()

        assert f"Hint: Nearest in {tmp_path}: train.tar." in str(caught.value)

    def test_leftovers_of_a_killed_process_go_with_the_next_write(self, store, tmp_path):
        code = f"""
import os
from tarviz.stores import file
sink = file.store().create({str(tmp_path / "a.tar")!r})
sink.write(b"x")
os.kill(os.getpid(), 9)
"""
        killed = subprocess.run([sys.executable, "-c", code], check=False)
        alive = store.create(URL(str(tmp_path / "a.tar")))

        assert -signal.SIGKILL == killed.returncode
        assert 1 == len(os.listdir(tmp_path))
        store.create(URL(str(tmp_path / "a.tar"))).commit()
        alive.write(b"last")
        alive.commit()
        assert ["a.tar"] == os.listdir(tmp_path)
        assert b"last" == (tmp_path / "a.tar").read_bytes()

    def test_a_temporary_file_is_no_object(self, store, tmp_path):
        with store.create(URL(str(tmp_path / "a.tar"))) as sink:
            sink.write(b"x")

            assert [] == list(store.list(URL(str(tmp_path))))

    def test_more_pieces_than_the_system_takes_at_once(self, store, tmp_path):
        url = URL(str(tmp_path / "a"))
        with store.create(url) as sink:
            sink.writev([b"%d," % number for number in range(100_000)])

        assert b"".join(b"%d," % number for number in range(100_000)) == store.read(url, 0, 10**7)


class TestPipes:
    def test_a_pipe_is_written_and_read_straight_through(self, store, tmp_path):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        url = URL(str(path))
        pieces = [bytes([number % 251]) * 1001 for number in range(3000)]

        def write():
            with store.create(url) as sink:
                sink.writev(pieces)

        thread = threading.Thread(target=write)
        thread.start()
        with store.open(url) as stream:
            found = buffer(4_000_000)
            count = stores.fill(stream, found)
        thread.join()

        assert stream.stat == stores.Stat(url, ranges=False)
        assert b"".join(pieces) == found[:count]
        assert ["pipe"] == os.listdir(tmp_path)

    @pytest.mark.parametrize("target", ["/dev/stdout", "/dev/fd/1"])
    def test_dev_stdout_goes_on_where_it_stands(self, tmp_path, target):
        code = f"""
import sys
from tarviz.stores import file
sys.stdout.write("before "); sys.stdout.flush()
with file.store().create({target!r}) as sink:
    sink.write(b"bytes")
"""
        with (tmp_path / "out").open("wb") as out:
            subprocess.run([sys.executable, "-c", code], check=True, stdout=out)

        assert b"before bytes" == (tmp_path / "out").read_bytes()

    def test_a_reader_that_goes_is_no_error_of_ours(self, store):
        code = "import sys; from tarviz.stores import file; file.store().create('/dev/stdout').write(bytes(10**6))"
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            child.stdout.close()

            assert b"BrokenPipeError" in child.stderr.read()


def test_a_stream_skips_in_a_pipe(store, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    thread = threading.Thread(target=lambda: path.write_bytes(bytes(range(200))))
    thread.start()
    with store.open(URL(str(path)), offset=100) as stream:
        found = buffer(200)

        assert 100 == stores.fill(stream, found)
        assert bytes(range(100, 200)) == found[:100]
    thread.join()


def test_a_large_read_is_not_cut_short(store, tmp_path):
    path = tmp_path / "a"
    with path.open("wb") as target:
        target.truncate(3 << 30)
    with store.open(URL(str(path)), offset=(3 << 30) - 10) as stream:
        assert 10 == stores.fill(stream, buffer(100))


class TestSend:
    """A range of an open file goes into a sink, through the kernel where it can."""

    @pytest.fixture
    def source(self, tmp_path):
        data = os.urandom(3_000_000)
        (tmp_path / "source").write_bytes(data)
        fd = os.open(tmp_path / "source", os.O_RDONLY)
        yield data, fd
        os.close(fd)

    def test_into_a_file(self, store, source, tmp_path):
        data, fd = source
        with store.create(URL(str(tmp_path / "out"))) as sink:
            sink.write(b"ab")

            assert 2_000_001 == sink.send(fd, 7, 2_000_001)

            sink.write(b"cd")

        assert b"ab" + data[7:2_000_008] + b"cd" == (tmp_path / "out").read_bytes()
        assert 2_000_005 == sink.commit().size

    def test_into_a_pipe(self, store, source):
        data, fd = source
        read, write = os.pipe()
        got = []

        def drain():
            with open(read, "rb") as end:
                got.append(end.read())

        reader = threading.Thread(target=drain)
        reader.start()
        with store.create(URL(f"/dev/fd/{write}")) as sink:
            sink.send(fd, 0, len(data))
            os.close(write)
        reader.join()

        assert [data] == got

    def test_says_when_the_source_is_shorter(self, store, source, tmp_path):
        data, fd = source
        with store.create(URL(str(tmp_path / "out"))) as sink:
            assert 10 == sink.send(fd, len(data) - 10, 500)
            assert 0 == sink.send(fd, len(data) + 10, 500)

    def test_into_memory(self, source):
        data, fd = source
        with stores.of("memory://sent").create(URL("memory://sent")) as sink:
            sink.send(fd, 1, len(data))

        assert data[1:] == stores.of("memory://sent").read(URL("memory://sent"), 0, len(data))


class TestOnDisk:
    """What is committed is there after the power fails: bytes before the name, and then the name."""

    def test_bytes_are_synced_before_the_rename_and_the_folder_after_it(self, store, tmp_path, monkeypatch):
        done = []

        def synced(fd, real=os.fsync):
            done.append("folder" if modes.S_ISDIR(os.fstat(fd).st_mode) else f"{os.fstat(fd).st_size} bytes")
            real(fd)

        def renamed(old, new, real=os.replace):
            done.append("rename")
            real(old, new)

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", renamed)
        with store.create(URL(str(tmp_path / "a.tar"))) as sink:
            sink.write(b"12345")

        assert ["5 bytes", "rename", "folder"] == done

    @each_case("name", ["st_size", "st_mtime_ns", "st_ino", "st_ctime_ns"])
    def test_a_version_is_of_size_times_and_inode(self, tmp_path, name):
        """A file that another was renamed over may have its size and, within a tick of the clock, its times."""

        class Status:
            def __init__(self, **changes):
                self.st_size, self.st_mtime_ns, self.st_ino, self.st_ctime_ns = 5, 6, 7, 8
                self.__dict__.update(changes)

        assert file.file_version(Status()) == file.file_version(Status())
        assert file.file_version(Status()) != file.file_version(Status(**{name: 9}))
        assert (name == "st_ctime_ns") == file.same_bytes(file.file_version(Status()), file.file_version(Status(**{name: 9})))


class TestShortCalls:
    """A signal, a pipe, more than 2 GiB at once: the system takes or gives less than it was asked for."""

    def test_what_is_taken_in_pieces_is_written_whole(self, store, tmp_path, monkeypatch):
        pieces = [b"a" * 10, b"b" * 20, b"c" * 5, b"d"]
        monkeypatch.setattr(os, "writev", lambda fd, given: os.write(fd, b"".join(given)[:7]))
        with store.create(URL(str(tmp_path / "a"))) as sink:
            sink.writev(pieces)

        assert 36 == sink.commit().size
        assert b"".join(pieces) == (tmp_path / "a").read_bytes()

    def test_what_is_given_in_pieces_is_read_whole(self, store, tmp_path, monkeypatch):
        (tmp_path / "a").write_bytes(bytes(range(100)))
        pread = os.pread
        monkeypatch.setattr(os, "pread", lambda fd, count, at: pread(fd, min(count, 7), at))

        assert bytes(range(20, 70)) == store.read(URL(str(tmp_path / "a")), 20, 50)
        assert bytes(range(90, 100)) == store.read(URL(str(tmp_path / "a")), 90, 50)
