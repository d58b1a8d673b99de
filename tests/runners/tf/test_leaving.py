"""A process that ends while TensorFlow still reads ahead."""

import subprocess
import sys
import threading

import pytest

from tarviz.runners.tf.leaving import Calls

SCRIPT = """
import sys
from tarviz import Pipeline
dataset = Pipeline(sys.argv[1], sys.argv[2]).tf(batch=int(sys.argv[3]) or None, graph={"None": None, "True": True}[sys.argv[4]])
kept = iter(dataset)  # a global name: it is there until Python takes its modules apart
next(kept)
print("read")
"""


class TestExit:
    @pytest.mark.programs
    @pytest.mark.parametrize(
        ("chain", "batch", "graph"),
        [
            ("decode(jpg)|resize(jpg, (64, 64))|decode(cls)", 2, "None"),
            ("decode(jpg)|resize(jpg, (64, 64))|decode(cls)", 2, "True"),
            ("", 0, "None"),
        ],
    )
    def test_an_iterator_that_is_left_does_not_keep_python(self, photos, chain, batch, graph):
        argv = [sys.executable, "-c", SCRIPT, str(photos), chain, str(batch), graph]
        ended = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
        assert (ended.returncode, ended.stdout) == (0, "read\n"), ended.stderr
        assert "Traceback" not in ended.stderr


class TestCalls:
    def test_the_end_waits_for_a_call(self):
        calls, go, begun, order = Calls(), threading.Event(), threading.Event(), []

        @calls.count
        def work():
            begun.set()
            go.wait(60)
            order.append("call")

        def end():
            calls.end()
            order.append("end")

        worker, ending = threading.Thread(target=work), threading.Thread(target=end)
        worker.start()
        assert begun.wait(60)
        ending.start()
        ending.join(0.3)
        assert ending.is_alive()
        go.set()
        worker.join(60)
        ending.join(60)
        assert order == ["call", "end"]

    def test_a_call_that_fails_is_over(self):
        calls = Calls()
        with pytest.raises(ZeroDivisionError):
            calls.count(lambda: 1 / 0)()
        assert (calls.made, calls.under_way) == (1, 0)
