"""Certificates for trying things out."""

from __future__ import annotations

from typing import NamedTuple

from .. import _godwit


class Certificate(NamedTuple):
    """Both in PEM."""

    certificate: str
    private_key: str


def self_signed_certificate(*names: str) -> Certificate:
    """A certificate for these names ("localhost" if there are none) that is its own authority: for tests.

    Clients believe it where it is what they `verify` with.
    """
    return Certificate(*_godwit.self_signed(list(names) or ["localhost"]))
