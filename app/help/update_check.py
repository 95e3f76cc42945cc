"""Whether there is a newer version: asked of the Python Package Index when the person asks, and at no other time.

What is sent is what any download of a web page sends; nothing about this computer, its models or its conversations.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.language import tr
from engine import __version__

if TYPE_CHECKING:
    import ssl

ADDRESS = "https://pypi.org/pypi/draftscope/json"
PAGE = "https://pypi.org/project/draftscope/"
TIMEOUT_S = 10
MOST_BYTES = 16 << 20
HEADERS = {"User-Agent": "Draftscope", "Accept": "application/json"}  # not translated: for the server
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9})*")
_VERSION = re.compile(rf"{_NUMBERS.pattern}[\w.+!-]{{0,20}}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking; `newer` is the version to get, if there is one."""

    sentence: str
    newer: str = ""


def check(address: str = ADDRESS, current: str = __version__) -> Answer:
    """Ask once; what goes wrong becomes the sentence. Blocks for some seconds: not for the window's thread."""
    host = urlsplit(address).netloc
    try:
        status, body = _fetch(address)
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror or error
        sentence = tr(
            "{host} could not be asked ({why}); are you online? This is version {current}.",
            host=host,
            why=why,
            current=current,
        )
        return Answer(sentence)
    if status == 404:
        unknown = tr(
            "{host} knows no published version of Draftscope. This is version {current}.", host=host, current=current
        )
        return Answer(unknown)
    latest = _version(body) if status == 200 else ""
    if not latest:
        odd = tr(
            "{host} gave no answer that says a version (status {status}); try again later.", host=host, status=status
        )
        return Answer(odd)
    if order(latest) > order(current):
        found = tr("Version {latest} is published; this is version {current}.", latest=latest, current=current)
        return Answer(found, latest)
    return Answer(tr("This is version {current}; no newer one is published.", current=current))


def order(version: str) -> tuple[tuple[int, ...], bool]:
    """What versions are compared by: their numbers, and a release after its own candidates (1.0rc1 before 1.0)."""
    numbers = _NUMBERS.match(version)
    parts = [int(part) for part in numbers.group().split(".")] if numbers else []
    while parts and parts[-1] == 0:  # 1.0 is 1
        parts.pop()
    return tuple(parts), numbers is not None and numbers.group() == version


def _version(body: bytes) -> str:
    """The version that an answer names; empty if it is no such answer."""
    try:
        version = json.loads(body)["info"]["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else ""


def _fetch(address: str) -> tuple[int, bytes]:
    """Status and body of a web page."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    request = Request(address, headers=HEADERS)
    try:
        with urlopen(request, timeout=TIMEOUT_S, context=_trust()) as answer:
            return answer.status, answer.read(MOST_BYTES)
    except HTTPError as error:
        return error.code, b""
    except HTTPException as error:
        raise OSError(tr("{error}: no web server answers there", error=type(error).__name__)) from None


def _trust() -> ssl.SSLContext:
    """The system's certificates and, since a frozen program may not find those, the ones that come along."""
    import ssl

    context = ssl.create_default_context()
    with suppress(ImportError, OSError):
        import certifi

        context.load_verify_locations(certifi.where())
    return context
