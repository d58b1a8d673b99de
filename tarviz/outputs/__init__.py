"""Outputs: named, rotated, packed, written behind, renamed when complete, with a manifest beside them."""

from tarviz.formats.tar_header import TAR_END, tar_header, tar_member
from tarviz.outputs.inputs import Inputs
from tarviz.outputs.manifest import Written, manifest_url, proven, read_manifest, source_entry
from tarviz.outputs.names import Exists, Names, has_counter, refuse_existing
from tarviz.outputs.output import Output
from tarviz.outputs.outputs import Outputs, Run
from tarviz.outputs.packing import Packer, Packing, packer, packing

__all__ = [
    "TAR_END",
    "Exists",
    "Inputs",
    "Names",
    "Output",
    "Outputs",
    "Packer",
    "Packing",
    "Run",
    "Written",
    "has_counter",
    "manifest_url",
    "packer",
    "packing",
    "proven",
    "read_manifest",
    "refuse_existing",
    "source_entry",
    "tar_header",
    "tar_member",
]
