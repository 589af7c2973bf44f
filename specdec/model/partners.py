"""Other processes that do their share of each large product of a window, because waking a thread takes as long as it.

To wake a thread, and to hand the interpreter's lock to it, takes nearly as long on a virtual machine as half of a large
matrix takes to be read. A partner is a process that waits by looking (`partner_process`), and needs no lock. There is
one for each core but the first, for all models; it sleeps as soon as nothing was asked of it for two milliseconds.

Where a partner is late, because the machine is busy, its share is done here as well, to the same bits, and threads take
over for a while: the longer, the sooner it is late again. So they do where there can be no partner (no Linux, no x86,
one core).
"""

import atexit
import logging
import os
import platform
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import numpy as np

from specdec.model import kernels
from specdec.model.operations import F32
from specdec.model.partner import Arena, Partner, Place
from specdec.model.workers import even_slices

LEAST_BYTES = 400_000  # a smaller matrix is multiplied before a partner would have begun
MOST = 3  # partners: a few cores use up what memory can deliver
PATIENCE, PATIENCE_S = 2.0, 0.0001  # a partner may take so many times as long as we did, and so many seconds more
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 1.0  # without partners, where one was late
STEADY = 100  # products in time between two late ones: the machine is not busy, this happens

log = logging.getLogger(__name__)


class Team:
    """The partners of this process. Many threads may use it; one at a time gets its help."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._partners: list[Partner] = []
        self._arenas: weakref.WeakSet[Arena] = weakref.WeakSet()
        self._proved: set[tuple[int, ...]] = set()
        self._pause_s = SHORTEST_PAUSE_S
        self._paused_until = 0.0
        self._in_time = 0  # products since a partner was late
        self._possible = _possible()

    def arena(self, floats: int, threads: int) -> Arena | None:
        """Memory that partners know of, for a model of so many threads; None where there can be no partners."""
        with self._lock:
            try:
                if threads < 2 or not self._possible:
                    return None
                arena = Arena(floats)
                self._enlist(min(threads - 1, len(os.sched_getaffinity(0)) - 1, MOST))
            except OSError as error:
                log.info("no partners for large products: %s", error)
                self._possible = False
                return None
            self._arenas.add(arena)
            weakref.finalize(arena, self._tell_all, f"drop {arena.number}")
            self._tell_all(f"map {arena.number}", arena.file)
            return arena

    def multiply(self, product: Callable[[slice], object], place: Place, x: F32, out: F32, threads: int) -> bool:
        """Fill out, (P, M, W), by `product` on some panels and by partners on others; False where there are none.

        `threads` counts the calling one.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if time.monotonic() < self._paused_until or not place.fits(len(x), len(out)):
                return False
            partners = [partner for partner in self._partners[: threads - 1] if partner.awake]
            if partners and all(partner.free for partner in partners):
                self._share(product, place, x, out, partners)
                return True
            self._forget_the_gone()
            if partners:
                self._late()
            return False
        finally:
            self._lock.release()

    def _share(
        self, product: Callable[[slice], object], place: Place, x: F32, out: F32, partners: list[Partner]
    ) -> None:
        own, *others = even_slices(len(out), min(len(out), 1 + len(partners)))
        asked = list(zip(partners, others, strict=False))
        for partner, part in asked:
            partner.ask(place, part, x)
        began = time.perf_counter()
        product(own)
        patience = PATIENCE * (time.perf_counter() - began) + PATIENCE_S
        for partner, part in asked:
            if partner.answered(patience):
                self._take(partner, part, product, place, out)
                self._in_time += 1
            else:
                product(part)
                self._late()

    def _late(self) -> None:
        """Do without partners for a while."""
        self._pause_s = SHORTEST_PAUSE_S if self._in_time > STEADY else min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._paused_until = time.monotonic() + self._pause_s
        self._in_time = 0

    def _take(self, partner: Partner, part: slice, product: Callable[[slice], object], place: Place, out: F32) -> None:
        """A partner's result; the first one of each shape is worked out here, too, and has to be the same."""
        result, shape = partner.result(*out[part].shape), (place.width, place.inputs, out.shape[1], kernels.row_by_row)
        if shape in self._proved:
            out[part] = result
            return
        product(part)
        if np.array_equal(out[part], result):
            self._proved.add(shape)
        else:
            log.warning("products of another process have other bits on this machine: large ones go to threads")
            self.dismiss()

    def dismiss(self) -> None:
        """Send all partners away, for good."""
        self._possible = False
        while self._partners:
            self._partners.pop().dismiss()

    def _forget_the_gone(self) -> None:
        for partner in [partner for partner in self._partners if partner.gone]:
            self._partners.remove(partner)
            partner.dismiss()

    def _enlist(self, wanted: int) -> None:
        self._forget_the_gone()
        while len(self._partners) < wanted:
            partner = Partner()
            self._partners.append(partner)
            for arena in self._arenas:
                partner.tell(f"map {arena.number}", arena.file)

    def _tell_all(self, message: str, *files: int) -> None:
        for partner in self._partners:
            partner.tell(message, *files)


def _possible() -> bool:
    """Whether memory can be shared here, what is written to it is seen in order, and each core is ours to use."""
    return (
        sys.platform == "linux"
        and hasattr(os, "memfd_create")
        and platform.machine() == "x86_64"
        and bool(sys.executable)
        and not _rationed()
    )


def _rationed() -> bool:
    """Whether a container may use less time than its cores have: looking would use up what working needs."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return quota != "max" and int(quota) < int(period) * len(os.sched_getaffinity(0))
    except (OSError, ValueError):
        return False


team = Team()
atexit.register(lambda: team.dismiss())


def _start_anew() -> None:
    """A forked process has no partners: those of its parent are not its own."""
    global team
    team = Team()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
