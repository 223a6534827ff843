"""What a platform is answered, and what has to be true of a request before anything is read."""

from __future__ import annotations

import json
import logging
from typing import Any

import attrs
import pytest

from tests.channels.scene import SetScene
from vitehub_chat import chat, define_agent
from vitehub_chat.channels.host import ChannelHost
from vitehub_chat.channels.values import ChannelRequest, Inbound
from vitehub_chat.errors import ConfigError
from vitehub_chat.plugins import channels
from vitehub_chat.testing.scripted_channel import SIGNATURE, ScriptedChannel, said


class Watched(ScriptedChannel):
    """A channel that notes whether it had to read a request."""

    async def parse(self, request: ChannelRequest, /) -> Any:
        """Note the body."""
        READ.append(request.body)
        return await super().parse(request)


READ: list[bytes] = []


def code_of(body: bytes) -> str:
    return str(json.loads(body)["error"]["code"])


@pytest.mark.parametrize("signature", ["", "0" * 64, "ü"])
async def test_a_bad_signature_is_401_and_nothing_is_read(
    set_any_scene: SetScene, signature: str
) -> None:
    READ.clear()
    scene = await set_any_scene(channel=Watched())
    forged = attrs.evolve(scene.channel.request(said("a")), headers={SIGNATURE: signature})
    answer = await scene.host.handle("scripted", forged)
    assert (answer.status, code_of(answer.body)) == (401, "unauthenticated")
    await scene.quiet()
    assert (READ, scene.driver.calls) == ([], [])


