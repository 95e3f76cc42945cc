"""The settings file: what is written is read again, and nothing in it can keep the program from starting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.settings import MOST_RECENT, LoadChoices, RecentModel, ReplyChoices, Settings, SettingsFile
from engine import DraftOptions, SamplingOptions

FULL = Settings(
    theme="dark",
    geometry="AAAA",
    layout="BBBB",
    recent=(RecentModel("/models/a", "/models/mtp-a.safetensors"), RecentModel("/models/ü")),
    reply=ReplyChoices(
        sampling=SamplingOptions(temperature=0.7, top_k=40, top_p=0.9, min_p=0.05, seed=7),
        new_seed=False,
        max_new_tokens=99,
        thinking=True,
        draft=DraftOptions("mtp+ngram", 5, "adaptive"),
    ),
    load=LoadChoices(3, 2048, kv_cache="bf16"),
    language="pt_BR",
    show_refused=False,
)


def test_everything_comes_back(tmp_path: Path) -> None:
    SettingsFile(tmp_path / "new folder").save(FULL)
    assert SettingsFile(tmp_path / "new folder").load() == FULL


def test_a_first_start_has_defaults(tmp_path: Path) -> None:
    assert SettingsFile(tmp_path / "nowhere").load() == Settings()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "\x00" * 64, '{"reply": 3, "recent": {"a": 1}, "theme": "pink"}']
)
def test_a_senseless_file_gives_defaults(tmp_path: Path, text: str) -> None:
    file = SettingsFile(tmp_path)
    file.path.write_text(text)
    assert file.load() == Settings()


def test_a_file_that_is_no_json_is_set_aside(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path)
    file.path.write_text("{ half")
    file.load()
    file.save(FULL)
    assert (tmp_path / "settings.damaged.json").read_text() == "{ half"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"max_new_tokens": -3}, ReplyChoices()),
        ({"max_new_tokens": True}, ReplyChoices()),
        ({"sampling": {"temperature": -1}}, ReplyChoices()),
        ({"sampling": {"temperature": "hot"}}, ReplyChoices()),
        ({"draft": {"drafter": "oracle"}}, ReplyChoices()),
        ({"draft": {"tokens": 99}, "thinking": False}, ReplyChoices(thinking=False)),
        ({"draft": {"tokens": 5}}, ReplyChoices(draft=DraftOptions(tokens=5))),
    ],
)
def test_one_bad_field_costs_only_itself(tmp_path: Path, reply: dict[str, object], expected: ReplyChoices) -> None:
    file = SettingsFile(tmp_path)
    file.path.write_text(json.dumps({"reply": reply, "geometry": "kept"}))
    assert file.load() == Settings(reply=expected, geometry="kept")


@pytest.mark.parametrize("language", ["", "d", "../../secret", "de\n", "a" * 16, 7, None, ["de"]])
def test_what_is_no_code_of_a_language_is_left_out(tmp_path: Path, language: object) -> None:
    file = SettingsFile(tmp_path)
    file.path.write_text(json.dumps({"language": language, "geometry": "kept"}))
    assert file.load() == Settings(geometry="kept")


def test_fields_of_a_newer_version_survive(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path)
    file.path.write_text('{"voice": {"speed": 2}, "geometry": "x"}')
    file.save(file.load())
    assert json.loads(file.path.read_text())["voice"] == {"speed": 2}


def test_recent_models_are_newest_first_once_each_and_few() -> None:
    settings = Settings()
    for i in range(MOST_RECENT + 5):
        settings = settings.with_recent(RecentModel(f"/m/{i}"))
    settings = settings.with_recent(RecentModel("/m/10", "/m/mtp.safetensors"))
    assert settings.recent[0] == RecentModel("/m/10", "/m/mtp.safetensors")
    assert len(settings.recent) == len({r.path for r in settings.recent}) == MOST_RECENT


def test_recommended_sampling_is_used_until_something_is_chosen() -> None:
    recommended = SamplingOptions(temperature=0.6, top_k=20)
    assert ReplyChoices(new_seed=False).options(recommended).sampling == recommended
    chosen = SamplingOptions(temperature=0.0)
    assert ReplyChoices(sampling=chosen).options(recommended).sampling == chosen


def test_a_new_seed_is_drawn_for_each_reply_when_sampling() -> None:
    choices = ReplyChoices(sampling=SamplingOptions(temperature=1.0, seed=3))
    assert len({choices.options().sampling.seed for _ in range(8)}) > 1
    fixed = ReplyChoices(sampling=SamplingOptions(temperature=1.0, seed=3), new_seed=False)
    assert fixed.options().sampling.seed == 3


@pytest.mark.parametrize("name", ["max_new_tokens", "think_budget"])
def test_a_number_that_no_field_can_hold_is_not_taken(tmp_path: Path, name: str) -> None:
    file = SettingsFile(tmp_path)
    file.path.write_text(json.dumps({"reply": {name: 10**30}}))
    assert file.load().reply == ReplyChoices()


@pytest.mark.parametrize("number", [True, False, 2.5, 1e400, float("nan"), 10**30, -(10**30), "3", [3]])
def test_a_number_of_another_kind_is_not_taken(tmp_path: Path, number: object) -> None:
    """Nor is one that the fields of the window cannot show: the window would not open."""
    file = SettingsFile(tmp_path)
    for key, names in (("draft", ["tokens"]), ("sampling", ["top_k", "seed"]), ("load", ["threads", "context"])):
        for name in names:
            data = {key: {name: number}}
            file.path.write_text(json.dumps(data if key == "load" else {"reply": data}))
            assert file.load() == Settings(), (key, name)
    for name in ("temperature", "top_p", "min_p"):
        file.path.write_text(json.dumps({"reply": {"sampling": {name: number}}}))
        sampling = file.load().reply.sampling
        assert sampling is None or (type(getattr(sampling, name)) is float and 0 <= getattr(sampling, name) <= 100)


def test_names_that_are_not_utf8_come_back(tmp_path: Path) -> None:
    odd = "/models/\udcff \u00e9"
    file = SettingsFile(tmp_path)
    file.save(Settings(folders=(odd,), recent=(RecentModel(odd),)))
    assert file.load() == Settings(folders=(odd,), recent=(RecentModel(odd),))
