"""A run learns, can be killed anywhere, and goes on as if it had not been."""

from pathlib import Path

import pytest
import torch

from specdec.errors import ConfigError
from specdec.training.loop import Trainer, learning_rate
from specdec.training.runs import RunFolder
from tests.training.toys import lessons, recipe, task


class KilledError(Exception):
    """Stands for a power cut."""


class KilledTrainer(Trainer):
    """Dies at the beginning of step 7, before anything of it was done."""

    def _step(self) -> float:
        if self.progress.step == 7:
            raise KilledError
        return super()._step()


def test_an_interrupted_run_ends_like_any_other(tmp_path: Path) -> None:
    """Killed at step 7 with a checkpoint of step 7 and resumed, parameters and log equal the uninterrupted run's."""
    how = recipe(dropout=0.1, checkpoint_seconds=0.0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    Trainer(expected := task(whole, how)).run()
    with pytest.raises(KilledError):
        KilledTrainer(task(broken, how)).run()
    torch.manual_seed(12345)  # the interrupted process's random numbers are gone
    Trainer(resumed := task(broken, how)).run()
    for name, tensor in expected.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[name]), name
    assert losses(whole) == losses(broken)


def test_steps_behind_the_checkpoint_are_repeated(tmp_path: Path) -> None:
    """Killed long after its only checkpoint, a run repeats the lost steps, and its log holds each of them once."""
    how = recipe(evaluate_every=2, checkpoint_seconds=3600.0)
    broken = tmp_path / "broken"
    with pytest.raises(KilledError):
        KilledTrainer(task(broken, how)).run()
    Trainer(resumed := task(broken, how)).run()
    Trainer(expected := task(tmp_path / "whole", how)).run()
    assert [entry["step"] for entry in RunFolder(broken).read_log()] == [2, 4, 6, 8, 10, 12]
    for name, tensor in expected.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[name]), name


def test_half_a_line_in_the_log_is_no_obstacle(tmp_path: Path) -> None:
    """A run that died while writing its log resumes, and the torn line is gone."""
    with pytest.raises(KilledError):
        KilledTrainer(task(tmp_path, recipe(checkpoint_seconds=0.0))).run()
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"step": 8, "tok')
    Trainer(task(tmp_path, recipe(checkpoint_seconds=0.0))).run()
    assert [entry["step"] for entry in RunFolder(tmp_path).read_log()] == [4, 8, 12]


def losses(folder: Path) -> list[tuple[float, ...]]:
    """Step, training loss and held-out loss of each line of the log."""
    return [(entry["step"], entry["training_loss"], entry["loss"]) for entry in RunFolder(folder).read_log()]


def test_loss_falls(tmp_path: Path) -> None:
    """Sixty steps on the toy corpus halve the held-out loss, and the best weights are kept."""
    Trainer(task(tmp_path, recipe(steps=60, evaluate_every=10))).run()
    log = RunFolder(tmp_path).read_log()
    assert log[-1]["loss"] < 0.5 * log[0]["loss"]
    record = RunFolder(tmp_path).read_record()
    assert record["finished"]
    assert record["best"]["loss"] == min(entry["loss"] for entry in log)
    assert record["tokens"] == 60 * 4 * 32


def test_a_finished_run_does_nothing_more(tmp_path: Path) -> None:
    """The command of a finished run may be given again; it trains no further step."""
    Trainer(task(tmp_path, recipe())).run()
    assert Trainer(task(tmp_path, recipe())).run().step == 12


def test_a_draft_learns_to_be_accepted(tmp_path: Path) -> None:
    """Distilled from a trained target, a draft's expected acceptance on held-out text rises above 0.6."""
    target = task(tmp_path / "target", recipe(steps=60))
    Trainer(target).run()
    taught = lessons(tmp_path / "lessons", target.network.eval())
    how = recipe(steps=60, evaluate_every=20, seed=5)
    Trainer(task(tmp_path / "draft", how, teacher=target.network, taught=taught)).run()
    log = RunFolder(tmp_path / "draft").read_log()
    assert log[-1]["acceptance"] > max(0.6, log[0]["acceptance"])


def test_accumulation_changes_memory_not_the_gradient(tmp_path: Path) -> None:
    """A batch in four parts gives the parameters of a batch in one, within rounding."""
    Trainer(one := task(tmp_path / "one", recipe(steps=3))).run()
    Trainer(four := task(tmp_path / "four", recipe(steps=3, accumulate=4))).run()
    for name, tensor in one.network.state_dict().items():
        assert torch.allclose(tensor, four.network.state_dict()[name], atol=1e-3), name


def test_minutes_end_a_run(tmp_path: Path) -> None:
    """With a length in minutes the run ends soon after them."""
    progress = Trainer(task(tmp_path, recipe(steps=None, minutes=0.01))).run()
    assert 0.6 <= progress.seconds < 5
    assert progress.finished


def test_other_settings_do_not_resume(tmp_path: Path) -> None:
    """A folder that holds a run with another recipe is refused, by the recipe's name."""
    task(tmp_path, recipe())
    with pytest.raises(ConfigError, match="another recipe"):
        task(tmp_path, recipe(learning_rate=0.5))


def test_a_resumed_run_may_get_another_length(tmp_path: Path) -> None:
    """It ends at the new one, and what was meant before stays on record."""
    with pytest.raises(KilledError):
        KilledTrainer(task(tmp_path, recipe(checkpoint_seconds=0.0))).run()
    assert Trainer(task(tmp_path, recipe(checkpoint_seconds=0.0, steps=9))).run().step == 9
    assert RunFolder(tmp_path).settings()["lengths"] == [{"steps": 12, "until_step": 7}]


def test_learning_rate_warms_up_and_cools_down() -> None:
    """From 0 up to the peak at the end of the warm-up, then down to the final fraction, never below."""
    how = recipe(learning_rate=1.0, warmup_fraction=0.1, final_fraction=0.05)
    rates = [learning_rate(done / 100, how) for done in range(101)]
    assert rates[0] == 0 and rates[10] == max(rates) == 1.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[100] == learning_rate(1.5, how) == pytest.approx(0.05)


@pytest.mark.parametrize("length", [{}, {"steps": 3, "minutes": 1.0}])
def test_length_must_be_given_once(length: dict[str, float]) -> None:
    """No length, or two, is an error that names the three choices."""
    with pytest.raises(ConfigError, match="exactly one of steps, epochs, minutes"):
        recipe(**{"steps": None, **length})
