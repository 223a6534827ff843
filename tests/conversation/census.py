"""A census: the objects of the package that are alive, by class, and what one of them holds.

Only these are counted: what the interpreter, a tool that measures it, or a plugin of the tests
keeps comes and goes as it likes.
"""

from __future__ import annotations

import asyncio
import gc
import types
from collections import Counter

_PACKAGE = "vitehub_chat"
_NOT_HELD = (type, types.ModuleType, types.FunctionType, types.MethodType, types.CodeType)
"""What leads from an object to the whole program."""


def alive() -> Counter[str]:
    """Return how many objects of each class of the package are alive, and tasks and futures."""
    gc.collect()
    kinds: Counter[type] = Counter(map(type, gc.get_objects()))
    return Counter({_name(kind): count for kind, count in kinds.items() if _is_counted(kind)})


def grown(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Return of which classes there are more objects than before, and how many more."""
    return dict(after - before)


def held_under(root: object) -> int:
    """Return how many objects the garbage collector finds under one, itself among them."""
    seen = {id(root)}
    to_visit = [root]
    count = 0
    while to_visit:
        visited = to_visit.pop()
        count += 1
        for found in gc.get_referents(visited):
            if id(found) not in seen and not isinstance(found, _NOT_HELD):
                seen.add(id(found))
                to_visit.append(found)
    return count


def _is_counted(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] == _PACKAGE or issubclass(kind, asyncio.Future)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
