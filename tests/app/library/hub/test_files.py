"""Addresses that people paste, and what of a repository belongs together."""

from __future__ import annotations

import pytest

from app.library.hub.files import HubFile, Listing, Wanted, format_of, named, parts, proposed


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Qwen/Qwen3.5-4B", Wanted("Qwen/Qwen3.5-4B")),
        (" Qwen/Qwen3.5-4B@refs/pr/1 ", Wanted("Qwen/Qwen3.5-4B", "refs/pr/1")),
        ("https://huggingface.co/Qwen/Qwen3.5-4B", Wanted("Qwen/Qwen3.5-4B")),
        ("huggingface.co/Qwen/Qwen3.5-4B/tree/main", Wanted("Qwen/Qwen3.5-4B", "main")),
        ("https://hf.co/a/b/blob/main/sub/x%20y-Q8_0.gguf?download=1", Wanted("a/b", "main", "sub/x y-Q8_0.gguf")),
        ("https://huggingface.co/a/b/resolve/v1/x.gguf", Wanted("a/b", "v1", "x.gguf")),
        ("hf://a/b/x.gguf", Wanted("a/b", "", "x.gguf")),
        ("qwen 3.5 gguf", None),
        ("Qwen", None),
        ("https://huggingface.co/datasets/a/b", None),
        ("../../etc", None),
    ],
)  # fmt: skip
def test_what_a_text_names(text: str, wanted: Wanted | None) -> None:
    assert named(text) == wanted


def listing(*paths: str) -> Listing:
    return Listing("a/b", "main", tuple(HubFile(path, 10 * (i + 1)) for i, path in enumerate(paths)))


def test_shards_belong_together_and_what_cannot_be_opened_is_left_out() -> None:
    found = parts(
        listing(
            "README.md", "m-Q8_0.gguf", "big/m-BF16-00001-of-00002.gguf", "big/m-BF16-00002-of-00002.gguf",
            "mmproj-F16.gguf", "mtp-m-Q4_0.gguf", "pytorch_model.bin",
        )
    )  # fmt: skip
    assert [(p.kind, p.name, p.format, len(p.files)) for p in found] == [
        ("model", "m-Q8_0", "Q8_0", 1),
        ("model", "m-BF16", "BF16", 2),
        ("sidecar", "mtp-m-Q4_0", "Q4_0", 1),
        ("vision tower", "mmproj-F16", "F16", 1),
    ]


def test_a_published_checkpoint_brings_what_it_is_read_with() -> None:
    found = parts(
        listing(
            "config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "tokenizer.json",
            "model.safetensors.index.json", "merges.txt", "chat_template.jinja", "mtp.safetensors", "figure.png",
        )
    )  # fmt: skip
    model, sidecar = found
    assert {file.name for file in model.files} == {
        "config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "tokenizer.json",
        "model.safetensors.index.json", "merges.txt", "chat_template.jinja",
    }  # fmt: skip
    assert (sidecar.kind, sidecar.name) == ("sidecar", "mtp.safetensors")


def test_safetensors_without_a_config_are_no_checkpoint() -> None:
    assert parts(listing("adapter.safetensors")) == []


def test_what_was_named_is_proposed_else_the_usual_format() -> None:
    found = parts(listing("m-Q8_0.gguf", "m-Q4_K_M.gguf", "q2/m-Q2_K-00001-of-00002.gguf"))
    assert proposed(found, "m-Q8_0.gguf").format == "Q8_0"  # type: ignore[union-attr]
    assert proposed(found, "q2").format == "Q2_K"  # type: ignore[union-attr]
    assert proposed(found).format == "Q4_K_M"  # type: ignore[union-attr]
    assert proposed(parts(listing("m-Q2_K.gguf", "m-Q8_0.gguf"))) is None


def test_formats_are_read_from_names() -> None:
    assert format_of("Qwen3.5-4B-UD-Q4_K_XL") == "Q4_K_XL"
    assert format_of("x.iq4_xs") == "IQ4_XS"
    assert format_of("Qwen3.5-4B") == ""
