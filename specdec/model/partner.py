"""A partner as it is seen by the process that asks it, and the memory that both share."""

import mmap
import os
import socket
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from specdec.model import kernels
from specdec.model.operations import F32
from specdec.model.partner_process import (
    ASLEEP,
    AWAKE,
    DONE,
    JOB,
    MAILBOX_BYTES,
    RESULT_FLOATS,
    STATE,
    WAKING,
    WINDOW_FLOATS,
    Mailbox,
)

LOOKS = 250  # at the numbers between two looks at the clock
ROOT = Path(__file__).parents[2]
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[3]); from specdec.model.partner_process import serve; "
    "serve(int(sys.argv[1]), int(sys.argv[2]))"
)

_numbers = count()


class Arena:
    """Memory for the weights of a model, which partners can map."""

    def __init__(self, floats: int) -> None:
        self.number = next(_numbers)
        self.file = os.memfd_create("specdec-weights")
        weakref.finalize(self, os.close, self.file)
        os.ftruncate(self.file, 4 * floats)
        self.array: F32 = np.frombuffer(mmap.mmap(self.file, 4 * floats), np.float32)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a matrix lies: its first number in an arena, and its panels' shape."""

    arena: Arena
    offset: int
    width: int
    inputs: int

    def fits(self, rows: int, panels: int) -> bool:
        """Whether a window and its result have room in a partner's mailbox."""
        return rows * self.inputs <= WINDOW_FLOATS and rows * panels * self.width <= RESULT_FLOATS


class Partner:
    """One such process, as it is seen from here."""

    def __init__(self) -> None:
        mailbox_file = os.memfd_create("specdec-partner")
        os.ftruncate(mailbox_file, MAILBOX_BYTES)
        self._mailbox = Mailbox(mailbox_file)
        self._job = 0
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        files = (theirs.fileno(), mailbox_file)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, *map(str, files), str(ROOT)],
            pass_fds=files,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for whoever asked for the product
        )
        theirs.close()
        os.close(mailbox_file)
        self._channel.setblocking(False)

    @property
    def awake(self) -> bool:
        """Whether it is looking for a job; one that is asleep is woken, which takes a while."""
        self._wake()
        return self._mailbox.numbers[STATE] == AWAKE

    @property
    def free(self) -> bool:
        """Whether it has done all that it was asked for."""
        return self._mailbox.numbers[DONE] == self._job

    @property
    def gone(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def tell(self, message: str, *files: int) -> None:
        """Send a message, without waiting: one that is gone, or has not listened for long, does not hear it."""
        with suppress(OSError):
            socket.send_fds(self._channel, [message.encode()], files)

    def ask(self, place: Place, part: slice, x: F32) -> None:
        """Have it multiply the window x, [M, K], with some panels."""
        numbers, rows = self._mailbox.numbers, len(x)
        self._mailbox.window(rows, place.inputs)[:] = x
        offset = place.offset + part.start * place.width * place.inputs
        for index, number in enumerate(
            (place.arena.number, offset, part.stop - part.start, place.width, place.inputs, rows, kernels.row_by_row),
            JOB + 1,
        ):
            numbers[index] = number
        self._job += 1
        numbers[JOB] = self._job

    def answered(self, seconds: float) -> bool:
        """Wait so long at most; whether it is done."""
        numbers, job, until = self._mailbox.numbers, self._job, time.perf_counter() + seconds
        while True:
            for _ in range(LOOKS):
                if numbers[DONE] == job:
                    return True
            if time.perf_counter() > until:
                return False
            self._wake()
            os.sched_yield()

    def result(self, panels: int, rows: int, width: int) -> F32:
        """What it has worked out, (P, M, W); overwritten by its next job."""
        return self._mailbox.result(panels, rows, width)

    def dismiss(self) -> None:
        """Send it away and wait until it is gone."""
        self._channel.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wake(self) -> None:
        if self._mailbox.numbers[STATE] == ASLEEP:
            self._mailbox.numbers[STATE] = WAKING
            self.tell("wake")
