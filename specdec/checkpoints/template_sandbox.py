"""Jinja for chat templates, which come with a checkpoint and are code of strangers.

What a template may do is what transformers lets it do: Jinja's immutable sandbox, `tojson`, `raise_exception`,
`strftime_now`, `{% generation %}`, loop controls. It is a closed world: the filters, methods and functions named here,
and a budget that each rendering pays from (`template_budget`), so that an endless loop, a doubling text and a huge
padding end in one error: mostly within a second, at the latest after DEADLINE_S.

Not bounded: the time Jinja takes to compile 256 KiB of template; one comparison or sort of what fits the budget.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import wraps
from types import CodeType
from typing import Any, cast

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.environment import Template
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from specdec.checkpoints.template_budget import Budget, BudgetError
from specdec.errors import LoadError, RequestError

_FILTERS = """
abs capitalize count d default dictsort e escape first float int items last length list lower map max min reject
rejectattr reverse round safe select selectattr sort string title trim unique upper
"""
_TEXT_METHODS = """
capitalize count endswith find index isalnum isalpha isdecimal isdigit islower isnumeric isspace istitle isupper join
lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit rstrip split splitlines
startswith strip swapcase title upper
"""
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(_TEXT_METHODS.split()),
    dict: frozenset({"get", "items", "keys", "values"}),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
}
_STRFTIME = re.compile(r"(?:[^%]|%-?[A-Za-z%])*")


class RefusalError(TemplateError):
    """Raised by the template itself: these messages do not suit it."""


def compile_template(source: str) -> CodeType:
    """Python code of a template; LoadError where it is not one."""
    try:
        return Sandbox().compile(source)
    except Exception as error:
        raise LoadError(f"the chat template cannot be compiled: {_first_line(error)}") from error


def render(code: CodeType, variables: Mapping[str, Any]) -> str:
    """The prompt; RequestError where the template refuses the messages, LoadError where it fails or runs away."""
    sandbox = Sandbox()
    try:
        return Template.from_code(sandbox, code, sandbox.globals).render(variables)
    except RefusalError as error:
        raise RequestError(f"the chat template refuses these messages: {_first_line(error)}") from error
    except Exception as error:
        raise LoadError(f"the chat template failed: {_first_line(error)}") from error


class Generation(Extension):
    """`{% generation %} … {% endgeneration %}` marks an assistant's words for training; here it only groups them."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The statements inside."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Sandbox(ImmutableSandboxedEnvironment):
    """One rendering: an environment with a budget of its own."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        self.budget = budget = Budget()
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols], finalize=self.text
        )
        self.turn, self.weigh = budget.turn, budget.weigh
        own = {"tojson": budget.to_json, "indent": budget.indent, "replace": budget.replace, "join": self.join}
        known = {name: self.filters[name] for name in _FILTERS.split()} | own
        self.filters = {name: self._metered(function) for name, function in known.items()}
        self.tests["in"] = self._is_in
        self.globals = {"range": self.globals["range"], "namespace": Namespace, "dict": self._dict}
        self.globals |= {"raise_exception": _refuse, "strftime_now": _now}

    def text(self, value: Any) -> str:
        """What is printed of a value."""
        return "" if isinstance(value, Undefined) else self.budget.text(value)

    def concat(self, parts: Iterable[str]) -> str:
        """How Jinja puts a block together."""
        return self.budget.concat(parts)

    def joined(self, *parts: Any) -> str:
        """The operator ~."""
        return self.concat(map(self.text, parts))

    def join(self, value: Iterable[Any], d: str = "", attribute: Any = None) -> str:
        """The filter `join`, and the method."""
        items = [self.text(item if attribute is None else self.getattr(item, attribute)) for item in value]
        return self.concat([part for item in items for part in (d, item)][1:])

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operator whose result may be much larger than its operands."""
        self.budget.arithmetic(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> None:
        """Not supported: a width in a format makes a text of any length."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """The methods named above; of Jinja's own objects, what its sandbox allows."""
        if isinstance(obj, LoopContext | Namespace | Macro):
            return super().is_safe_attribute(obj, attr, value)
        return attr in _METHODS.get(type(obj), frozenset())

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Reaching for anything else ends the rendering; Jinja would print nothing and go on."""
        raise SecurityError(f"access to attribute {attribute!r} of {type(obj).__name__!r} object is unsafe")

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """A call; the two methods that put texts together go through the budget."""
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, str) and obj.__name__ == "replace":
            return self.budget.replace(owner, *args)
        if isinstance(owner, str) and obj.__name__ == "join":
            return self.join(args[0], owner)
        return super().call(context, obj, *args, **kwargs)

    def _metered(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that pays for what it is given and for what it makes."""

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            self.budget.spend(1 + sum(len(arg) for arg in args if isinstance(arg, str | list | tuple | dict | range)))
            return self.weigh(function(*args, **kwargs))

        return run

    def _is_in(self, value: Any, container: Any) -> bool:
        self.weigh(container)
        return value in container

    def _dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.weigh(dict(*args, **kwargs))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return cast("nodes.Template", _Metering().visit(super()._parse(source, name, filename)))


class _Metering(NodeTransformer):
    """Rewrites a template so that loop turns, macro calls, the operator ~ and whatever makes a value pay.

    What a macro was called with beyond its parameters (`varargs`, `kwargs`) is such a value too. Blocks are refused:
    they serve inheritance, which there is none of, and can be called by name, unmetered.
    """

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        """The node, inner ones first."""
        self.generic_visit(node)
        if isinstance(node, nodes.Block):
            raise TemplateSyntaxError("blocks are not supported", node.lineno)
        if isinstance(node, nodes.For | nodes.Macro):
            node.body.insert(0, nodes.ExprStmt(_call("turn", [])).set_lineno(node.lineno))
        if isinstance(node, nodes.Concat):
            return _call("joined", node.nodes)
        if isinstance(node, nodes.List | nodes.Dict | nodes.Tuple | nodes.Name) and _makes_value(node):
            return _call("weigh", [node])
        return node


def _makes_value(node: nodes.List | nodes.Dict | nodes.Tuple | nodes.Name) -> bool:
    if isinstance(node, nodes.Tuple | nodes.Name) and node.ctx != "load":
        return False
    return not isinstance(node, nodes.Name) or node.name in ("varargs", "kwargs")


def _call(method: str, arguments: list[nodes.Expr]) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(method), arguments, [], None, None)


def _refuse(message: str) -> str:
    raise RefusalError(str(message))


def _now(form: str) -> str:
    if len(form) > 100 or not _STRFTIME.fullmatch(form):
        raise BudgetError(f"strftime_now({form[:40]!r}) is not supported")
    return datetime.now().strftime(form)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
