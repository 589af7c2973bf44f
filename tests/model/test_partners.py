"""Partners: a product that is shared between processes has the bits it has alone, whatever becomes of a partner."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from specdec.model import kernels, partners
from specdec.model.linear import Linear, lay_together
from specdec.model.partner_process import STARTING, STATE
from specdec.model.partners import Team
from specdec.model.workers import Workers

pytestmark = pytest.mark.skipif(
    not (hasattr(os, "memfd_create") and os.uname().machine == "x86_64"), reason="partners are for Linux on x86"
)
RNG = np.random.default_rng(3)
USUAL_PATIENCE_S = partners.PATIENCE_S
SHAPES = {"wide": (1030, 300), "deep": (160, 1536), "head": (5000, 64)}
HOLDER = """
import time
import numpy as np
from specdec.model import partners
from specdec.model.linear import Linear, lay_together
from specdec.model.workers import Workers
layer = Linear(np.ones((1024, 300), np.float32), None, Workers(2))
lay_together([layer])
print(partners.team._partners[0]._process.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    """A team of this test's own, in the place of the process's, for which more patience is had than for others: here
    other tests keep the cores busy."""
    own = Team()
    own._possible = True
    monkeypatch.setattr(partners, "team", own)
    monkeypatch.setattr(partners, "PATIENCE_S", 10.0)
    monkeypatch.setattr(partners, "LONGEST_PAUSE_S", 0.1)
    yield own
    own.dismiss()


def layers(shape: str = "wide", bias: bool = False) -> tuple[Linear, Linear]:
    """The same layer twice: shared with a partner that has started, and alone."""
    weight = RNG.standard_normal(SHAPES[shape], dtype=np.float32)
    shift = RNG.standard_normal(len(weight), dtype=np.float32) if bias else None
    shared, alone = (Linear(weight.copy(), shift, Workers(threads)) for threads in (2, 1))
    lay_together([shared])
    eventually(lambda: partners.team._partners[0]._mailbox.numbers[STATE] != STARTING, 0.01)
    return shared, alone


def window(layer: Linear, rows: int) -> np.ndarray:
    return RNG.standard_normal((rows, layer.inputs), dtype=np.float32)


def eventually(condition: Callable[[], bool], pause_s: float = 0.0) -> None:
    """Ask again and again: without a pause where a partner has to stay awake."""
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it never came true"
        time.sleep(pause_s)


def panels_done_here(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> int:
    """How many panels this process multiplies meanwhile."""
    seen, product = [], kernels.product

    def counting(x: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
        seen.append(len(matrix))
        product(x, matrix, out)

    with monkeypatch.context() as patch:
        patch.setattr(kernels, "product", counting)
        act()
    return sum(seen)


def pid(team: Team) -> int:
    return team._partners[0]._process.pid


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def alive(process: int) -> bool:
    """Whether there is such a process, and not merely its name in the table."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("row_by_row", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_shared_products_have_the_bits_they_have_alone(
    team: Team, shape: str, row_by_row: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of rows, until the partner's first product of the shape is proved, and then a few times more."""
    monkeypatch.setattr(kernels, "row_by_row", row_by_row)
    shared, alone = layers(shape, bias=True)

    def same(rows: int) -> bool:
        x = window(shared, rows)
        assert np.array_equal(shared(x), alone(x))
        return (shared.width, shared.inputs, rows, row_by_row) in team._proved

    for rows in range(1, 17):
        eventually(lambda: same(rows))  # noqa: B023
        assert all(same(rows) for _ in range(3))


def test_a_partner_does_its_share(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is awake and proved, this process multiplies half of the panels."""
    shared, _ = layers()
    x, count = window(shared, 5), len(shared.panels)
    eventually(lambda: panels_done_here(monkeypatch, lambda: shared(x)) == count // 2)
    assert len(team._proved) == 1


def test_one_that_is_late_is_not_waited_for(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped by the system: its share is done here, what it hands in later spoils nothing, and it helps again."""
    shared, alone = layers()
    x = window(shared, 3)
    shared(x)
    os.kill(pid(team), signal.SIGSTOP)
    began = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(partners, "PATIENCE_S", USUAL_PATIENCE_S)
        for _ in range(300):
            x = window(shared, 3)
            assert np.array_equal(shared(x), alone(x))
    assert time.monotonic() - began < 10
    os.kill(pid(team), signal.SIGCONT)

    def helped() -> bool:
        x = window(shared, 3)
        assert np.array_equal(shared(x), alone(x))
        return panels_done_here(monkeypatch, lambda: shared(x)) == len(shared.panels) // 2

    eventually(helped)


def test_one_that_dies_is_forgotten(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed: products go on without it, and the next model has another."""
    shared, alone = layers()
    monkeypatch.setattr(partners, "PATIENCE_S", USUAL_PATIENCE_S)
    os.kill(pid(team), signal.SIGKILL)
    eventually(lambda: team._partners[0].gone, 0.01)

    def forgotten() -> bool:
        x = window(shared, 5)
        assert np.array_equal(shared(x), alone(x))
        return not team._partners

    eventually(forgotten)
    again, alone = layers("deep")
    x = window(again, 4)
    assert np.array_equal(again(x), alone(x))
    assert len(team._partners) == 1


def test_other_bits_end_it(team: Team, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Where a process' products differ from ours, ours count, and partners are sent away for good."""
    shared, alone = layers()
    product = kernels.product

    def otherwise(x: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
        product(x, matrix, out)
        out *= np.float32(1.0000002)

    def dismissed() -> bool:
        x = window(shared, 2)
        assert np.array_equal(shared(x), alone(x))
        return not team._partners

    monkeypatch.setattr(kernels, "product", otherwise)
    eventually(dismissed)
    assert "other bits" in caplog.text
    assert dismissed()
    assert team.arena(100, 2) is None


def test_it_sleeps_when_nothing_is_asked(team: Team) -> None:
    """In half a second without a product it takes no time of a core, and wakes for the next one."""
    shared, alone = layers()
    shared(window(shared, 2))
    time.sleep(0.1)

    def ticks() -> int:
        return sum(map(int, Path(f"/proc/{pid(team)}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))

    before = ticks()
    time.sleep(0.5)
    assert ticks() - before <= 1
    x = window(shared, 2)
    assert np.array_equal(shared(x), alone(x))


def test_many_threads_may_multiply_at_once(team: Team) -> None:
    """One has the partner's help, the others go on as before; all are right."""
    shared, alone = layers()
    wrong = []

    def act(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for rows in (1, 2, 5, 9) * 20:
            x = rng.standard_normal((rows, shared.inputs), dtype=np.float32)
            if not np.array_equal(shared(x), alone(x)):
                wrong.append((seed, rows))

    threads = [Thread(target=act, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(team._partners) == 1


def test_a_model_that_is_gone_takes_no_memory_there(team: Team) -> None:
    """Nor an open file here."""
    before = open_files()
    keeper, _ = layers("deep")
    shared, _ = layers()
    shared(window(shared, 2))
    maps = Path(f"/proc/{pid(team)}/maps")
    assert maps.read_text().count("specdec-weights") == 2
    del shared
    eventually(lambda: maps.read_text().count("specdec-weights") == 1, 0.01)
    x = window(keeper, 2)
    assert keeper(x).shape == (2, 160)
    del keeper
    eventually(lambda: maps.read_text().count("specdec-weights") == 0, 0.01)
    team.dismiss()
    assert open_files() <= before


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.usefixtures("team")
def test_a_forked_process_leaves_its_parents_partner_alone() -> None:
    """The child multiplies by itself, to the same bits, and the parent goes on as before."""
    shared, alone = layers()
    x = window(shared, 5)
    expected = shared(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(shared(x), expected) and not partners.team._partners else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(shared(x), alone(x))


def test_partners_leave_with_their_process() -> None:
    """Killed, so that it cannot say good-bye: its partner ends by itself."""
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        partner = int(holder.stdout.readline())
        assert alive(partner)
        holder.kill()
        eventually(lambda: not alive(partner), 0.01)


def test_small_models_and_single_threads_have_none(team: Team) -> None:
    """No process is started for what would not gain by it."""
    for rows, threads in ((100, 2), (1030, 1)):
        layer = Linear(np.ones((rows, 300), np.float32), None, Workers(threads))
        lay_together([layer])
        assert layer(window(layer, 2)).shape == (2, rows)
    assert team._partners == []
