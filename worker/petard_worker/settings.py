"""Settings come from the environment and nowhere else: PETARD_<NAME>, or PETARD_<NAME>_FILE for a secret."""

import os
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import psycopg
import redis
from psycopg.conninfo import conninfo_to_dict
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from petard_worker.signing_keys import read_signing_keys

PREFIX = "PETARD_"


class BadSettingError(Exception):
    """A setting is missing or wrong; the message names it, never its value if it is a secret."""


class Settings(BaseSettings):
    """Everything that can be set, with defaults fit for a laptop."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", hide_input_in_errors=True)

    database_url: SecretStr = SecretStr("postgresql://127.0.0.1:5432/petard")
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    key_prefix: str = Field(default="petard", pattern=r"^[A-Za-z0-9._-]{1,64}$")
    batch_size: int = Field(default=1_000, ge=1, le=5_000)
    slice_seconds: float = Field(default=5.0, ge=0.1, le=60)
    signing_keys: SecretStr = SecretStr("{}")
    recent_seconds: int = Field(default=3_600, ge=0, le=7 * 24 * 3_600)
    recent_megabytes: int = Field(default=64, ge=1, le=65_536)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("database_url")
    @classmethod
    def check_database_url(cls, value: SecretStr) -> SecretStr:
        """Accept PostgreSQL URLs and nothing else."""
        check_scheme(value, ("postgresql", "postgres"))
        try:
            conninfo_to_dict(value.get_secret_value())
        except psycopg.ProgrammingError:  # its message may quote the password
            raise ValueError("is no URL that Postgres understands: 'psql URL' says where") from None
        return value

    @field_validator("redis_url")
    @classmethod
    def check_redis_url(cls, value: SecretStr) -> SecretStr:
        """Accept Redis URLs and nothing else."""
        check_scheme(value, ("redis", "rediss", "unix"))
        try:
            redis.ConnectionPool.from_url(value.get_secret_value()).make_connection()  # connects nowhere yet
        except (TypeError, ValueError):  # its message may quote the password
            raise ValueError("is no Redis URL, such as redis://user:password@host:6379/0") from None
        return value

    @field_validator("signing_keys")
    @classmethod
    def check_signing_keys(cls, value: SecretStr) -> SecretStr:
        """Accept a JSON object of sources and their keys."""
        read_signing_keys(value.get_secret_value())
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment, then files named in it."""
        return init_settings, env_settings, FileSource(settings_cls)


class FileSource(PydanticBaseSettingsSource):
    """Reads PETARD_<NAME>_FILE: the way secrets come in containers and units."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """Return the content of the file, or None when none is named."""
        path = named_file(field_name)
        try:
            return (path.read_text(encoding="utf-8").strip() if path else None), field_name, False
        except UnicodeDecodeError:
            raise BadSettingError(f"{PREFIX}{field_name.upper()}_FILE: is not UTF-8: {path}") from None

    def __call__(self) -> dict[str, Any]:
        """Return the values of all fields that have a file."""
        fields = self.settings_cls.model_fields
        values = {name: self.get_field_value(field, name)[0] for name, field in fields.items()}
        return {name: value for name, value in values.items() if value is not None}


def named_file(field_name: str) -> Path | None:
    """Return the file that PETARD_<NAME>_FILE names, if it names one."""
    path = os.environ.get(f"{PREFIX}{field_name.upper()}_FILE")
    return Path(path) if path else None


def file_in_use(field_name: str) -> Path | None:
    """Return the file that a setting comes from; None when it stands in the environment itself."""
    name = f"{PREFIX}{field_name.upper()}"
    return None if any(each.upper() == name for each in os.environ) else named_file(field_name)


def load_settings() -> Settings:
    """Return the settings, or raise BadSettingError naming what is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        name = f"{PREFIX}{str(first['loc'][0]).upper()}"
        raise BadSettingError(f"{name}: {first['msg'].removeprefix('Value error, ')}") from None
    except OSError as error:
        names = [name for name, value in os.environ.items() if value == str(error.filename)]
        named = next((name for name in names if name.startswith(PREFIX)), "a PETARD_…_FILE setting")
        raise BadSettingError(f"{named}: {error.strerror}: {error.filename}") from None


def check_scheme(value: SecretStr, schemes: tuple[str, ...]) -> None:
    """Raise ValueError unless the URL has one of the schemes."""
    if urlsplit(value.get_secret_value()).scheme not in schemes:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ValueError(f"must be a URL that starts with {wanted}")
