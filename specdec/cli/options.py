"""What can be asked on the command line, and help that teaches what it means. Imports no NumPy."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import NoReturn

from specdec.bench.plan import Scope
from specdec.cli import bench_options
from specdec.cli.setting_options import add_settings, chosen_settings
from specdec.cli.values import lookahead, positive
from specdec.config import LIMITS, SamplingParams, SpeculativeConfig
from specdec.errors import ConfigError
from specdec.settings import Settings

DEFAULTS = SamplingParams()
ON_THE_PAGE = ("bring",)  # settings that mean nothing to the API alone


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and leave with status 2."""
        print(f"{self.prog}: {message.rstrip('.')}; see {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments of one command, checked; SystemExit(2) after a sentence where they cannot be meant."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.command == "generate":
        options.params, options.speculation = _settings(options.parser, options)
    if options.command == "bench":
        options.scope = _scope(options.parser, options)
    if options.command == "serve":
        _check_settings(options.parser, options)
    return options


def build_parser() -> Parser:
    """The whole command line."""
    parser = Parser(prog="python -m specdec", description="Speculative decoding from scratch in NumPy.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    generate = commands.add_parser(
        "generate",
        help="continue a prompt, and show which tokens were drafted",
        description="Continue a prompt. A draft proposes a few tokens, the target checks them all in one pass and "
        "keeps those it agrees with: nobody can tell the text from what the target says alone, and it comes sooner.",
    )
    for add in (_add_models, _add_prompt, _add_speculation, _add_sampling, _add_output):
        add(generate)
    generate.set_defaults(parser=generate)
    _add_serve(commands)
    models = commands.add_parser(
        "models", help="list the models that are known", description="List the models that can be named."
    )
    models.add_argument("--json", action="store_true", help="print a JSON array in place of the table")
    fetch = commands.add_parser(
        "fetch", help="download a model", description="Download a model, where it is not on this machine yet."
    )
    fetch.add_argument(
        "name", help="a name from `python -m specdec models`, or ORGANISATION/REPOSITORY on the Hugging Face Hub"
    )
    bench = commands.add_parser(
        "bench",
        help="measure speed, beside plain decoding in the same run",
        description="Measure how fast decoding is. Plain decoding takes turns with every other way, and speed-ups are "
        "against the faster of its two paths. Needs `pip install '.[bench]'`.",
    )
    bench_options.add_options(bench)
    bench.set_defaults(parser=bench)
    commands.add_parser(
        "train",
        help="train models like the bundled ones",
        description="Train models like the bundled ones. A command line of its own: `python -m specdec train --help`.",
    )
    return parser


def _add_serve(commands: "argparse._SubParsersAction[Parser]") -> None:
    serve = commands.add_parser(
        "serve",
        help="answer over HTTP, as OpenAI's API does",
        description="Answer over HTTP: OpenAI's completions and chat completions, and `/generate`, which tells every "
        "round. docs/api.md says what it understands.",
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument(
        "--port", type=int, default=8000, metavar="N", help="port to listen on, 0 for a free one (default: %(default)s)"
    )
    serve.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="MODEL",
        help="offer this model too: a name, folder or .gguf file; may be given several times",
    )
    add_settings(serve, but=ON_THE_PAGE)
    serve.set_defaults(parser=serve)


def _add_models(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "models",
        "A name from `python -m specdec models`, ORGANISATION/REPOSITORY on the Hugging Face Hub, a folder or a .gguf.",
    )
    group.add_argument("--target", metavar="MODEL", help="the model whose text you get (default: the bundled target)")
    group.add_argument(
        "--draft",
        metavar="MODEL",
        help="what proposes tokens: a smaller model with the target's vocabulary, `ngram` (repeats what the text "
        "said before; needs no model) or `none` (plain decoding). Default: the bundled draft where its vocabulary "
        "is the target's, else ngram",
    )
    group.add_argument(
        "--threads", type=positive, metavar="N", help="cores for the arithmetic (default: all this process may use)"
    )


def _add_prompt(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("prompt")
    source = group.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", metavar="TEXT", help="text to continue; `-` reads it from standard input")
    source.add_argument("--prompt-file", metavar="FILE", help="read the prompt from a UTF-8 file")
    group.add_argument(
        "--chat",
        action="store_true",
        help="hand the prompt over as a user's message, in the chat template of the target (instruct models)",
    )


def _add_speculation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "speculation",
        "None of this changes the distribution of the text (--no-exact: up to near-ties), only how fast it comes.",
    )
    group.add_argument(
        "-k",
        dest="num_speculative_tokens",
        type=lookahead,
        metavar="K",
        help=f"tokens drafted per round, 0 to {LIMITS.max_speculative_tokens}, or `auto`: measure, and take the "
        "fastest (default: the drafter's own)",
    )
    group.add_argument(
        "--acceptance",
        choices=("rejection", "match"),
        default="rejection",
        help="how drafts are judged. rejection: kept with probability min(1, p/q), most accepted; match: kept while "
        "equal to the target's own draw, so that a seed gives the same text with any draft (default: %(default)s)",
    )
    group.add_argument(
        "--no-exact",
        dest="exact",
        action="store_false",
        help="do not keep logits equal, bit for bit, to those of plain decoding; where two tokens are nearly tied "
        "the text may then differ",
    )


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("choosing tokens", "Left alone, the likeliest token is taken each time (greedy).")
    for name, metavar, text in (
        ("temperature", "T", "0 is greedy, 1 the model's own distribution, more is bolder"),
        ("top-k", "N", "only the N likeliest tokens; 0 is off"),
        ("top-p", "P", "only the likeliest tokens that make up probability P together; 1 is off"),
        ("min-p", "P", "only tokens at least P times as likely as the likeliest; 0 is off"),
        ("repetition-penalty", "X", "above 1: avoid tokens of prompt and text; 1 is off"),
        ("frequency-penalty", "X", "above 0: avoid tokens the more, the more often the text has them; 0 is off"),
        ("presence-penalty", "X", "above 0: avoid tokens that the text has; 0 is off"),
    ):
        default = getattr(DEFAULTS, name.replace("-", "_"))
        help_text = f"{text} (default: {default:g})"
        group.add_argument(f"--{name}", type=type(default), default=default, metavar=metavar, help=help_text)
    group.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="same seed and settings, same text; with -k auto only where greedy or with --acceptance match "
        "(default: a new one each time)",
    )
    _add_ending(parser)


