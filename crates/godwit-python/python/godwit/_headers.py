"""Headers: names in any case, several values for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Union

#: What headers may be given as.
HeadersLike = Union["Headers", Mapping[str, str], Iterable["tuple[str, str]"]]


class Headers(Mapping[str, str]):
    """A mapping that takes no notice of case, and joins several values of a name with commas.

    `get_list` has them apart (as `Set-Cookie` needs), `multi_items` all of them in their order.
    """

    __slots__ = ("_pairs",)

    def __init__(self, headers: HeadersLike | None = None) -> None:
        self._pairs: list[tuple[str, str]] = []
        if headers is not None:
            self._pairs.extend(_pairs_of(headers))

    @classmethod
    def _of_raw(cls, raw: Iterable[tuple[bytes, bytes]]) -> Headers:
        return cls((name.decode("ascii"), value.decode("latin-1")) for name, value in raw)

    @property
    def raw(self) -> list[tuple[bytes, bytes]]:
        """Names and values as they are sent."""
        return [(_encoded(name), _encoded(value)) for name, value in self._pairs]

    def get_list(self, name: str) -> list[str]:
        """All values of this name."""
        wanted = name.lower()
        return [value for known, value in self._pairs if known.lower() == wanted]

    def multi_items(self) -> list[tuple[str, str]]:
        """All names and values, as they came."""
        return list(self._pairs)

    def merged(self, others: HeadersLike | None) -> Headers:
        """These, with the others in place of those of the same name."""
        if others is None:
            return self
        new = _pairs_of(others)
        replaced = {name.lower() for name, _ in new}
        kept = [pair for pair in self._pairs if pair[0].lower() not in replaced]
        return Headers(kept + new)

    def __getitem__(self, name: str) -> str:
        values = self.get_list(name)
        if not values:
            raise KeyError(name)
        return ", ".join(values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.get_list(name))

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name, _ in self._pairs))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Headers({self._pairs!r})"


def _pairs_of(headers: HeadersLike) -> list[tuple[str, str]]:
    if isinstance(headers, Headers):
        return headers.multi_items()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(str(name), str(value)) for name, value in pairs]


def _encoded(text: str) -> bytes:
    """As HTTP has it; what does not fit goes as UTF-8, which servers take for bytes of their own choice."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8")
