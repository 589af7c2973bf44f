"""A process that multiplies windows with its share of a matrix, and is wide awake while one product follows another.

What it needs lies in memory that both processes map: weights in arenas, and for each partner a mailbox of its own with
numbers that say what to do, room for the window and room for the result. A job is announced by a number that grows;
its result is there when the other number has grown as well. Nobody locks: on x86 others see what was written in the
order in which it was. A partner's state is written by itself, but while it is asleep by whoever wakes it.
"""

import mmap
import os
import socket
import time

import numpy as np

from specdec.model import kernels
from specdec.model.operations import F32

# A mailbox's numbers: the first eight are written by whoever asks, in one cache line; the partner's two have their own.
JOB, ARENA, OFFSET, PANELS, WIDTH, INPUTS, ROWS, ROW_BY_ROW = range(8)
DONE, STATE = 8, 16
STARTING, AWAKE, ASLEEP, WAKING = range(4)

HEAD_BYTES = 4096
WINDOW_FLOATS = kernels.MAX_WINDOW * 32_768
RESULT_FLOATS = kernels.MAX_WINDOW * 262_144
MAILBOX_BYTES = HEAD_BYTES + 4 * (WINDOW_FLOATS + RESULT_FLOATS)  # none of it takes memory before it is written to

SPIN_S = 0.002  # how long a partner stays awake for the next job
LOOKS = 500  # at the numbers between two looks at the clock


class Mailbox:
    """Memory shared with one partner, mapped: numbers, the window, the result."""

    def __init__(self, file: int) -> None:
        memory = mmap.mmap(file, MAILBOX_BYTES)
        self.numbers = memoryview(memory)[:HEAD_BYTES].cast("q")
        self._window: F32 = np.frombuffer(memory, np.float32, WINDOW_FLOATS, HEAD_BYTES)
        self._result: F32 = np.frombuffer(memory, np.float32, RESULT_FLOATS, HEAD_BYTES + 4 * WINDOW_FLOATS)

    def window(self, rows: int, inputs: int) -> F32:
        """(M, K)"""
        return self._window[: rows * inputs].reshape(rows, inputs)

    def result(self, panels: int, rows: int, width: int) -> F32:
        """(P, M, W)"""
        return self._result[: panels * rows * width].reshape(panels, rows, width)


def serve(channel_file: int, mailbox_file: int) -> None:
    """Do one job after the other until nobody is at the other end of the channel."""
    channel = socket.socket(fileno=channel_file)
    mailbox = Mailbox(mailbox_file)
    numbers, done = mailbox.numbers, 0
    arenas: dict[int, F32] = {}
    while _awaited(numbers, done) or _told(channel, arenas, numbers):
        job = numbers[JOB]
        if job == done:
            continue
        while numbers[ARENA] not in arenas:
            if not _told(channel, arenas, numbers):
                return
        _multiply(arenas[numbers[ARENA]], mailbox)
        numbers[DONE] = done = job


def _multiply(weights: F32, mailbox: Mailbox) -> None:
    """The job that a mailbox's numbers tell of. Nothing of the arena is kept, so that it can be freed."""
    offset, panels, width, inputs, rows, form = mailbox.numbers[OFFSET : ROW_BY_ROW + 1]
    matrix = weights[offset : offset + panels * width * inputs].reshape(panels, width, inputs)
    kernels.row_by_row = bool(form)
    kernels.product(mailbox.window(rows, inputs), matrix.transpose(0, 2, 1), mailbox.result(panels, rows, width))


def _awaited(numbers: memoryview, done: int) -> bool:
    """Whether there is another job within a little while."""
    numbers[STATE] = AWAKE
    until = time.monotonic() + SPIN_S
    while time.monotonic() < until:
        for _ in range(LOOKS):
            if numbers[JOB] != done:
                return True
    return False


def _told(channel: socket.socket, arenas: dict[int, F32], numbers: memoryview) -> bool:
    """Sleep until a message comes: (what, number of an arena); False at the end of the channel."""
    numbers[STATE] = ASLEEP
    message, files, _, _ = socket.recv_fds(channel, 64, 1)
    what, _, arena = message.decode().partition(" ")
    if what == "map":
        memory = mmap.mmap(files[0], 0, prot=mmap.PROT_READ)
        os.close(files[0])
        arenas[int(arena)] = np.frombuffer(memory, np.float32)
    elif what == "drop":
        arenas.pop(int(arena), None)
    return bool(message)
