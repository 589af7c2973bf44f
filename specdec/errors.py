"""Every error specdec raises on purpose, so that a caller can catch one kind, or all of them.

    SpecdecError
    ├── ConfigError            a setting, or a checkpoint's config.json, is out of range
    ├── RequestError           this prompt or these parameters cannot be served
    │   └── ContextError       ... because they do not fit the model's context
    ├── LoadError              a checkpoint cannot be read: names the file and, where known, the tensor
    │   ├── NotFoundError      no such model, folder or file; or it is out of reach
    │   ├── UnsupportedError   a sound checkpoint of a kind this engine does not run
    │   └── MemoryLimitError   it would not fit into memory
    ├── VocabularyError        draft and target do not speak the same tokens
    ├── CacheError             a KV cache was asked for something impossible
    ├── NumericalError         NaN or no possible token where numbers were expected
    ├── MissingExtraError      an optional package is not installed: says the pip command
    └── BusyError              the service has no room for another request now

Each message is one sentence that a user can act on.
"""


class SpecdecError(Exception):
    """Base of all errors raised on purpose."""


class ConfigError(SpecdecError, ValueError):
    """A setting is out of range; the message names the setting, its value and the limit."""


class RequestError(SpecdecError, ValueError):
    """A prompt or its parameters cannot be served."""


class ContextError(RequestError):
    """Prompt and answer do not fit the model's context; the message names both numbers."""


class LoadError(SpecdecError):
    """A checkpoint cannot be read; the message names the file and, where known, the tensor."""


class NotFoundError(LoadError):
    """No such model, folder or file, or it is out of reach."""


class UnsupportedError(LoadError):
    """A sound checkpoint whose architecture, data type or quantisation this engine does not run."""


class MemoryLimitError(LoadError):
    """The weights would not fit into memory; the message has the numbers."""


class VocabularyError(SpecdecError, ValueError):
    """Draft and target do not share a vocabulary."""


class CacheError(SpecdecError):
    """A KV cache was asked to hold more than its capacity, or to be cut to a negative length."""


class NumericalError(SpecdecError, ArithmeticError):
    """A model returned NaN, or left no token possible."""


class MissingExtraError(SpecdecError, ImportError):
    """An optional package is missing."""

    def __init__(self, package: str, extra: str) -> None:
        command = f"pip install '.[{extra}]'"
        super().__init__(f"{package} is not installed: run {command} in the project's folder")


class BusyError(SpecdecError):
    """No room for another request now."""