def _add_ending(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where to end")
    group.add_argument(
        "--max-new-tokens",
        dest="max_tokens",
        type=int,
        default=DEFAULTS.max_tokens,
        metavar="N",
        help="at most N tokens (default: %(default)s)",
    )
    group.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text; may be given several times"
    )
    group.add_argument("--ignore-eos", action="store_true", help="go on where the model would end")


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "output",
        "On a terminal accepted tokens are green, rejected ones red and struck through, the target's corrections "
        "yellow and underlined, its bonus tokens cyan and bold. Elsewhere, or with NO_COLOR set, the output is the "
        "text and nothing else. Figures go to standard error.",
    )
    group.add_argument("--json", action="store_true", help="print the whole run as one JSON object, once it is over")


def _settings(parser: Parser, options: argparse.Namespace) -> tuple[SamplingParams, SpeculativeConfig]:
    """What `generate`'s options say, as the engine's own settings."""
    options.stop = tuple(options.stop)
    given = vars(options)
    try:
        params = SamplingParams(
            **{spec.name: given[spec.name] for spec in fields(SamplingParams) if spec.name in given}
        )
        return params, SpeculativeConfig(options.num_speculative_tokens, options.acceptance, options.exact)
    except ConfigError as error:
        parser.error(str(error))


def _check_settings(parser: Parser, options: argparse.Namespace) -> None:
    """Refuse what `serve`'s options cannot mean, whatever the environment says."""
    try:
        Settings.from_environment({}, options=chosen_settings(options))
    except ConfigError as error:
        parser.error(str(error))


def _scope(parser: Parser, options: argparse.Namespace) -> Scope:
    """What `bench`'s options say."""
    try:
        return bench_options.scope(options)
    except ConfigError as error:
        parser.error(str(error))
