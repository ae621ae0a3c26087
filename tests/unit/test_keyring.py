"""The keys of the setting: read strictly, told without a secret, and followed in their file."""

import json
from pathlib import Path
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from petard_worker.keyring import LOOK_SECONDS, Keyring
from petard_worker.settings import BadSettingError, Settings, file_in_use, load_settings
from petard_worker.signing_keys import BadSigningKeysError, read_signing_keys
from signed_elements import key, setting

SECRET = key(1).removeprefix("whsec_")
BAD = {
    "nothing": ("", "is no JSON: Expecting value"),
    "no JSON": ("{", "is no JSON"),
    "a bare key": (key(1), "is no JSON"),
    "a list": (f'["{key(1)}"]', "is no JSON object of sources"),
    "a source twice": ('{"/s": {"keys": []}, "/s": {"keys": []}}', "names '/s' twice"),
    "a key twice, as a name": (f'{{"{key(1)}": 1, "{key(1)}": 2}}', "a key stands where a name has to"),
    "a key for a source": (f'{{"{key(1)}": {{"keys": []}}}}', "a key stands where the name"),
    "a key and nothing else": (f'{{"/s": "{key(1)}"}}', "source '/s': is no object with a list"),
    "a list of keys": (f'{{"/s": ["{key(1)}"]}}', "source '/s': is no object with a list"),
    "one key without a list": (f'{{"/s": {{"keys": "{key(1)}"}}}}', "source '/s': is no object with a list"),
    "no keys": ('{"/s": {"pools": ["p"]}}', "source '/s': is no object with a list"),
    "a misspelt limit": (f'{{"/s": {{"keys": ["{key(1)}"], "pool": ["p"]}}}}', "source '/s': has 1 names"),
    "no limit in a list": (f'{{"/s": {{"keys": ["{key(1)}"], "pools": []}}}}', "leave it out to allow all"),
    "a limit without a list": (f'{{"/s": {{"keys": ["{key(1)}"], "pools": "p"}}}}', "leave it out"),
    "a pool that is none": (f'{{"/s": {{"keys": ["{key(1)}"], "pools": ["A B"]}}}}', "a pool is 1-64"),
    "a pool that is no text": (f'{{"/s": {{"keys": ["{key(1)}"], "pools": [1]}}}}', "leave it out"),
    "the second key": (f'{{"/s": {{"keys": ["{key(1)}", "{SECRET}"]}}}}', "source '/s': key 2: a key starts"),
    "a short key": ('{"/s": {"keys": ["whsec_AAAA"]}}', "key 1: a key holds 24 to 64 bytes, this one 3"),
    "a number": ('{"/s": {"keys": [1]}}', "source '/s': key 1: a key starts"),
    "too many keys": (setting({"/s": [key(n) for n in range(17)]}), "17 keys, the limit is 16"),
    "Petard's own source": ('{"/petard": {"keys": []}}', "source '/petard': is reserved"),
    "an empty source": ('{"": {"keys": []}}', "its name has 0 characters"),
    "a source with a line end": ('{"/s\\n": {"keys": []}}', "source '/s\\n': holds U+000A"),
    "half a character": ("\udcff", "is not UTF-8"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD.keys())
def test_what_is_wrong_is_named_and_no_secret_is_shown(text: str, said: str) -> None:
    with pytest.raises(BadSigningKeysError) as bad:
        read_signing_keys(text)

    assert said in str(bad.value)
    assert SECRET[:8] not in str(bad.value)


def test_a_bad_setting_is_named_and_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PETARD_SIGNING_KEYS", f'{{"/s": {{"keys": ["{SECRET}"]}}}}')

    with pytest.raises(BadSettingError) as bad:
        load_settings()

    assert str(bad.value).startswith("PETARD_SIGNING_KEYS: source '/s': key 1: a key starts with")
    assert SECRET not in str(bad.value)
    assert bad.value.__cause__ is None


def test_no_repr_tells_a_secret() -> None:
    text = setting({"/s": [key(1)]})
    keys = read_signing_keys(text)

    told = repr([keys, Keyring(keys), Settings(signing_keys=text)])  # type: ignore[arg-type]

    assert SECRET[:8] not in told
    assert repr(bytes([1]) * 8)[2:-1] not in told


def test_without_the_setting_nobody_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PETARD_SIGNING_KEYS", raising=False)

    assert read_signing_keys(load_settings().signing_keys.get_secret_value()) == {}


def test_the_environment_comes_before_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(setting({"/from-file": [key(1)]}) + "\n")
    monkeypatch.setenv("PETARD_SIGNING_KEYS_FILE", str(file))
    from_file = (file_in_use("signing_keys"), load_settings().signing_keys.get_secret_value())

    monkeypatch.setenv("PETARD_SIGNING_KEYS", "{}")
    from_environment = (file_in_use("signing_keys"), load_settings().signing_keys.get_secret_value())

    assert from_file == (file, setting({"/from-file": [key(1)]}))
    assert from_environment == (None, "{}")


def test_a_file_that_is_no_text_is_a_bad_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(b"\xff\xfe\x00")
    monkeypatch.setenv("PETARD_SIGNING_KEYS_FILE", str(file))

    with pytest.raises(BadSettingError, match=r"PETARD_SIGNING_KEYS_FILE: is not UTF-8"):
        load_settings()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "keys.json"
    file.write_text(setting({"/old": [key(1)]}))
    return file


@pytest.fixture
def keyring(file: Path) -> Keyring:
    """A keyring that looks every time it is asked to."""
    keyring = Keyring(read_signing_keys(file.read_text()), file, look_seconds=0)
    keyring.look_again()
    return keyring


def test_a_changed_file_is_taken_over(keyring: Keyring, file: Path) -> None:
    file.write_text(setting({"/new": [key(2)]}))

    with capture_logs() as logs:
        keyring.look_again()

    assert keyring.keys.keys() == {"/new"}
    assert [(line["event"], line["sources"]) for line in logs] == [("signing_keys_changed", 1)]
    assert key(2).removeprefix("whsec_")[:8] not in repr(logs)


def test_a_file_that_is_replaced_is_taken_over(keyring: Keyring, file: Path, tmp_path: Path) -> None:
    (tmp_path / "next").write_text(setting({"/new": [key(2)]}))
    (tmp_path / "next").replace(file)

    keyring.look_again()

    assert keyring.keys.keys() == {"/new"}


def test_the_same_text_gives_the_same_keys(keyring: Keyring, file: Path) -> None:
    keys = keyring.keys
    file.write_text(file.read_text())

    keyring.look_again()

    assert keyring.keys is keys


@pytest.mark.parametrize("broken", [b"", b"{", b"\xff", json.dumps({"/s": [key(1)]}).encode(), None])
def test_a_broken_file_keeps_the_keys_and_is_logged_once(
    keyring: Keyring, file: Path, broken: bytes | None
) -> None:
    keys, good = keyring.keys, file.read_bytes()
    if broken is None:
        file.unlink()
    else:
        file.write_bytes(broken)

    with capture_logs() as logs:
        for _ in range(3):
            keyring.look_again()
        kept = keyring.keys
        file.write_bytes(good)
        keyring.look_again()

    assert kept is keys
    assert keyring.keys.keys() == keys.keys()
    assert [line["event"] for line in logs] == ["signing_keys_unusable", "signing_keys_changed"]
    assert SECRET[:8] not in repr(logs)


def test_another_fault_is_logged_again(keyring: Keyring, file: Path) -> None:
    with capture_logs() as logs:
        for text in ("{", "[]", "[]"):
            file.write_text(text)
            keyring.look_again()

    assert [line["event"] for line in logs] == ["signing_keys_unusable"] * 2


def test_the_file_is_read_once_a_second_at_most(file: Path) -> None:
    keyring = Keyring(file=file)

    with patch("petard_worker.keyring.time.monotonic") as clock:
        clock.return_value = 100.0
        keyring.look_again()
        file.write_text(setting({"/new": [key(2)]}))
        clock.return_value = 100.0 + LOOK_SECONDS * 0.99
        keyring.look_again()
        early = keyring.keys
        clock.return_value = 100.0 + LOOK_SECONDS
        keyring.look_again()

    assert early.keys() == {"/old"}
    assert keyring.keys.keys() == {"/new"}


def test_what_changed_between_the_settings_and_the_first_look_is_seen(file: Path) -> None:
    keyring = Keyring(read_signing_keys(file.read_text()), file)
    file.write_text(setting({"/new": [key(2)]}))

    keyring.look_again()

    assert keyring.keys.keys() == {"/new"}
