"""The byte-level alphabet of GPT-2 style vocabularies: every byte has a printable character that stands for it.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), §2.2, and its published encoder:
bytes that are printable in Latin-1 stand for themselves, the other 68 take the code points from U+0100 on, in order.
"""

from __future__ import annotations


def _alphabet() -> dict[str, int]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(0x100 + index): byte for index, byte in enumerate(others)})
    return table


BYTE_OF = _alphabet()
"""The byte that each character of a vocabulary entry stands for."""


def to_bytes(entry: str) -> bytes:
    """The bytes that a vocabulary entry stands for. A character outside the alphabet stands for its own UTF-8 bytes."""
    try:
        return bytes(map(BYTE_OF.__getitem__, entry))
    except KeyError:
        return b"".join(bytes((BYTE_OF[c],)) if c in BYTE_OF else c.encode("utf-8", "replace") for c in entry)