async def test_a_signature_holds_for_its_own_body_alone(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    signed = scene.channel.request(said("a"))
    other = scene.channel.request(said("b"))
    changed = attrs.evolve(signed, body=other.body)
    assert (await scene.host.handle("scripted", changed)).status == 401


async def test_a_channel_that_cannot_tell_has_not_verified(
    set_any_scene: SetScene, caplog: pytest.LogCaptureFixture
) -> None:
    class Confused(ScriptedChannel):
        async def verify(self, request: ChannelRequest, /) -> bool:
            raise LookupError(request.headers["x-missing"])

    scene = await set_any_scene(channel=Confused())
    assert await scene.tell(said("a")) == 401
    assert "chat.turn.failed" in caplog.text


async def test_truthy_is_not_verified(set_stateless_scene: SetScene) -> None:
    class Careless(ScriptedChannel):
        async def verify(self, request: ChannelRequest, /) -> bool:
            return request.headers  # type: ignore[return-value]  # as untyped code may do

    scene = await set_stateless_scene(channel=Careless())
    assert await scene.tell(said("a")) == 401


async def test_header_names_are_told_in_lower_case() -> None:
    assert ChannelRequest(headers={"X-Hub-Signature": "s"}).headers == {"x-hub-signature": "s"}


@pytest.mark.parametrize(
    ("kind", "change", "status"),
    [
        ("other", {}, 404),
        ("scripted", {"path": "/events"}, 404),
        ("scripted", {"method": "GET"}, 405),
    ],
)
async def test_unknown_places_and_methods_are_refused(
    set_stateless_scene: SetScene, kind: str, change: dict[str, Any], status: int
) -> None:
    scene = await set_stateless_scene()
    request = attrs.evolve(scene.channel.request(said("a")), **change)
    assert (await scene.host.handle(kind, request)).status == status


async def test_a_body_that_cannot_be_understood_is_400(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    sign = scene.channel._sign
    request = ChannelRequest(headers={SIGNATURE: sign(b"no json")}, body=b"no json")
    answer = await scene.host.handle("scripted", request)
    assert (answer.status, code_of(answer.body)) == (400, "invalid_input")


async def test_a_fault_of_the_channel_is_500_and_says_nothing(
    set_any_scene: SetScene, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(ScriptedChannel):
        async def parse(self, request: ChannelRequest, /) -> Any:
            raise RuntimeError(request.body.decode())

    scene = await set_any_scene(channel=Broken())
    answer = await scene.host.handle("scripted", scene.channel.request(said("hidden")))
    assert (answer.status, answer.body) == (500, b'{"error":{"code":"internal"}}')
    assert "hidden" not in caplog.text


async def test_a_message_that_cannot_be_one_is_passed_over_and_the_others_are_answered(
    set_any_scene: SetScene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "vitehub_chat.conversation")
    scene = await set_any_scene(trigger_history=None)
    status = await scene.tell(said("a"), said("b" * 600), said("c", thread="t\x001"), said("d"))
    assert status == 200
    await scene.posted("a[]", "d[]")
    assert [record.getMessage() for record in caplog.records] == ["chat.turn.failed"] * 2


async def test_an_accepted_request_is_answered_with_an_empty_200(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    answer = await scene.host.handle("scripted", scene.channel.request(said("a")))
    assert (answer.status, answer.body) == (200, b"")
    assert (await scene.host.handle("scripted", scene.channel.request())).status == 200


async def test_a_message_is_stored_before_its_request_is_answered(set_scene: SetScene) -> None:
    scene = await set_scene()
    reading = scene.platform.hold("backfill")
    await scene.tell(said("a"))
    assert scene.state is not None
    entries = await scene.state.run_read(  # type: ignore[attr-defined]
        lambda tx: [entry.claim_id for entry in tx.entries.open_in(scene.key().encode())]
    )
    assert entries == ["scripted:a"]
    reading.set()
    await scene.posted("a[]")


async def test_a_state_that_is_away_is_503_and_asks_to_come_again(
    set_scene: SetScene,
) -> None:
    scene = await set_scene()
    await scene.host.start()
    assert scene.state is not None
    await scene.state.aclose()
    answer = await scene.host.handle("scripted", scene.channel.request(said("a")))
    assert (answer.status, code_of(answer.body)) == (503, "state_closed")
    assert answer.headers["retry-after"] == "5"
    await scene.state.__aenter__()
    assert await scene.tell(said("a")) == 200
    await scene.posted("a[]")


async def test_a_host_that_closes_takes_nothing_more(set_any_scene: SetScene) -> None:
    scene = await set_any_scene()
    await scene.host.aclose()
    assert await scene.tell(said("a")) == 503
    await scene.host.start()
    assert await scene.tell(said("a")) == 200
    await scene.posted("a[]")


async def test_a_channel_may_have_several_paths(set_stateless_scene: SetScene) -> None:
    class TwoPaths(ScriptedChannel):
        def paths(self) -> tuple[str, ...]:
            return ("/events", "/actions")

    scene = await set_stateless_scene(channel=TwoPaths())
    request = scene.channel.request(said("a"))
    statuses = [
        (await scene.host.handle("scripted", attrs.evolve(request, path=path))).status
        for path in ("", "/events", "/actions", "/else")
    ]
    assert statuses == [404, 200, 200, 404]


def test_a_host_needs_a_channel() -> None:
    with pytest.raises(ConfigError) as caught:
        ChannelHost(define_agent(name="a", driver="echo", capabilities=[chat()]))
    assert caught.value.path == "channels"


def test_two_channels_of_one_kind_are_refused() -> None:
    agent = define_agent(name="a", channels=[ScriptedChannel(), ScriptedChannel()])
    with pytest.raises(ConfigError) as caught:
        ChannelHost(agent)
    assert caught.value.path == "channels[1]"
    other = define_agent(name="a", channels=[ScriptedChannel(), ScriptedChannel(kind="second")])
    assert list(ChannelHost(other).channels) == ["scripted", "second"]


@pytest.mark.parametrize("kind", ["", "a/b", "a b", "ä"])
def test_a_kind_is_a_name(kind: str) -> None:
    with pytest.raises(ConfigError):
        ChannelHost(define_agent(name="a", channels=[ScriptedChannel(kind=kind)]))


def test_what_lacks_something_is_no_channel() -> None:
    class Half:
        kind = "half"

        async def parse(self, _request: ChannelRequest, /) -> list[Inbound]:
            return []

    with pytest.raises(ConfigError) as caught:
        ChannelHost(define_agent(name="a", channels=[Half()]))
    assert "verify" in caught.value.message


async def test_a_definition_names_its_channel() -> None:
    with channels.using(pigeon=ScriptedChannel):
        agent = define_agent(
            name="a",
            driver="echo",
            channels=[{"use": "pigeon", "kind": "loft", "secret": "s"}],
        )
    async with agent, ChannelHost(agent) as host:
        channel = agent.channels[0]
        assert (await host.handle("loft", channel.request(said("a")))).status == 200
        await channel.platform.posted("You said: a")
    assert "secret='s'" not in repr(channel)
