"""A small hub on 127.0.0.1: the few routes that are used, spoken as the real one speaks them. Files are made up."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
PIECE = 1 << 14


@dataclass
class Repo:
    """A repository. What is in `small` is kept in git itself, everything else as large files."""

    files: dict[str, bytes]
    small: tuple[str, ...] = ("config.json",)
    gated: bool = False
    announced: dict[str, bytes] = field(default_factory=dict)
    """Files of which the hub announces other contents than it sends."""


class Hub:
    """The server and what it was asked."""

    def __init__(self, repos: dict[str, Repo]) -> None:
        self.repos = repos
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.cut_after: list[int] = []
        """Bytes after which the next answers with contents break off."""
        self.failures: list[int] = []
        """Statuses with which the next requests for contents are refused."""
        self.hold_at: int | None = None
        """Byte of an answer before which it waits for `go`."""
        self.elsewhere = False
        """Whether contents come from another host, by an address that is handed out, as the real hub does it."""
        self.go = threading.Event()
        self.held = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def fetched(self, path: str) -> list[str]:
        """The Range of every request for a file's contents."""
        return [headers.get("range", "") for method, asked, headers in self.requests if asked.endswith(f"/{path}")]


@contextmanager
def running(repos: dict[str, Repo]) -> Iterator[Hub]:
    hub = Hub(repos)
    thread = threading.Thread(target=hub.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        hub.go.set()
        hub.server.shutdown()
        hub.server.server_close()
        thread.join()


def handler_of(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            path = unquote(url.path)
            hub.requests.append(("GET", path, {name.lower(): value for name, value in self.headers.items()}))
            try:
                if path == "/api/models":
                    self.answer(search(hub, parse_qs(url.query)))
                elif path.startswith("/api/models/"):
                    self.info(path.removeprefix("/api/models/"))
                elif path.startswith("/elsewhere/"):
                    repo, _, file = path.removeprefix("/elsewhere/").partition("/-/")
                    self.send_range(hub.repos[repo].files[file])
                else:
                    self.contents(path.lstrip("/"))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def info(self, rest: str) -> None:
            name, _, revision = rest.partition("/revision/")
            repo = hub.repos.get(name)
            if repo is None:
                self.refuse(404, "RepoNotFound")
            elif revision not in ("", "main", COMMIT):
                self.refuse(404, "RevisionNotFound")
            else:
                self.answer({"id": name, "sha": COMMIT, "siblings": siblings(repo)})

        def contents(self, rest: str) -> None:
            name, _, path = rest.partition(f"/resolve/{COMMIT}/")
            repo = hub.repos.get(name)
            if repo is None or path not in repo.files:
                self.refuse(404, "RepoNotFound" if repo is None else "EntryNotFound")
            elif repo.gated and "authorization" not in {k.lower() for k in self.headers}:
                self.refuse(401, "GatedRepo")
            elif hub.failures:
                self.refuse(hub.failures.pop(0), "")
            elif hub.elsewhere:
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{hub.server.server_port}/elsewhere/{name}/-/{path}")
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                self.send_range(repo.files[path])

        def send_range(self, data: bytes) -> None:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            body = data[int(first) : int(last) + 1]
            self.send_response(206)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            self.end_headers()
            cut = hub.cut_after.pop(0) if hub.cut_after else len(body)
            for at in range(0, cut, PIECE):
                if hub.hold_at is not None and int(first) + at >= hub.hold_at:
                    hub.held.set()
                    hub.go.wait()
                self.wfile.write(body[at : min(cut, at + PIECE)])
            self.close_connection = cut < len(body)

        def answer(self, data: object) -> None:
            body = json.dumps(data).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def refuse(self, status: int, code: str) -> None:
            self.send_response(status)
            if code:
                self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

    return Handler


def search(hub: Hub, query: dict[str, list[str]]) -> list[dict[str, object]]:
    words = query.get("search", [""])[0].lower()
    return [
        {"id": name, "downloads": 1000 - number, "gated": "auto" if repo.gated else False}
        for number, (name, repo) in enumerate(hub.repos.items())
        if words in name.lower()
    ]


def siblings(repo: Repo) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = []
    for path, sent in repo.files.items():
        data = repo.announced.get(path, sent)
        git = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        line: dict[str, object] = {"rfilename": path, "size": len(data), "blobId": git}
        if path not in repo.small:
            line["lfs"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "pointerSize": 130}
        listed.append(line)
    return listed
