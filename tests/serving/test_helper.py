"""Work for another thread, which is not waited for for ever."""

import subprocess
import sys
import threading
import time

import pytest

from specdec.serving.helper import Helper, TooLate
from tests.source_tree import ROOT


def test_a_call_gives_what_the_task_gives():
    """Its value, or its exception, from one thread that is used again."""
    helper = Helper()
    assert helper.call(lambda: 7, 10) == 7
    with pytest.raises(ZeroDivisionError):
        helper.call(lambda: 1 / 0, 10)
    assert helper.call(threading.get_ident, 10) == helper.call(threading.get_ident, 10) != threading.get_ident()


def test_a_call_that_is_too_late_is_the_only_one_until_it_is_back():
    """Others are refused at once meanwhile, and served afterwards, without its answer."""
    helper, back = Helper(), threading.Event()
    with pytest.raises(TooLate, match=r"no answer within 0\.05 s"):
        helper.call(lambda: back.wait(30), 0.05)
    began = time.monotonic()
    with pytest.raises(TooLate, match="has not come back"):
        helper.call(lambda: 1, 30)
    assert time.monotonic() - began < 5
    back.set()
    while helper.stuck:
        time.sleep(0.001)
    assert helper.call(lambda: 2, 10) == 2


def test_the_thread_ends_with_its_helper():
    """Nothing is left of one that nobody holds any more."""
    helper = Helper()
    thread = helper.call(threading.current_thread, 10)
    del helper
    thread.join(10)
    assert not thread.is_alive()


def test_a_call_that_never_returns_does_not_keep_a_process():
    """It leaves with 0 when it is done otherwise."""
    program = (
        "import threading\nfrom specdec.serving.helper import Helper, TooLate\n"
        "try:\n    Helper().call(threading.Event().wait, 0.1)\nexcept TooLate:\n    print('left')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "left\n")
