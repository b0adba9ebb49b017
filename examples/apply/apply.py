"""What does an update change? The same as apply.sh, in Python and in memory."""

from pathlib import Path

import evergraph as eg

folder = Path(__file__).parent

with eg.open() as db:
    db.update((folder / "load.ru").read_text())
    change = db.update((folder / "rename.ru").read_text())
    print("change", change.sequence)
    for quad in sorted(map(str, change.deleted)):
        print("-", quad)
    for quad in sorted(map(str, change.inserted)):
        print("+", quad)
