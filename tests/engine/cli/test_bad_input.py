"""Every bad input gets one clear line on stderr and exit code 2."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from resources import demo_checkpoint, demo_sidecar
from tests.engine.cli.broken import (
    edit_json,
    edit_tensor,
    read_safetensors,
    shard_with,
    write_safetensors,
)
from tests.engine.cli.conftest import Result

Refused = Callable[..., str]
FINAL_NORM = "language_model.norm.weight"
HI = ("--prompt", "Hi", "--max-new", "4")


def test_missing_folder(refused: Refused, tmp_path: Path) -> None:
    message = refused("generate", tmp_path / "nowhere", *HI)
    assert f"There is no file or folder {tmp_path / 'nowhere'}" in message


def test_no_config(refused: Refused, copy: Path) -> None:
    (copy / "config.json").unlink()
    message = refused("generate", copy, *HI)
    assert "config.json" in message


def test_other_architecture_is_named_with_what_is_supported(refused: Refused, copy: Path) -> None:
    def edit(config: dict) -> None:
        config["model_type"] = "llama"
        config["architectures"] = ["LlamaForCausalLM"]
        config.pop("text_config")

    edit_json(copy / "config.json", edit)
    message = refused("generate", copy, *HI)
    assert "llama" in message.lower()
    assert "qwen3_5" in message
    assert "qwen3_5_moe" in message


def test_truncated_shard_is_named_with_the_missing_bytes(refused: Refused, copy: Path) -> None:
    shard = sorted(copy.glob("*.safetensors"))[-1]
    content = shard.read_bytes()
    shard.unlink()
    shard.write_bytes(content[:-1234])
    message = refused("generate", copy, *HI)
    assert shard.name in message
    assert "1,234 bytes" in message


def test_wrong_shape_names_tensor_expected_and_found(refused: Refused, copy: Path) -> None:
    name = "layers.0.mlp.down_proj.weight"
    shapes: list[list[int]] = []

    def flatten(entry: dict, data: bytes) -> bytes:
        rows, columns = entry["shape"]
        shapes.extend(([rows, columns], [2 * rows, columns // 2]))
        entry["shape"] = shapes[1]
        return data

    edit_tensor(shard_with(copy, name), name, flatten)
    message = refused("generate", copy, *HI)
    assert name in message
    for shape in shapes:
        assert all(str(size) in message for size in shape)


def test_two_mtp_layers(refused: Refused, copy: Path) -> None:
    def edit(config: dict) -> None:
        config["text_config"]["mtp_num_hidden_layers"] = 2

    edit_json(copy / "config.json", edit)
    message = refused("generate", copy, *HI)
    assert "MTP" in message
    assert "2" in message


def test_sidecar_of_another_model(refused: Refused, data: Path) -> None:
    """The demo's hidden size is 256 as well: its tensors differ in other sizes, so one is made that differs in this."""
    message = refused("generate", data / "tiny-dense", "--sidecar", demo_sidecar(), *HI)
    assert "sidecar" in message


