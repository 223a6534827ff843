"""Media: what is sent in which form, and what is only named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.formatting.said import assistant, media, system, user
from vitehub_chat.errors import ConfigError
from vitehub_chat.formatting.history import format_history

PNG = media("image", "image/png", data="aGk=")
LINKED = media("image", "image/png", url="https://x.example/a.png")
PDF = media("file", "application/pdf", data="aGk=", name="a_b.pdf")
WAV = media("audio", "audio/wav", data="aGk=")


def items(profile: str, *parts: Any, **options: Any) -> list[Any]:
    """Return what the first message holds."""
    fields = format_history([user(*parts)], profile, **options)
    entry = next(iter(fields.values()))[0]
    return list(entry["parts"] if "parts" in entry else entry["content"])


@pytest.mark.parametrize("profile", ["openai_chat", "groq", "mistral"])
def test_chat_takes_images_as_urls(profile: str) -> None:
    assert items(profile, "a", PNG, LINKED) == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
    ]


def test_openai_chat_takes_audio_and_files_as_data() -> None:
    assert items("openai_chat", WAV, PDF) == [
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {
            "type": "file",
            "file": {"filename": "a_b.pdf", "file_data": "data:application/pdf;base64,aGk="},
        },
    ]


def test_responses_takes_images_and_files() -> None:
    linked = media("file", "application/pdf", url="https://x.example/a.pdf")
    assert items("openai_responses", "a", PNG, PDF, linked) == [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
        {
            "type": "input_file",
            "filename": "a_b.pdf",
            "file_data": "data:application/pdf;base64,aGk=",
        },
        {"type": "input_file", "file_url": "https://x.example/a.pdf"},
    ]


def test_ollama_takes_images_beside_the_text() -> None:
    fields = format_history([user("a", PNG, LINKED)], "ollama")
    assert fields["messages"] == [
        {"role": "user", "content": "a\n\n[image not shown: image/png]", "images": ["aGk="]}
    ]


def test_anthropic_takes_images_and_documents_with_a_source() -> None:
    jpeg = media("image", "image/JPG; q=1", data="aGk=")
    note = media("file", "text/markdown", data="aGk=")
    assert items("anthropic", jpeg, LINKED, PDF, note) == [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/jpeg", "data": "aGk="},
        },
        {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"},
        },
    ]


def test_gemini_takes_data_and_links_of_every_kind() -> None:
    assert items("gemini", WAV, LINKED) == [
        {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/a.png"}},
    ]


def test_bedrock_takes_bytes_and_buckets_and_names_documents_once() -> None:
    stored = media("file", "text/csv", url="s3://b/k", name="a_b.pdf")
    assert items("bedrock", PNG, PDF, stored) == [
        {"image": {"format": "png", "source": {"bytes": "aGk="}}},
        {"document": {"format": "pdf", "name": "a b pdf", "source": {"bytes": "aGk="}}},
        {
            "document": {
                "format": "csv",
                "name": "a b pdf (2)",
                "source": {"s3Location": {"uri": "s3://b/k"}},
            }
        },
    ]


@pytest.mark.parametrize(
    ("profile", "part", "named"),
    [
        ("groq", PDF, "[file not shown: a_b.pdf]"),
        ("strict", PNG, "[image not shown: image/png]"),
        ("deepseek", WAV, "[audio not shown: audio/wav]"),
        ("openai_chat", media("audio", "audio/ogg", data="aGk="), "[audio not shown: audio/ogg]"),
        ("openai_chat", media("file", "a/b", url="https://x.example"), "[file not shown: a/b]"),
        ("anthropic", media("image", "image/tiff", data="aGk="), "[image not shown: image/tiff]"),
        ("anthropic", media("file", "text/plain", data="/w=="), "[file not shown: text/plain]"),
        ("bedrock", LINKED, "[image not shown: image/png]"),
    ],
)
def test_what_is_not_taken_is_named(profile: str, part: Any, named: str) -> None:
    assert named in str(items(profile, "a", part)) or named in "".join(items(profile, "a", part))


def test_the_option_replaces_the_list_of_the_profile() -> None:
    assert items("openai_chat", PNG, WAV, media=["audio"]) == [
        {"type": "text", "text": "[image not shown: image/png]"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    ]


@pytest.mark.parametrize("given", ["image", ["image", "video"]])
def test_an_unknown_kind_of_media_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="audio, file, image"):
        format_history([user("a")], "openai_chat", media=given)


def test_only_users_send_media() -> None:
    fields = format_history([system(PNG), user("a"), assistant("b", PNG)], "openai_chat")
    assert [message["content"] for message in fields["messages"]] == [
        "[image not shown: image/png]",
        "a",
        "b\n\n[image not shown: image/png]",
    ]


def test_gemini_gets_its_own_images_back() -> None:
    fields = format_history([user("a"), assistant(PNG)], "gemini")
    assert fields["contents"][1]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    ]
