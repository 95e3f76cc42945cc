"""Every row of the behaviour contract is named by a test: in its name (`test_o23_…`) or its docstring (Row O-23)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROWS = {
    "O-01": "the config; more than one MTP layer is refused with the number",
    "O-02": "RMSNorm in float32; addition in place",
    "O-03": "one linear interface over every weight format",
    "O-04": "a row's result does not depend on the rows beside it, up to 15",
    "O-05": "above that, a product may round differently",
    "O-06": "the embedding table is read row by row; byte ranges can be listed",
    "O-07": "a chunk gives final-normed hidden states",
    "O-08": "exact rewind inside the last pass",
    "O-09": "logits over rows, with a tied or untied head",
    "O-10": "rotary tables from picture spans; spans end with the tokens they stand on",
    "O-11": "gated full attention",
    "O-12": "routed experts are read on demand",
    "O-13": "sessions can be cloned",
    "O-14": "one way to ask for tensors by name, whatever the files",
    "O-15": "stored q8 and q4 forms win",
    "O-16": "MTP tensors under every prefix",
    "O-17": "the MTP layer's tensors",
    "O-18": "sidecars: own embedding, trimmed head, token ids",
    "O-19": "units, their parts and uses per round",
    "O-20": "enter and leave around units, with prefetch",
    "O-21": "what is streamed is not kept",
    "O-22": "bytes that a draft step reads",
    "O-23": "the pair of an MTP step",
    "O-24": "rows that wait for their next token",
    "O-25": "cache entries from draft states are dropped",
    "O-26": "the stop token is committed, but never read",
    "O-27": "pictures are placeholders to the MTP layer",
    "O-28": "the exact distribution that is sampled from",
    "O-29": "the acceptance rule leaves the model's distribution",
    "O-30": "greedy text is that of plain decoding",
    "O-31": "options and policies",
    "O-32": "the cost-aware length",
    "O-33": "never past the end; a stop is no refusal",
    "O-34": "the statistics",
    "O-35": "the self check",
    "L-01": "n-gram lookup over the prompt",
    "L-02": "argmax: the first maximum, never NaN",
    "L-03": "an MTP layer with experts",
    "L-04": "every shape is checked and named",
    "L-05": "what a constructor refuses; draft length 0",
    "L-06": "one MTP step, and the recursion",
    "L-07": "drafting stops at an end token",
    "L-08": "the target's interface",
    "L-09": "verification and what is committed",
    "L-10": "statistics equal a manual count",
    "L-11": "the closure form",
    "L-12": "same inputs, same outputs",
}


def test_rows_are_numbered_without_gaps() -> None:
    assert list(ROWS) == [f"O-{i:02}" for i in range(1, 36)] + [f"L-{i:02}" for i in range(1, 13)]


@pytest.fixture(scope="module")
def named() -> set[str]:
    """The rows that tests name."""
    return {row for path in Path(__file__).parent.rglob("test_*.py") for row in rows_of(path.read_text("utf-8"))}


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_a_test(named: set[str], row: str) -> None:
    assert row in named, f"no test names row {row}: {ROWS[row]}"


def rows_of(source: str) -> Iterator[str]:
    """The rows named by the tests in a file's source, in names and docstrings; other text does not count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            words = node.name.split("_")[1:]
            yield from (f"{word[0].upper()}-{word[1:]}" for word in words if re.fullmatch(r"[ol]\d\d", word))
            yield from re.findall(r"\b[OL]-\d\d\b", ast.get_docstring(node) or "")


def test_only_tests_count() -> None:
    source = """def helper_o01(): pass
def test_o02_l03_this():
    'Row O-04.'
    x = "O-05"
"""
    assert set(rows_of(source)) == {"O-02", "L-03", "O-04"}
