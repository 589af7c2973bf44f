"""Whether the demo is ready for Hugging Face Spaces, found out without them.

    python scripts/hosting.py resolve   # pip finds the exact set of packages that Spaces would install
    python scripts/hosting.py run       # install it, and run the page as Spaces does (minutes; wants root)

`run` takes the files that `docs/hosting.md` uploads and nothing else, a fresh virtual environment, an ordinary user, a
code folder nobody can write to, two cores, 16 GB, and an environment with nothing in it but what Spaces sets; once
with a home folder and once with none. A browser and a `gradio_client` then use the page. PYTHON=/usr/bin/python3.12
chooses the Python, which the ordinary user must be able to read.
"""

import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from huggingface_hub import metadata_load
from huggingface_hub.utils import filter_repo_objects

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "hosting.md"
USER = 1000  # as on Spaces; it needs no entry in /etc/passwd
PORT = 17860
MEMORY = 16 << 30
RESOLVE_S, START_S = 300, 120
CLIENT = """
import sys
from gradio_client import Client
client = Client(sys.argv[1], verbose=False)
job = client.submit(prompt="Once upon a time", seed=1, api_name="/generate")
job.result(timeout=120)
events = [sent for sent in job.outputs() if isinstance(sent, str)][-1]
assert '"error"' not in events and events.count('"round"') > 1, events[-500:]
"""


def front_matter() -> dict[str, Any]:
    """What README.md tells Spaces."""
    return dict(metadata_load(ROOT / "README.md") or {})


def build_set() -> list[str]:
    """What a build on Spaces hands to pip."""
    version = front_matter()["sdk_version"]
    asked = [f"gradio[oauth,mcp]=={version}", "uvicorn>=0.14.0", "websockets>=10.4", "spaces"]
    return ["-r", str(ROOT / "requirements.txt"), *asked]


def resolve() -> None:
    """Let pip choose the whole set for the Python of the Space, from scratch, and install nothing."""
    version = front_matter()["python_version"]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--only-binary=:all:"]
    command += ["--python-version", version, "--target", tempfile.gettempdir(), "--retries", "1", *build_set()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_S, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        unreached = "(from versions: none)" in done.stderr
        why = (
            "the package index cannot be reached, or lacks a package"
            if unreached
            else "the packages do not go together"
        )
        raise SystemExit("\n".join([f"Spaces could not build this: {why}", *errors]))
    found = re.search(r"Would install (.*)", done.stdout)
    packages = found[1].split() if found else []
    print(f"{len(packages)} packages for Python {version}:", *(name for name in packages if name.startswith("gradio")))


def upload_command() -> list[str]:
    """The command of the guide that deploys the demo, as a shell would split it."""
    found = re.search(r"^(hf upload .*?[^\\])$", GUIDE.read_text(encoding="utf-8"), re.S | re.M)
    return shlex.split(found[1].replace("\\\n", " ")) if found else []


def uploaded() -> list[str]:
    """The files of this folder that the command would upload."""
    command = upload_command()
    given = {
        name: [value for option, value in pairwise(command) if option == f"--{name}"] for name in ("include", "exclude")
    }
    files = (str(path.relative_to(ROOT)) for path in sorted(ROOT.rglob("*")) if path.is_file())
    return list(filter_repo_objects(files, allow_patterns=given["include"], ignore_patterns=given["exclude"]))


def run() -> None:
    """The page as Spaces would run it, and two visitors."""
    with tempfile.TemporaryDirectory(prefix="specdec-space-") as name:
        place = Path(name)
        place.chmod(0o755)
        code, python = _code(place / "app"), _environment(place / "venv")
        before = _listing(code)
        for home in (_folder(place / "home"), Path("/nonexistent")):
            with _served(code, python, home, _folder(place / f"tmp-{home.name}")) as address:
                subprocess.run([python, "-c", CLIENT, address], cwd=place, check=True)
                _browse(address)
        if _listing(code) != before:
            raise SystemExit("something was written into the code folder")
    print("everything works as on Spaces")


def _code(folder: Path) -> Path:
    for file in uploaded():
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


def _environment(folder: Path) -> str:
    subprocess.run([os.environ.get("PYTHON", sys.executable), "-m", "venv", folder], check=True)
    python = str(folder / "bin" / "python")
    began = time.monotonic()
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *build_set()], check=True)
    print(f"installed in {time.monotonic() - began:.0f} s")
    return python


def _folder(path: Path) -> Path:
    """A folder that belongs to the ordinary user."""
    path.mkdir()
    if os.getuid() == 0:
        os.chown(path, USER, USER)
    return path


def _listing(folder: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime for path in [folder, *folder.rglob("*")]}


@contextmanager
def _served(code: Path, python: str, home: Path, temporary: Path) -> Iterator[str]:
    """The address of `python app.py`, run as described above."""
    variables = {
        "PATH": f"{Path(python).parent}:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "SYSTEM": "spaces",
        "SPACE_ID": "somebody/specdec",
        "CPU_CORES": "2",
        "MEMORY": "16Gi",
        "GRADIO_SERVER_PORT": str(PORT),
    }
    who = {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
    began, address = time.monotonic(), f"http://127.0.0.1:{PORT}/"
    with subprocess.Popen(["python", "app.py"], cwd=code, env=variables, preexec_fn=_confine, **who) as process:
        try:
            while not _answers(address):
                if process.poll() is not None or time.monotonic() - began > START_S:
                    raise SystemExit("the page does not open")
                time.sleep(0.05)
            print(f"home {home}: open after {time.monotonic() - began:.1f} s")
            yield address
            print(f"home {home}: {_peak_mb(process.pid):,} MB at most")
        finally:
            process.terminate()
            process.wait(20)


def _confine() -> None:
    """Two cores and 16 GB; files it makes are its own."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.umask(0o077)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _peak_mb(process: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) // 1000 if found else 0


def _browse(address: str) -> None:
    """Open the page, press Generate, see a story to its end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(address)
        page.wait_for_selector(".sd[data-state=idle]")
        page.get_by_role("button", name="Generate").click()
        page.wait_for_selector(".sd[data-state=done]")
        print(f"a visitor saw {page.locator('.sd-tokens .sd-token').count()} tokens")
        browser.close()


if __name__ == "__main__":
    actions = {"resolve": resolve, "run": run}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        raise SystemExit(__doc__)
    actions[sys.argv[1]]()
