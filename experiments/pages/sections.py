"""Sections of a page that were not measured again stay as they stand on it, with the commit that measured them."""

import re
from pathlib import Path

COMMIT = re.compile(r"commit ([0-9a-f]{40})")
SAID = "Measured at commit "


def kept(page: Path, heading: str) -> str:
    """The section under this heading as a page has it, with the commit of that page; nothing where it has none."""
    text = page.read_text() if page.is_file() else ""
    begin = text.find(f"\n## {heading}\n")
    if begin < 0:
        return ""
    end = text.find("\n## ", begin + 1)
    section = text[begin : len(text) if end < 0 else end].strip("\n")
    made = COMMIT.search(text[: text.find("\n## ")])
    if SAID not in section and made:
        title, _, rest = section.partition("\n")
        section = f"{title}\n\n{SAID}{made.group(1)}.\n{rest}"
    return f"\n{section}\n"