def test_sidecar_of_another_hidden_size(refused: Refused, tmp_path: Path) -> None:
    header, _ = read_safetensors(demo_sidecar())
    sidecar = tmp_path / "mtp-sidecar.safetensors"
    narrow = {}
    offset = 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        shape = [size // 2 if size in (256, 512) else size for size in entry["shape"]]
        count = 1
        for size in shape:
            count *= size
        width = {"BF16": 2, "F32": 4, "I32": 4}[entry["dtype"]]
        narrow[name] = {"dtype": entry["dtype"], "shape": shape, "data_offsets": [offset, offset + count * width]}
        offset += count * width
    write_safetensors(sidecar, narrow, bytes(offset))
    message = refused("generate", "demo", "--sidecar", sidecar, *HI)
    assert "hidden size is 128" in message
    assert "256" in message


@pytest.mark.parametrize(("value", "words"), [(4096, "outside"), (None, "both name token")])
def test_draft_ids_must_be_a_choice_of_the_vocabulary(
    refused: Refused, tmp_path: Path, value: int | None, words: str
) -> None:
    sidecar = tmp_path / "mtp-sidecar.safetensors"
    sidecar.write_bytes(demo_sidecar().read_bytes())

    def edit(_: dict, data: bytes) -> bytes:
        (first,) = struct.unpack_from("<i", data)
        return data[:4] + struct.pack("<i", first if value is None else value) + data[8:]

    edit_tensor(sidecar, "mtp.d2t", edit)
    message = refused("generate", "demo", "--sidecar", sidecar, *HI)
    assert "d2t" in message
    assert words in message


@pytest.mark.parametrize(
    "arguments",
    [("--prompt", ""), ("--prompt", " \n\t"), ("--prompt", "", "--raw"), ("--tokens", "")],
)
def test_empty_prompt(refused: Refused, arguments: tuple[str, ...]) -> None:
    assert "The prompt is empty: write something first." in refused("generate", "demo", *arguments)


def test_prompt_longer_than_the_context(refused: Refused) -> None:
    message = refused("generate", "demo", "--context", "64", "--prompt", "word " * 200)
    assert "tokens" in message
    assert "64" in message
    assert "shorten it" in message


def test_broken_chat_template_names_the_line(refused: Refused, copy: Path) -> None:
    (copy / "chat_template.jinja").write_text("{% for m in messages %}\n{{ m.content }\n{% endfor %}")
    message = refused("generate", copy, *HI)
    assert message.startswith("The chat template is broken at line 2")


def test_failing_chat_template(refused: Refused, copy: Path) -> None:
    (copy / "chat_template.jinja").write_text("{{ raise_exception('this model takes no text') }}")
    assert "refuses these messages (at line 1): this model takes no text" in refused("generate", copy, *HI)


def test_nan_logits(refused: Refused, copy: Path) -> None:
    nan = struct.pack("<H", 0x7FC0)  # in bfloat16
    edit_tensor(shard_with(copy, FINAL_NORM), FINAL_NORM, lambda entry, data: nan + data[2:])
    assert "not finite numbers" in refused("generate", copy, *HI)


def test_nan_in_json_is_a_failed_record(run: Callable[..., Result], copy: Path) -> None:
    nan = struct.pack("<H", 0x7FC0)
    edit_tensor(shard_with(copy, FINAL_NORM), FINAL_NORM, lambda entry, data: nan + data[2:])
    result = run("generate", copy, *HI, "--json")
    assert result.code == 2
    assert result.records[-1]["event"] == "failed"
    assert result.records[-1]["kind"] == "NumericsError"
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "demo"), "one of the arguments --prompt --messages --tokens is required"),
        (("generate", "demo", "--prompt", "a", "--tokens", "1"), "not allowed with"),
        (("generate", "demo", "--tokens", "1,x"), "'1,x' is no list of token ids"),
        (("generate", "demo", "--tokens", "1,4096"), "Token 4096 is outside the vocabulary of 4096 ids."),
        (("generate", "demo", "--tokens", "1", "--raw"), "leave --system and --raw out"),
        (("generate", "demo", "--prompt", "a", "--temperature", "-1"), "temperature is -1.0"),
        (("generate", "demo", "--prompt", "a", "--temperature", "nan"), "temperature is nan"),
        (("generate", "demo", "--prompt", "a", "--top-p", "0"), "top-p is 0.0"),
        (("generate", "demo", "--prompt", "a", "--draft-tokens", "15"), "draft tokens is 15, but it must be 0…14"),
        (("generate", "demo", "--prompt", "a", "--draft", "magic"), "invalid choice: 'magic'"),
        (("generate", "demo", "--prompt", "a", "--max-new", "0"), "max new tokens is 0"),
        (("generate", "demo", "--prompt", "a", "--stop", ""), "A stop string is empty"),
        (("generate", "demo", "--prompt", "a", "--seed", "-1"), "seed is -1"),
        (("generate", "demo", "--prompt", "a", "--threads", "0"), "threads is 0"),
        (("generate", "demo", "--prompt", "a", "--context", "4097"), "4097 is more than the 4096 positions"),
        (("generate", "demo", "--prompt", "a", "--memory-budget", "lots"), "'lots' is no memory budget"),
        (("generate", "demo", "--prompt", "a", "--kv-cache", "q4"), "invalid choice: 'q4'"),
        (("generate", "demo", "--prompt", "a", "--logit-bias", "1"), "'1' is no bias"),
        (("generate", "demo", "--prompt", "a", "--sidecar", "nothing.safetensors"), "nothing.safetensors"),
        (("logits", "demo", "--tokens", "", "--out", "x.npz"), "There are no tokens"),
        (("logits", "demo", "--tokens", "-5", "--out", "x.npz"), "Token -5 is outside"),
        (("logits", "demo", "--tokens", "1", "--rows-per-pass", "0", "--out", "x.npz"), "rows per pass is 0"),
        (("logits", "demo", "--tokens", "1", "--out", "no/such/folder/x.npz"), "cannot be written"),
        (("bench", "demo", "--repeats", "0"), "repeats is 0"),
        (("inspect", "no-such-model"), "no-such-model"),
        (("trace", "show", "no-such-trace"), "no-such-trace cannot be read"),
        ((), "the following arguments are required: COMMAND"),
        (("dance",), "invalid choice: 'dance'"),
    ],
)
def test_bad_usage(refused: Refused, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON"),
        ("[]", "holds no messages"),
        ('{"message": []}', "holds no messages"),
        ('["hi"]', "message 1:"),
        ('[{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]', "message 2:"),
        ('[{"role": "user", "content": [1]}]', "message 1:"),
        ('[{"role": "user", "content": ""}]', "The prompt is empty"),
    ],
)
def test_bad_messages(refused: Refused, tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "chat.json"
    file.write_text(content)
    assert message in refused("generate", "demo", "--messages", file)


def test_messages_that_cannot_be_read(refused: Refused, tmp_path: Path) -> None:
    assert "cannot be read" in refused("generate", "demo", "--messages", tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'["\xe9"]')
    assert "not UTF-8" in refused("generate", "demo", "--messages", tmp_path / "latin.json")


def test_trace_that_cannot_be_written(refused: Refused, tmp_path: Path) -> None:
    assert "cannot be written" in refused("generate", "demo", *HI, "--trace", tmp_path / "no" / "run.jsonl")


def test_checkpoint_without_tokenizer(refused: Refused, copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    assert "tokenizer.json" in refused("generate", copy, *HI)


def test_damaged_json_files(refused: Refused, copy: Path) -> None:
    (copy / "config.json").write_text(json.dumps({"model_type": "qwen3_5"})[:-2])
    assert "config.json" in refused("generate", copy, *HI)


def test_demo_is_a_word_only_without_such_a_file(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    assert "config.json" in refused("generate", "demo", *HI)
    assert demo_checkpoint().is_dir()


def test_pictures(refused: Refused, data: Path, tmp_path: Path) -> None:
    picture = data / "tiny-vl" / "images" / "a.png"
    assert "demo cannot see pictures" in refused("generate", "demo", *HI, "--image", picture)
    assert "cannot be read" in refused("generate", "demo", *HI, "--image", tmp_path / "none.png")


@pytest.mark.parametrize("command", ["generate", "inspect", "bench", "logits"])
@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_model_is_no_folder(
    refused: Refused, command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo_checkpoint())  # which would be a model
    more = {"generate": HI, "logits": ("--tokens", "1", "--out", tmp_path / "x.npz")}.get(command, ())
    assert refused(command, name, *more).startswith("MODEL is empty")


@pytest.mark.parametrize("option", ["--sidecar", "--mmproj", "--trace"])
def test_an_empty_file_name_is_told_with_its_option(refused: Refused, option: str) -> None:
    assert refused("generate", "demo", *HI, option, "") == f"{option} is empty: name a file."


def test_where_nothing_can_be_written_is_found_out_before_the_model_is_loaded(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.cli.generate.open_model", None)  # loading would fail
    monkeypatch.setattr("engine.cli.logits.open_model", None)
    for option, command in (
        ("--trace", ("generate", "demo", *HI)),
        ("--out", ("logits", "demo", "--tokens", "1")),
    ):
        folder = refused(*command, option, tmp_path)
        assert folder == f"{option} {tmp_path} is a folder: name a file in it."
        missing = refused(*command, option, tmp_path / "no" / "run")
        assert missing == f"{option} {tmp_path / 'no' / 'run'} cannot be written: there is no folder {tmp_path / 'no'}."


@pytest.mark.parametrize(("budget", "said"), [("1", "1 byte"), ("999", "999 bytes"), ("250kB", "0.3 MB")])
def test_a_small_budget_is_told_as_it_was_given(refused: Refused, budget: str, said: str) -> None:
    message = refused("generate", "demo", *HI, "--memory-budget", budget)
    assert message.startswith(f"The memory budget is {said}, but this model needs at least ")


def test_a_small_budget_is_told_so_where_everything_must_stay_in_memory_too(refused: Refused) -> None:
    message = refused("generate", "demo", *HI, "--precision", "q8", "--memory-budget", "1")
    assert "but the memory budget is 1 byte: write a smaller file" in message


def test_the_budget_that_is_said_to_be_needed_is_enough(refused: Refused, run: Callable[..., Result]) -> None:
    needed = refused("generate", "demo", *HI, "--memory-budget", "1").split("at least ")[1].rstrip(".")
    assert run("generate", "demo", *HI, "--memory-budget", needed.replace(" ", "")).code == 0
