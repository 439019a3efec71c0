"""JSON on standard output: one document, printed result by result."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pairmi.spread.units import Incomplete


def dumped(value: Any, ensure_ascii: bool = True) -> str:
    """As JSON, which has no infinities and no NaN: null in their place."""
    return json.dumps(_plain(value), ensure_ascii=ensure_ascii, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def document(header: Mapping[str, Any], results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Its pieces, begun with the first result: bad input prints nothing. Its end comes also where some failed, or on Ctrl-C."""
    opening = before = dumped(header)[:-1] + ', "results": ['
    incomplete: Incomplete | KeyboardInterrupt | None = None
    try:
        for result in results:
            yield before + dumped(result)
            before = ",\n"
    except (Incomplete, KeyboardInterrupt) as error:
        incomplete = error
    yield (opening if before == opening else "") + "]}\n"
    if incomplete is not None:
        raise incomplete
