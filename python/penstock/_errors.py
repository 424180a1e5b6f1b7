"""Exceptions by kind: each is a `PenstockError` and the Python class beside it.

The engine's status codes are the one list; `from_status` is the way in.
"""

from __future__ import annotations


class PenstockError(Exception):
    """What every error of this package is.

    Example:
        >>> try:
        ...     ps.Dataset.range(3).batch(0)
        ... except ps.PenstockError as error:
        ...     print(type(error).__name__)
        InvalidArgumentError
    """

    code = 2


class CancelledError(PenstockError, RuntimeError):
    """What was asked for was given up, such as by closing an iterator."""

    code = 1


class UnknownError(PenstockError, RuntimeError):
    """An error of another kind, such as an exception of user code."""

    code = 2


class InvalidArgumentError(PenstockError, ValueError):
    """A value that cannot be right, whatever the state of anything else."""

    code = 3


class InvalidTypeError(InvalidArgumentError, TypeError):
    """Structures or dtypes that do not match: also a `TypeError`."""


class UnsupportedFunctionError(InvalidArgumentError):
    """A Python function that cannot be recorded as a native one."""

    # Whether it would not run as Python either.
    is_final = False


class DeadlineExceededError(PenstockError, TimeoutError):
    """It took too long."""

    code = 4


class NotFoundError(PenstockError, FileNotFoundError):
    """A file or another thing that must exist does not."""

    code = 5


class AlreadyExistsError(PenstockError, FileExistsError):
    """A thing that must not exist does."""

    code = 6


class PermissionDeniedError(PenstockError, PermissionError):
    """Not allowed."""

    code = 7


class ResourceExhaustedError(PenstockError, MemoryError):
    """Memory, or another budget, is not enough."""

    code = 8


class FailedPreconditionError(PenstockError, RuntimeError):
    """Not possible in the present state."""

    code = 9


class MissingPackageError(FailedPreconditionError, ImportError):
    """A package that this function needs is not installed."""


class AbortedError(PenstockError, RuntimeError):
    """Stopped by something that went on at the same time."""

    code = 10


class OutOfRangeError(PenstockError, IndexError):
    """An index, or a position, past the end."""

    code = 11


class UnimplementedError(PenstockError, NotImplementedError):
    """Not available in this version."""

    code = 12


class InternalError(PenstockError, RuntimeError):
    """An error in Penstock itself."""

    code = 13


class UnavailableError(PenstockError, ConnectionError):
    """Not reachable now; trying again may help."""

    code = 14


class EngineDiedError(UnavailableError):
    """The engine's process ended; the message has its last words."""


class DataLossError(PenstockError, OSError):
    """Damaged or missing data."""

    code = 15


class UnauthenticatedError(PenstockError, PermissionError):
    """No valid credentials."""

    code = 16


_BY_CODE: dict[int, type[PenstockError]] = {
    kind.code: kind
    for kind in (
        CancelledError,
        UnknownError,
        InvalidArgumentError,
        DeadlineExceededError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        ResourceExhaustedError,
        FailedPreconditionError,
        AbortedError,
        OutOfRangeError,
        UnimplementedError,
        InternalError,
        UnavailableError,
        DataLossError,
        UnauthenticatedError,
    )
}


def from_status(
    code: int, message: str, is_type_error: bool = False
) -> PenstockError:
    """The exception of a status that the engine gave."""
    if is_type_error:
        return InvalidTypeError(message)
    return _BY_CODE.get(code, UnknownError)(message)


def code_of(error: BaseException) -> int:
    """The status code under which user code's `error` travels."""
    if isinstance(error, PenstockError):
        return error.code
    for code, kinds in (
        (5, FileNotFoundError),
        (7, PermissionError),
        (8, MemoryError),
        (12, NotImplementedError),
        (3, (TypeError, ValueError)),
    ):
        if isinstance(error, kinds):
            return code
    return UnknownError.code
