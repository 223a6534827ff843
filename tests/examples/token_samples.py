"""Samples: texts of the kinds that conversations consist of, to measure estimators on."""

# ruff: noqa: RUF001 - punctuation of other scripts

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Final

ENGLISH = """\
A conversation with an assistant rarely stays short. Somebody asks how to return a pair of shoes,
remembers halfway that the order was a gift, wants to know whether the refund goes to the person who
paid, and comes back two days later to ask about the parcel label. Each of these messages is small,
but the whole thread is sent again with every turn, so what was cheap at first becomes slow and
expensive. Counting tokens before the call is made tells when it is time to keep only the essence of
what was said: the order number, the decision to refund, the address, and the question that is still
open. An estimate is good enough for that, as long as it errs on the careful side and stays the same
from one call to the next.
"""

CHINESE = """\
与助手的对话很少是简短的。有人询问如何退回一双鞋，中途想起这份订单是一件礼物，想知道退款会不会退给付款的人，
两天以后又回来询问包裹的标签。每一条消息都不长，但是整个对话在每一轮都会重新发送，起初便宜的东西因此变得又慢又贵。
在调用之前先计算词元的数量，就可以知道什么时候应该只保留内容的要点：订单号码、退款的决定、收货地址，以及仍然没有答案的问题。
对于这个目的来说，估计已经足够好，只要它偏向谨慎的一边，并且不会在两次调用之间发生变化。
"""

JAPANESE = """\
アシスタントとの会話が短く終わることはめったにありません。靴の返品方法を尋ねた人が、途中でそれが贈り物だったことを思い出し、
返金は支払った人に戻るのかを知りたがり、二日後には荷物のラベルについて質問しに戻ってきます。一つ一つのメッセージは短いものですが、
会話全体が毎回送信されるため、最初は安かったものがだんだん遅く高価になります。呼び出しの前にトークンを数えておけば、
注文番号、返金の決定、住所、まだ答えのない質問といった要点だけを残すべき時期がわかります。
"""

CODE = '''\
from collections import OrderedDict


class LeastRecentlyUsed:
    """Keeps the newest entries; reading one makes it the newest."""

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._entries: OrderedDict[str, object] = OrderedDict()

    def get(self, key: str, default: object = None) -> object:
        if key not in self._entries:
            return default
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: str, value: object) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            oldest, _ = self._entries.popitem(last=False)
            print(f"dropped {oldest!r}, {len(self._entries)} left")


if __name__ == "__main__":
    cache = LeastRecentlyUsed(most=2)
    for number, name in enumerate(["one", "two", "three"], start=1):
        cache.put(name, number ** 2)
    assert cache.get("one") is None and cache.get("three") == 9
'''


def _json() -> str:
    orders = [
        {
            "id": f"ord_{number:06d}",
            "status": ["paid", "shipped", "returned"][number % 3],
            "total": {"amount": 1999 + 37 * number, "currency": "EUR"},
            "items": [{"sku": f"SH-{number}-{size}", "quantity": 1} for size in (42, 43)],
            "createdAt": f"2026-03-{number + 1:02d}T09:3{number % 10}:00.000Z",
        }
        for number in range(8)
    ]
    return json.dumps({"orders": orders, "nextCursor": None}, separators=(",", ":"))


def _base64() -> str:
    blocks = (hashlib.sha256(bytes([number])).digest() for number in range(30))
    return base64.b64encode(b"".join(blocks)).decode("ascii")


SAMPLES: Final[Mapping[str, str]] = {
    "English": ENGLISH,
    "Chinese": CHINESE,
    "Japanese": JAPANESE,
    "code": CODE,
    "JSON": _json(),
    "base64": _base64(),
}
"""A text of each kind, by its name."""
