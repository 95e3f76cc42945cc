"""The hub's real client against a hub on this computer: broken lines, damage, full disks, stops and going on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.library.hub import client, order
from app.library.hub.client import HubError
from app.library.hub.fetch import Progress, Stop, fetch
from app.library.hub.files import HubFile, parts
from app.library.hub.order import ORDER_NAME, PART_SUFFIX, Order, OrderError
from tests.app.library.hub.conftest import TOWER, WEIGHTS
from tests.app.library.hub.server import COMMIT, PIECE, Hub

FILE = "tiny-Q4_K_M.gguf"


def order_of(folder: Path, repo: str = "someone/tiny-GGUF", *names: str) -> Order:
    listing = client.list_files(repo)
    files = tuple(file for file in listing.files if not names or file.path in names)
    return Order(listing.repo, listing.commit, folder, files)


def get(ordered: Order, progress: Progress | None = None) -> Progress:
    progress = progress or Progress()
    fetch(ordered, client.stream, progress, pause_s=0.01)
    return progress


def test_files_come_with_sizes_and_checksums(hub: Hub) -> None:
    listing = client.list_files("someone/tiny")
    assert listing.commit == COMMIT
    by_name = {file.path: file for file in listing.files}
    assert by_name["model-00001-of-00002.safetensors"].size == len(WEIGHTS)
    assert len(by_name["model-00001-of-00002.safetensors"].sha256) == 64
    assert by_name["config.json"].sha256 == ""
    assert len(by_name["config.json"].git) == 40
    assert parts(listing)[0].size == len(WEIGHTS) + len(TOWER) + 2 + 25


def test_a_search_finds_repositories(hub: Hub) -> None:
    assert [hit.repo for hit in client.search("tiny")] == ["someone/tiny-GGUF", "someone/tiny"]
    assert [hit.gated for hit in client.search("secret")] == [True]


def test_only_what_was_ordered_is_fetched_and_no_trace_is_left(hub: Hub, tmp_path: Path) -> None:
    progress = get(order_of(tmp_path / "m", "someone/tiny-GGUF", FILE, "README.md"))
    assert (tmp_path / "m" / FILE).read_bytes() == WEIGHTS
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["README.md", FILE]
    assert progress.done == len(WEIGHTS) + 5
    agents = {headers["user-agent"].split("/")[0] for _, _, headers in hub.requests}
    assert agents == {"draftscope"}
    assert not any("authorization" in headers for _, _, headers in hub.requests)


def test_a_line_that_breaks_is_taken_up_where_it_broke(hub: Hub, tmp_path: Path) -> None:
    hub.cut_after = [100_000, 50_000]
    hub.failures = [503]
    get(order_of(tmp_path, "someone/tiny-GGUF", FILE))
    assert (tmp_path / FILE).read_bytes() == WEIGHTS
    starts = [int(asked.removeprefix("bytes=").split("-")[0]) for asked in hub.fetched(FILE)]
    assert starts[0] == 0
    assert starts[-1] > 100_000, "what was there was not fetched again"


def test_a_line_that_never_works_gives_up_with_a_sentence(hub: Hub, tmp_path: Path) -> None:
    hub.failures = [503] * 20
    with pytest.raises(HubError, match=r"127\.0\.0\.1.*failed at tiny-Q4_K_M\.gguf.*\(503\); try again later"):
        get(order_of(tmp_path, "someone/tiny-GGUF", FILE))
    assert len(hub.fetched(FILE)) == 6


def test_stopped_in_the_middle_it_goes_on_from_there(hub: Hub, tmp_path: Path) -> None:
    hub.hold_at = 150_000
    progress, ended = Progress(), []

    def run() -> None:
        try:
            get(order_of(tmp_path, "someone/tiny-GGUF", FILE), progress)
        except Stop:
            ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    assert hub.held.wait(10)
    progress.stop.set()
    hub.go.set()
    thread.join(10)
    assert ended
    waiting = order.load(tmp_path)
    assert waiting is not None
    assert not (tmp_path / FILE).exists()
    assert order.awaited(tmp_path) == {tmp_path / FILE}
    there = waiting.present()
    get(waiting)  # as another start of the program would
    assert (tmp_path / FILE).read_bytes() == WEIGHTS
    assert hub.fetched(FILE)[-1] == f"bytes={there}-{len(WEIGHTS) - 1}"
    assert not (tmp_path / ORDER_NAME).exists()


def test_a_killed_program_goes_on_from_where_it_was(hub: Hub, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from app.library.hub import client; "
        "from app.library.hub.fetch import fetch, Progress; from app.library.hub.order import Order; "
        "listing = client.list_files('someone/tiny-GGUF'); "
        "files = tuple(f for f in listing.files if f.path == sys.argv[2]); "
        "fetch(Order(listing.repo, listing.commit, Path(sys.argv[1]), files), client.stream, Progress())"
    )
    hub.hold_at = 13 * PIECE
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), FILE])
    assert hub.held.wait(30)
    part = tmp_path / f"{FILE}{PART_SUFFIX}"
    while not part.exists() or part.stat().st_size < 13 * PIECE:
        time.sleep(0.01)
    child.kill()
    child.wait()
    hub.hold_at = None
    hub.go.set()
    left = order.load(tmp_path)
    assert left is not None
    get(left)
    assert (tmp_path / FILE).read_bytes() == WEIGHTS
    assert hub.fetched(FILE)[-1] == f"bytes={13 * PIECE}-{len(WEIGHTS) - 1}"


def test_a_token_does_not_go_along_to_another_host(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    hub.elsewhere = True
    hub.cut_after = [100_000]
    get(order_of(tmp_path, "someone/tiny-GGUF", FILE))
    assert (tmp_path / FILE).read_bytes() == WEIGHTS
    there = [headers for _, path, headers in hub.requests if path.startswith("/elsewhere/")]
    assert len(there) == 2
    assert not any("authorization" in headers for headers in there)
    assert all(headers["range"].startswith("bytes=") for headers in there)
    asked = [headers for _, path, headers in hub.requests if "/resolve/" in path]
    assert all(headers["authorization"] == "Bearer hf_x" for headers in asked)


@pytest.mark.parametrize("name", [FILE, "config.json"])
def test_what_arrives_damaged_is_deleted_and_said(hub: Hub, tmp_path: Path, name: str) -> None:
    repo = "someone/tiny-GGUF" if name == FILE else "someone/tiny"
    sent = hub.repos[repo].files[name]
    hub.repos[repo].announced[name] = bytes(len(sent))
    with pytest.raises(HubError, match=f"{name} arrived damaged"):
        get(order_of(tmp_path, repo, name))
    assert not (tmp_path / name).exists()
    assert not (tmp_path / f"{name}{PART_SUFFIX}").exists()


def test_a_damaged_beginning_of_an_earlier_start_is_noticed(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / f"{FILE}{PART_SUFFIX}").write_bytes(bytes(1000))
    with pytest.raises(HubError, match="damaged"):
        get(order_of(tmp_path, "someone/tiny-GGUF", FILE))
    get(order_of(tmp_path, "someone/tiny-GGUF", FILE))
    assert (tmp_path / FILE).read_bytes() == WEIGHTS


def test_a_file_of_the_persons_own_is_never_overwritten(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"my own")
    with pytest.raises(OrderError, match="is another file than the hub's"):
        get(order_of(tmp_path, "someone/tiny-GGUF", FILE))
    assert (tmp_path / FILE).read_bytes() == b"my own"
    (tmp_path / FILE).write_bytes(WEIGHTS)
    asked = len(hub.fetched(FILE))
    get(order_of(tmp_path, "someone/tiny-GGUF", FILE))
    assert len(hub.fetched(FILE)) == asked, "what is there already is not fetched"


def test_what_cannot_fit_is_not_begun(hub: Hub, tmp_path: Path) -> None:
    huge = Order("someone/tiny-GGUF", COMMIT, tmp_path / "m", (HubFile(FILE, 1 << 60),))
    with pytest.raises(OrderError, match=r"1073741824\.0 GiB do not fit into .*; choose another folder or make room"):
        get(huge)
    assert hub.fetched(FILE) == []


def test_a_disk_that_fills_up_is_told_and_what_is_there_stays(hub: Hub, tmp_path: Path) -> None:
    """A real limit of the system on the size of files, in a process of its own."""
    code = (
        "import resource, signal, sys; from pathlib import Path; "
        "from app.library.hub import client; from app.library.hub.fetch import fetch, Progress; "
        "from app.library.hub.order import Order, OrderError; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "files = [f for f in client.list_files('someone/tiny-GGUF').files if f.path == sys.argv[2]]; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: fetch(Order('someone/tiny-GGUF', 'c0ffee' + '0' * 34, Path(sys.argv[1]), tuple(files)), client.stream, "
        "Progress())\n"
        "except OrderError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), FILE], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith(f"The disk of {tmp_path} is full; make room and resume"), done.stderr
    assert (tmp_path / f"{FILE}{PART_SUFFIX}").stat().st_size == 100_000
    get(order.load(tmp_path))  # type: ignore[arg-type]
    assert (tmp_path / FILE).read_bytes() == WEIGHTS


BAD_NAMES = [
    *("../evil.gguf", "/evil.gguf", "a/../../evil.gguf", "a:b.gguf", "./a.gguf", "a//b.gguf", "a/", "a.gguf.", "a /b"),
    *("a\n.gguf", "\ud800.gguf", "\x1b[31m.gguf", ORDER_NAME, ".draftscope-download.new", f"a{PART_SUFFIX}"),
    *(
        "CON",
        "nul.gguf",
        "Aux.Q4_K_M.gguf",
        "a/prn/b.gguf",
        "com1 .gguf",
        "LPT¹.gguf",
        "conin$",
        "a\\b.gguf",
        "a.gguf:b",
    ),
]
GOOD_NAMES = ["console.gguf", "a.con", "com.gguf", "COM10.gguf", "null/aux-1.gguf", "a b.gguf", "..a", "模型.gguf"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OrderError, match="cannot be kept on disk"):
        order.save(Order("a/b", COMMIT, tmp_path, (HubFile(name, 1),)))
    (tmp_path / ORDER_NAME).write_text(
        json.dumps({"repo": "a/b", "commit": "x", "files": [{"path": name, "size": 1, "sha256": "", "git": ""}]})
    )
    assert order.load(tmp_path) is None


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_names_that_only_look_like_those_are_taken(tmp_path: Path, name: str) -> None:
    order.check_names([HubFile(name, 1)])


@pytest.mark.parametrize("repo", ["aux/model", "someone/NUL", "someone/con.gguf"])
def test_a_repository_named_like_a_device_is_refused_where_there_are_such(tmp_path: Path, repo: str) -> None:
    with pytest.raises(OrderError, match="Windows allows no folder of the name"):
        order.home_of(tmp_path, repo, windows=True)
    assert order.home_of(tmp_path, repo, windows=False) == tmp_path / repo


@pytest.mark.parametrize("repo", ["../..", "/etc/x", "a/b/../../..", "..", "a/..", "a/b\n"])
def test_a_repository_that_names_itself_out_of_the_folder_is_refused(tmp_path: Path, repo: str) -> None:
    with pytest.raises(OrderError, match="is no owner/name"):
        order.home_of(tmp_path, repo)
    assert order.home_of(tmp_path, "a/b") == tmp_path / "a" / "b"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"files": [{"path": "a", "size": 1e999, "sha256": "", "git": ""}]}'])
def test_an_order_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / ORDER_NAME).write_text(text)
    assert order.load(tmp_path) is None


def test_what_a_browser_has_of_the_same_file_is_left_alone(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / f"{FILE}.part").write_bytes(b"a browser's")
    ordered = order_of(tmp_path, "someone/tiny-GGUF", FILE)
    get(ordered)
    order.discard(ordered)
    assert (tmp_path / f"{FILE}.part").read_bytes() == b"a browser's"
    assert (tmp_path / FILE).read_bytes() == WEIGHTS


def test_discarding_leaves_whole_files_and_the_persons_own(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "someone" / "tiny"
    ordered = order_of(folder, "someone/tiny-GGUF", FILE, "mmproj-F16.gguf")
    order.save(ordered)
    (folder / f"{FILE}{PART_SUFFIX}").write_bytes(WEIGHTS[:500])
    (folder / "notes.txt").write_text("mine")
    order.discard(ordered)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    (folder / "notes.txt").unlink()
    order.save(ordered)
    order.discard(ordered)
    assert not (tmp_path / "someone").exists()


def test_errors_say_what_to_do(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HubError, match=r"someone/nothing was not found at 127\.0\.0\.1:\d+, or it is private"):
        client.list_files("someone/nothing")
    with pytest.raises(HubError, match="no such revision"):
        client.list_files("someone/tiny", "v9")
    with pytest.raises(HubError, match=r"is gated: agree to its terms .* HF_TOKEN"):
        get(order_of(tmp_path, "someone/secret"))
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    get(order_of(tmp_path, "someone/secret"))
    assert hub.requests[-1][2]["authorization"] == "Bearer hf_x"
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match=r"127\.0\.0\.1:9 cannot be reached \(.*\); check the connection") as told:
        client.list_files("someone/tiny")
    assert told.value.passing


def test_offline_means_offline(hub: Hub) -> None:
    """The client reads HF_HUB_OFFLINE when it is imported: in a process of its own."""
    code = (
        "from app.library.hub import client\n"
        "try: client.list_files('someone/tiny')\n"
        "except client.HubError as error: print(error)"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    assert done.stdout.strip() == "HF_HUB_OFFLINE forbids the network; unset it and start the program again."
    assert hub.requests == []


def test_the_hub_learns_versions_and_nothing_else_about_the_computer(hub: Hub) -> None:
    client.list_files("someone/tiny")
    sent = hub.requests[-1][2]
    named = [part.split("/")[0] for part in sent["user-agent"].split("; ")]
    assert named == ["draftscope", "hf_hub", "python"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.gguf", "A.gguf"), ("Q8/a.gguf", "q8/a.gguf"), ("é.txt", "e\u0301.txt"), ("straße", "strasse")],
)
def test_names_that_some_disks_take_for_one_are_refused(one: str, other: str) -> None:
    with pytest.raises(order.OrderError, match="same file"):
        order.check_names([HubFile(one, 1), HubFile("between", 1), HubFile(other, 1)])
    order.check_names([HubFile(one, 1)])
