"""Why a question is not answered."""

from collections.abc import Sequence
from typing import Any


class QuestionError(Exception):
    """A question is not answered. `code` is for programs, `message` for people.

    `parameter` is the one that is wrong, and `allowed` is what it may be instead.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 400,
        parameter: str = "",
        allowed: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.parameter = parameter
        self.allowed = allowed

    @property
    def content(self) -> dict[str, Any]:
        """Returns the error as JSON has it."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.parameter:
            error["parameter"] = self.parameter
        if self.allowed:
            error["allowed"] = [*self.allowed]
        return {"error": error}


def bad_parameter(name: str, message: str, *, allowed: Sequence[str] = ()) -> QuestionError:
    return QuestionError("bad_parameter", message, parameter=name, allowed=allowed)


def unknown_question(names: Sequence[str]) -> QuestionError:
    message = "There is no such question."
    return QuestionError("unknown_question", message, status=404, allowed=names)


def not_allowed(message: str) -> QuestionError:
    return QuestionError("not_allowed", message, status=403)


def not_found(name: str, message: str) -> QuestionError:
    return QuestionError("not_found", message, status=404, parameter=name)


def not_known(message: str) -> QuestionError:
    return QuestionError("not_known", message)
