"""Channels as routes of a Starlette application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette

from vitehub_chat import Agent, chat, define_agent
from vitehub_chat.channels import MountedChannels, mount_channels
from vitehub_chat.channels.values import ChannelRequest
from vitehub_chat.errors import ConfigError
from vitehub_chat.testing.scripted_channel import ScriptedChannel, said


def agent_of(*channels: ScriptedChannel) -> Agent:
    return define_agent(
        name="a", driver="echo", capabilities=[chat()], channels=list(channels), state="memory:"
    )


@asynccontextmanager
async def client_of(app: Starlette) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://host") as client:
        yield client


async def send(client: httpx2.AsyncClient, url: str, request: ChannelRequest) -> httpx2.Response:
    return await client.post(url, content=request.body, headers=dict(request.headers))


async def test_a_post_to_the_path_of_a_kind_is_answered_on_the_platform() -> None:
    app, channel = Starlette(), ScriptedChannel()
    async with agent_of(channel) as agent:
        mounted = mount_channels(app, agent)
        async with client_of(app) as client:
            response = await send(client, "/channels/scripted", channel.request(said("Hello")))
            assert (response.status_code, response.content) == (200, b"")
            await channel.platform.posted("You said: Hello")
        await mounted.aclose()


@pytest.mark.parametrize("path", ["/hooks", "/hooks/"])
async def test_every_kind_has_its_route_below_the_path(path: str) -> None:
    app = Starlette()
    first, second = ScriptedChannel(), ScriptedChannel(kind="second", secret="other")  # noqa: S106
    async with agent_of(first, second) as agent:
        mounted = mount_channels(app, agent, path)
        async with client_of(app) as client:
            right = await send(client, "/hooks/second", second.request(said("Hello")))
            wrong = await send(client, "/hooks/second", first.request(said("Hello")))
            none = await send(client, "/hooks/third", first.request(said("Hello")))
            get = await client.get("/hooks/scripted")
        assert [r.status_code for r in (right, wrong, none, get)] == [200, 401, 404, 405]
        await mounted.aclose()


async def test_a_body_that_is_too_large_is_413() -> None:
    app, channel = Starlette(), ScriptedChannel()
    async with agent_of(channel) as agent:
        mounted = mount_channels(app, agent, max_body_bytes=1000)
        async with client_of(app) as client:
            response = await send(client, "/channels/scripted", channel.request(said("a" * 1000)))
            assert response.status_code == 413
            small = await send(client, "/channels/scripted", channel.request())
            assert small.status_code == 200
        await mounted.aclose()


async def test_the_lifespan_of_the_application_opens_and_closes_all() -> None:
    channel = ScriptedChannel()
    agent = agent_of(channel)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with mounted.lifespan(app):
            yield

    app = Starlette(lifespan=lifespan)
    mounted: MountedChannels = mount_channels(app, agent)
    async with app.router.lifespan_context(app), client_of(app) as client:
        await send(client, "/channels/scripted", channel.request(said("Hello")))
    assert channel.platform.texts("t1") == ["You said: Hello"]


def test_an_agent_without_channels_cannot_be_mounted() -> None:
    with pytest.raises(ConfigError):
        mount_channels(Starlette(), agent_of())
