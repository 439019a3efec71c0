"""One JSON document on standard output, printed result by result."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pairmi.spread.units import Incomplete


def document(header: Mapping[str, Any], results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Its pieces, begun with the first result: bad input prints nothing. Its end comes also where some failed, or on Ctrl-C."""
    opening = before = json.dumps(header)[:-1] + ', "results": ['
    incomplete: Incomplete | KeyboardInterrupt | None = None
    try:
        for result in results:
            yield before + json.dumps(result)
            before = ",\n"
    except (Incomplete, KeyboardInterrupt) as error:
        incomplete = error
    yield (opening if before == opening else "") + "]}\n"
    if incomplete is not None:
        raise incomplete
