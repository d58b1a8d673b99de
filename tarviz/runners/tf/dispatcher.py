"""The dispatcher of a tf.data service, asked which workers it has; and whether these still answer."""

from __future__ import annotations

import functools
import socket
from contextlib import closing
from typing import Any

from tarviz.model.errors import UsageError

_ANSWER = 10.0  # seconds that a server has to answer
_BEGIN = "tf.data.experimental.service.DispatchServer begins one; address= is 'grpc://host:port'."


class Dispatcher:
    """The dispatcher at `grpc://host:port`; `UsageError` where nobody answers there, whom TensorFlow itself goes on asking for ever.

    >>> Dispatcher("localhost:5000")
    Traceback (most recent call last):
    tarviz.model.errors.UsageError: E_USAGE: address='localhost:5000' is not the 'grpc://host:port' of a dispatcher of tf.data service. \
Hint: tf.data.experimental.service.DispatchServer begins one; address= is 'grpc://host:port'.
    """

    def __init__(self, address: str | None) -> None:
        place = (address or "").removeprefix("grpc://")
        host, _, port = place.rpartition(":")
        if not (address or "").startswith("grpc://") or not host or not port.isdigit():
            raise UsageError(f"address={address!r} is not the 'grpc://host:port' of a dispatcher of tf.data service.", hint=_BEGIN)
        self.address = place
        if (why := silent(place)) is not None:
            raise UsageError(f"there is no tf.data service at {address}: {why}.", hint=_BEGIN)

    def workers(self) -> list[str]:
        """The addresses of the workers that ever registered and were not given up yet.

        Source: GetWorkers in tensorflow/core/data/service/dispatcher.proto.
        """
        import grpc

        with closing(grpc.insecure_channel(self.address)) as channel:
            ask = channel.unary_unary("/tensorflow.data.DispatcherService/GetWorkers", response_deserializer=_answer().FromString)
            return [worker.address for worker in ask(b"", timeout=_ANSWER).workers]


def silent(address: str) -> str | None:
    """Why nobody answers at `host:port`; None where somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER).close()
    except (OSError, OverflowError, ValueError) as error:
        return str(error)
    return None


@functools.cache
def _answer() -> Any:
    """The class of the dispatcher's answer: TensorFlow has no Python for it."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    text, message = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
    one, many = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL, descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    file = descriptor_pb2.FileDescriptorProto(name="tarviz/dispatcher.proto", package="tarviz")
    file.message_type.add(name="Worker").field.add(name="address", number=1, type=text, label=one)
    file.message_type.add(name="Workers").field.add(name="workers", number=1, type=message, label=many, type_name=".tarviz.Worker")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tarviz.Workers"))
