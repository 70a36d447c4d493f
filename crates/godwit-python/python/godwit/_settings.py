"""What arguments of several functions mean."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Union

from ._errors import ConfigurationError

#: Whom to believe: True for the system's authorities, the path or the PEM text of others, or False for anybody.
Verify = Union[bool, str, "os.PathLike[str]", bytes]

#: PEM text, or the path of a file with it.
Pem = Union[bytes, str, "os.PathLike[str]"]

_VERSIONS = {"h3": "h3", "http/3": "h3", "h2": "h2", "http/2": "h2", "h1": "http/1.1", "http/1.1": "http/1.1"}

_CHOICES = {
    frozenset({"h3"}): "h3",
    frozenset({"h2"}): "h2",
    frozenset({"http/1.1"}): "http/1.1",
    frozenset({"h2", "http/1.1"}): "tcp",
    frozenset({"h3", "h2", "http/1.1"}): "auto",
}


def versions(names: Iterable[str] | None) -> str | None:
    """The choice of versions that these names stand for."""
    if names is None:
        return None
    if isinstance(names, str):
        names = [names]
    listed = list(names)
    choice = _CHOICES.get(frozenset(_VERSIONS.get(name.lower(), "") for name in listed))
    if choice is None:
        raise ConfigurationError(
            f"http_versions: expected one of h3, h2 and http/1.1, the last two, or all of them, got {listed!r}"
        )
    return choice


def pem_text(given: object) -> bytes | None:
    """What was given, if that is PEM text itself."""
    if isinstance(given, bytes):
        return given
    if isinstance(given, str) and given.lstrip().startswith("-----BEGIN "):
        return given.encode("ascii", "replace")
    return None


def pem(what: str, given: Pem) -> bytes:
    """PEM text that was given, or stands in the file that was named."""
    text = pem_text(given)
    if text is not None:
        return text
    try:
        with open(given, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigurationError(
            f"{what}: cannot read {os.fspath(given)!r}: {error.strerror}; give PEM text or the path of a file with it"
        ) from error
