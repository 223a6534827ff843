"""Values of keys, as the contract offers them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from vitehub_chat.errors import InputError
from vitehub_chat.model.json_text import Json, decode_json
from vitehub_chat.model.keys import ConversationKey
from vitehub_chat.state.contract import NO_CONTEXT, StateContext
from vitehub_chat.state.needs import Needs
from vitehub_chat.state.steps import key_values
from vitehub_chat.state.steps.key_values import ValuePlace, encode_value, expiry_of, place_of
from vitehub_chat.state.stores.store import Store


class KeyValues(Store, area="values"):
    """`KeyValue`."""

    async def get(
        self, key: str, /, *, scope: ConversationKey | None = None, ctx: StateContext = NO_CONTEXT
    ) -> Json:
        """Carry out `KeyValue.get`."""
        place, now = place_of(key, scope), self._now(ctx)
        return await self._read(
            lambda tx, now: key_values.get(tx, place, now), ctx, _needs(place, now)
        )

    async def set(
        self,
        key: str,
        /,
        *,
        value: Json,
        ttl: timedelta | None = None,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> None:
        """Carry out `KeyValue.set`."""
        place, now = place_of(key, scope), self._now(ctx)
        body, expires_at = encode_value(value, key), expiry_of(ttl, now)
        await self._write(
            lambda tx, now: key_values.put(tx, place, body, expires_at, now),
            ctx,
            _needs(place, now),
        )

    async def set_if_absent(
        self,
        key: str,
        /,
        *,
        value: Json,
        ttl: timedelta | None = None,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> bool:
        """Carry out `KeyValue.set_if_absent`."""
        place, now = place_of(key, scope), self._now(ctx)
        body, expires_at = encode_value(value, key), expiry_of(ttl, now)
        return await self._write(
            lambda tx, now: key_values.put_if_absent(tx, place, body, expires_at, now),
            ctx,
            _needs(place, now),
        )

    async def compare_and_set(
        self,
        key: str,
        /,
        *,
        expected: Json,
        value: Json,
        ttl: timedelta | None = None,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> bool:
        """Carry out `KeyValue.compare_and_set`."""
        place, now = place_of(key, scope), self._now(ctx)
        before, body = encode_value(expected, key), encode_value(value, key)
        expires_at = expiry_of(ttl, now)
        return await self._write(
            lambda tx, now: key_values.put_if_equal(tx, place, before, body, expires_at, now),
            ctx,
            _needs(place, now),
        )

    async def compare_and_delete(
        self,
        key: str,
        /,
        *,
        expected: Json,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> bool:
        """Carry out `KeyValue.compare_and_delete`."""
        place, now = place_of(key, scope), self._now(ctx)
        before = encode_value(expected, key)
        return await self._write(
            lambda tx, now: key_values.delete_if_equal(tx, place, before, now),
            ctx,
            _needs(place, now),
        )

    async def delete(
        self, key: str, /, *, scope: ConversationKey | None = None, ctx: StateContext = NO_CONTEXT
    ) -> bool:
        """Carry out `KeyValue.delete`."""
        place, now = place_of(key, scope), self._now(ctx)
        return await self._write(
            lambda tx, now: key_values.delete(tx, place, now), ctx, _needs(place, now)
        )

    async def append_to_list(
        self,
        key: str,
        /,
        *,
        items: Sequence[Json],
        max_length: int | None = None,
        ttl: timedelta | None = None,
        scope: ConversationKey | None = None,
        ctx: StateContext = NO_CONTEXT,
    ) -> int:
        """Carry out `KeyValue.append_to_list`."""
        place, now = place_of(key, scope), self._now(ctx)
        added, limit, expires_at = _items(items, key), _length(max_length), expiry_of(ttl, now)
        if not added:
            return len(await self.get_list(key, scope=scope, ctx=ctx))
        return await self._write(
            lambda tx, now: key_values.append_to_list(tx, place, added, limit, expires_at, now),
            ctx,
            _needs(place, now),
        )

    async def get_list(
        self, key: str, /, *, scope: ConversationKey | None = None, ctx: StateContext = NO_CONTEXT
    ) -> Sequence[Json]:
        """Carry out `KeyValue.get_list`."""
        place, now = place_of(key, scope), self._now(ctx)
        return await self._read(
            lambda tx, now: key_values.get_list(tx, place, now), ctx, _needs(place, now)
        )

    async def pop_from_list(
        self, key: str, /, *, scope: ConversationKey | None = None, ctx: StateContext = NO_CONTEXT
    ) -> Json:
        """Carry out `KeyValue.pop_from_list`."""
        place, now = place_of(key, scope), self._now(ctx)
        return await self._write(
            lambda tx, now: key_values.pop_from_list(tx, place, now), ctx, _needs(place, now)
        )


def _needs(place: ValuePlace, now: int) -> Needs:
    return Needs(now=now, value=(place.home, place.name))


def _items(items: object, key: str) -> list[Json]:
    """Return the items of a list as they are now: the caller may change them later."""
    if not isinstance(items, list | tuple):
        raise InputError("must be a list", path="items")
    copied: list[Json] = decode_json(encode_value(items, key))
    return copied


def _length(max_length: object) -> int | None:
    if max_length is None:
        return None
    if not isinstance(max_length, int) or isinstance(max_length, bool) or max_length < 1:
        raise InputError("must be an integer >= 1", path="max_length")
    return max_length
