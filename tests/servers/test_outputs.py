"""The contract of outputs, held by everything here that writes one."""

from __future__ import annotations

import gzip
import tarfile
from dataclasses import dataclass

import numpy as np

from tarviz.dialects.webdataset import ShardWriter, TarWriter
from tarviz.formats.tar_header import tar_header
from tarviz.model.types import Buffer
from tarviz.outputs import Names, Outputs
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.tar_output import TarOutput
from tests.servers.outputs import OutputTests


@dataclass
class Raw:
    """One record without a frame, in memory that the caller owns."""

    data: Buffer

    @property
    def size(self):
        return np.array([len(self.data)])

    def buffers(self, first=0, last=None):
        return [self.data]


class TestOutput(OutputTests):
    def begin(self, path):
        return Outputs(Names(str(path)))

    def put(self, output, data):
        output.add(Raw(data))

    def settle(self, output):
        output.settle()

    def content(self, path):
        return path.read_bytes()


class TestPackedOutput(TestOutput):
    def begin(self, path):
        return Outputs(Names(str(path)), compression="gzip")

    def content(self, path):
        return gzip.decompress(path.read_bytes())


class _Tars(OutputTests):
    def content(self, path):
        with tarfile.open(path) as tar:
            return b"".join(tar.extractfile(member).read() for member in tar)


class TestTarOutput(_Tars):
    def begin(self, path):
        return TarOutput(str(path), inputs=Inputs(()))

    def put(self, output, data):
        output.write([tar_header(b"a.bin", len(data)), data, bytes(-len(data) % 512)])

    def settle(self, output):
        output.settle()


class TestPackedTarOutput(TestTarOutput):
    name = "one.tar.gz"


class TestTarWriter(_Tars):
    def begin(self, path):
        return TarWriter(path)

    def put(self, output, data):
        output.number = getattr(output, "number", 0) + 1
        output.write({"__key__": f"{output.number:04d}", "bin": data})


class TestShardWriter(TestTarWriter):
    name = "0.tar"

    def begin(self, path):
        return ShardWriter(str(path.with_name("{shard}.tar")))
