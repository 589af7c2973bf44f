"""Writes the parts of the documentation that come from the program itself, so that they cannot be untrue.

    python scripts/docs.py

`docs/cli.md` is made from the command line's own help, the table in docs/telemetry.md from the names of metrics, that
in docs/hosting.md from the settings; in README.md the block behind the Python example becomes what that example prints.
Tests fail where any is stale.
"""

import argparse
import io
import re
import sys
from contextlib import redirect_stdout
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from specdec.cli.options import build_parser  # noqa: E402
from specdec.cli.setting_options import shown  # noqa: E402
from specdec.settings import PREFIX, PUBLIC, Settings  # noqa: E402
from specdec.telemetry.names import METRICS, RUN, Metric  # noqa: E402

CLI_PAGE = ROOT / "docs" / "cli.md"
TELEMETRY_PAGE = ROOT / "docs" / "telemetry.md"
HOSTING_PAGE = ROOT / "docs" / "hosting.md"
SPACES_OWN = PUBLIC | {"model_memory_mb": "half of `MEMORY`", "bring": "off", "threads": "`CPU_CORES`"}
README = ROOT / "README.md"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```", re.DOTALL)
MADE = re.compile(r"(<!-- made by scripts/docs.py.*?-->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = """# The command line

Made by `python scripts/docs.py` from the program's own help.

| status | meaning |
| --- | --- |
| 0 | done |
| 1 | it failed, after one sentence on standard error |
| 2 | the arguments cannot be meant |
| 130 | Ctrl-C |
| 141 | nobody reads the output any more |
"""


def cli_page() -> str:
    """docs/cli.md as it should be."""
    page = "\n".join([HEAD, *map(_command, commands())])
    return re.sub(r"\n{3,}", "\n\n", page).rstrip() + "\n"


def commands() -> list[argparse.ArgumentParser]:
    """The parser of each command."""
    actions = build_parser()._actions
    found = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
    return list(found.choices.values())


def _command(parser: argparse.ArgumentParser) -> str:
    return "\n".join([f"## `{parser.prog}`\n", f"{parser.description}\n", *map(_group, parser._action_groups)])


def _group(group: argparse._ArgumentGroup) -> str:
    actions = [action for action in group._group_actions if not isinstance(action, argparse._HelpAction)]
    if not actions:
        return ""
    named = group.title not in ("options", "positional arguments")
    title = f"**{group.title}** {group.description or ''}".rstrip() + "\n" if named else ""
    rows = [f"| `{_call(action)}` | {_help(action)} |" for action in actions]
    return "\n".join([title, "| option | meaning |", "| --- | --- |", *rows, ""])


def _call(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.dest).upper()
    value = "{" + ",".join(action.choices) + "}" if action.choices else action.metavar
    return " ".join([", ".join(action.option_strings), *([str(value)] if action.nargs != 0 and value else [])])


def _help(action: argparse.Action) -> str:
    return ((action.help or "") % vars(action)).replace("|", "\\|")


def telemetry_page() -> str:
    """docs/telemetry.md as it should be."""
    table = "\n".join(
        ["| metric, in Prometheus | unit | says | labels |", "| --- | --- | --- | --- |", *map(_metric, METRICS)]
    )
    of_runs = f"*run*: {', '.join(f'`{name}`' for name in RUN)}. Dots of labels are underscores in Prometheus."
    page = TELEMETRY_PAGE.read_text(encoding="utf-8")
    return MADE.sub(lambda found: f"{found[1]}\n{table}\n\n{of_runs}\n\n{found[2]}", page)


def _metric(metric: Metric) -> str:
    own = [f"`{name}`" for name in metric.attributes if name not in RUN]
    labels = ", ".join((["*run*"] if metric.attributes[: len(RUN)] == RUN else []) + own)
    unit = metric.unit.strip("{}") or "—"
    return f"| {metric.kind} `{metric.name}`, `{metric.prometheus}` | {unit} | {metric.says} | {labels} |"


def hosting_page() -> str:
    """docs/hosting.md as it should be."""
    head = ["| variable | meaning | otherwise | on a Space |", "| --- | --- | --- | --- |"]
    table = "\n".join([*head, *map(_setting, fields(Settings))])
    page = HOSTING_PAGE.read_text(encoding="utf-8")
    return MADE.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page)


def _setting(spec: "Field[Any]") -> str:
    meaning = spec.metadata["meaning"].replace("|", "\\|")
    there = SPACES_OWN.get(spec.name, spec.default)
    return f"| `{PREFIX}{spec.name.upper()}` | {meaning} | {shown(spec.default)} | {shown(there)} |"


def example() -> tuple[str, str]:
    """The README's Python example, and what the README says it prints."""
    found = EXAMPLE.search(README.read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("README.md has no python block with a text block behind it")
    return found["code"], found["output"]


def example_output() -> str:
    """What the example really prints."""
    with redirect_stdout(io.StringIO()) as said:
        exec(compile(example()[0], str(README), "exec"), {})
    return said.getvalue()


def main() -> None:
    """Write all."""
    CLI_PAGE.write_text(cli_page(), encoding="utf-8")
    TELEMETRY_PAGE.write_text(telemetry_page(), encoding="utf-8")
    HOSTING_PAGE.write_text(hosting_page(), encoding="utf-8")
    text, (code, old) = README.read_text(encoding="utf-8"), example()
    block = f"```python\n{code}```\n\n```text\n"
    README.write_text(text.replace(f"{block}{old}```", f"{block}{example_output()}```"), encoding="utf-8")


if __name__ == "__main__":
    main()
