"""The page docs/maps.md: every experiment writes its own section, and leaves the others alone."""

import re
from pathlib import Path

TITLE = "# Maps: what depends on what, and does it mean anything?\n\n"


def write_section(file: Path, experiment: str, text: str) -> None:
    """Put the section of an experiment, such as atom_mapping.py, in its place, or at the end."""
    first, last = f"<!-- {experiment} -->\n", f"<!-- end of {experiment} -->\n"
    page = file.read_text() if file.is_file() else TITLE
    if first not in page:
        page += f"\n{first}{last}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(re.sub(f"{first}.*?{last}", lambda _: f"{first}\n{text}\n{last}", page, flags=re.DOTALL))
