"""The Hugging Face hub by its own client: reaches the network, in a thread of its own, and only when asked.

The client is imported when the first question is asked. Where a token is needed, it is the one that the client finds:
in the environment (HF_TOKEN) or where `hf auth login` keeps it; the program itself keeps none. HF_ENDPOINT names
another hub.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from app.language import tr, trn
from app.library.hub.files import Hit, HubFile, Listing
from engine import __version__

if TYPE_CHECKING:
    from huggingface_hub import HfApi

USUAL_ENDPOINT = "https://huggingface.co"
TIMEOUT_S = 15
_PASSING = (408, 429, 500, 502, 503, 504)


class HubError(Exception):
    """Something did not work; the sentence says what, where and what to do. `passing`: trying again may help."""

    def __init__(self, sentence: str, *, passing: bool = False) -> None:
        super().__init__(sentence)
        self.passing = passing


def endpoint() -> str:
    """The address of the hub."""
    return (os.environ.get("HF_ENDPOINT") or USUAL_ENDPOINT).rstrip("/")


def host() -> str:
    """The hub's name, for people."""
    return urlsplit(endpoint()).netloc or endpoint()


def search(words: str, most: int = 40) -> list[Hit]:
    """The repositories in whose names these words are, those that are fetched most often first."""
    with _understood(tr("the search for “{words}”", words=words)):
        found = _api().list_models(search=words, sort="downloads", limit=most)
        return [Hit(model.id, model.downloads or 0, bool(model.gated)) for model in found]


def list_files(repo: str, revision: str = "") -> Listing:
    """A repository's files with their sizes and checksums, at the commit that the revision is now."""
    with _understood(repo):
        info = _api().model_info(repo, revision=revision or None, files_metadata=True, timeout=TIMEOUT_S)
    files = tuple(
        HubFile(
            path=sibling.rfilename,
            size=sibling.size or 0,
            sha256=sibling.lfs.sha256 if sibling.lfs else "",
            git="" if sibling.lfs else sibling.blob_id or "",
        )
        for sibling in info.siblings or ()
    )
    return Listing(info.id, info.sha or revision or "main", files)


@contextmanager
def stream(repo: str, commit: str, path: str, first: int, last: int) -> Iterator[Iterator[bytes]]:
    """The bytes first…last-1 of a file, in pieces. Raises HubError, also while the pieces are read."""
    headers = _headers() | {"Range": f"bytes={first}-{last - 1}", "Accept-Encoding": "identity"}  # not translated
    from huggingface_hub import get_session, hf_raise_for_status

    url = f"{endpoint()}/{repo}/resolve/{quote(commit, safe='')}/{quote(path)}"
    with (
        _understood(tr("{path} of {repo}", path=path, repo=repo)),
        get_session().stream("GET", url, headers=headers, timeout=TIMEOUT_S) as response,
    ):
        hf_raise_for_status(response)
        if first and response.status_code != 206:
            raise HubError(
                tr(
                    "{host} cannot go on in the middle of {path}; discard the download and start it again.",
                    host=host(),
                    path=path,
                )
            )
        yield response.iter_raw()  # as they arrive, so that nothing is lost of a line that breaks


def _api() -> HfApi:
    _be_discreet()
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(), library_name="draftscope", library_version=__version__)


def _headers() -> dict[str, str]:
    """What the client itself sends with its questions: a token, if it has one, and the versions."""
    _be_discreet()
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented, exported lazily

    headers: dict[str, str] = build_hf_headers(library_name="draftscope", library_version=__version__)
    return headers


def _be_discreet() -> None:
    """Before the client is imported: it tells the hub of nothing but the program's and its own version."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_UPDATE_CHECK", "1")


@contextmanager
def _understood(what: str) -> Iterator[None]:
    """Turn what the client raises into a sentence."""
    import httpx2  # what the client speaks HTTP with
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise HubError(
            tr(
                "{what} is gated: agree to its terms at {hub}, then make your token known with "
                "`hf auth login` or in HF_TOKEN, and try again.",
                what=what,
                hub=USUAL_ENDPOINT,
            )
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(
            tr(
                "{what} was not found at {host}, or it is private: check the name; for a private one, make your "
                "token known with `hf auth login` or in HF_TOKEN.",
                what=what,
                host=host(),
            )
        ) from error
    except errors.RevisionNotFoundError as error:
        raise HubError(
            tr("{what} has no such revision at {host}; leave it out to take the latest.", what=what, host=host())
        ) from error
    except errors.EntryNotFoundError as error:
        raise HubError(
            tr("{what} is no longer at {host}; look the repository up again.", what=what, host=host())
        ) from error
    except errors.OfflineModeIsEnabled as error:
        raise HubError(tr("HF_HUB_OFFLINE forbids the network; unset it and start the program again.")) from error
    except errors.HfHubHTTPError as error:
        raise _of_status(what, error.response.status_code) from error
    except errors.HFValidationError as error:
        raise HubError(tr("{what} is no name of a repository: it reads owner/name.", what=what)) from error
    except httpx2.TimeoutException as error:
        raise HubError(
            trn(
                "{host} did not answer in {n} second; try again later.",
                "{host} did not answer in {n} seconds; try again later.",
                TIMEOUT_S,
                host=host(),
            ),
            passing=True,
        ) from error
    except httpx2.HTTPError as error:
        raise HubError(
            tr(
                "{host} cannot be reached ({why}); check the connection and try again.", host=host(), why=_reason(error)
            ),
            passing=True,
        ) from error


def _of_status(what: str, status: int) -> HubError:
    if status in (401, 403):
        return HubError(
            tr(
                "{host} refuses {what} ({status}); check the token in HF_TOKEN or from `hf auth login`.",
                host=host(),
                what=what,
                status=status,
            )
        )
    if status == 429:
        return HubError(
            tr("{host} gets too many requests from here (429); wait a few minutes.", host=host()), passing=True
        )
    return HubError(
        tr("{host} failed at {what} ({status}); try again later.", host=host(), what=what, status=status),
        passing=status in _PASSING,
    )


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
