"""Add ARQMath to a checkout of ir_datasets: ``python apply.py CHECKOUT``. Running it again changes nothing."""

import shutil
import sys
from pathlib import Path

OVERLAY = Path(__file__).parent / "overlay"
NEW = ("ir_datasets/datasets/arqmath.py", "ir_datasets/docs/arqmath.yaml", "test/integration/arqmath.py")


def apply(checkout: Path) -> None:
    """Copy the new files, and add our entries to the files that all datasets share."""
    for name in NEW:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(OVERLAY / name, checkout / name)
    for name in ("ir_datasets/etc/downloads.json", "ir_datasets/etc/metadata.json"):
        content = (checkout / name).read_text()
        if '"arqmath"' not in content:  # the rest of the file stays as it is, to the byte
            ours = (OVERLAY / name).read_text().strip().removeprefix("{").removesuffix("}").rstrip()
            (checkout / name).write_text("{" + ours + "," + content.lstrip().removeprefix("{"))
    _append(checkout / "ir_datasets/datasets/__init__.py", "from . import arqmath\n")
    for shared in ("ir_datasets/docs/bibliography.bib", ".github/workflows/verify_downloads.yml"):
        if (checkout / shared).is_file():  # an installed package has no workflows
            _append(checkout / shared, "\n" + (OVERLAY / shared).read_text().lstrip("\n"))


def _append(path: Path, text: str) -> None:
    content = path.read_text()
    if text.strip() not in content:
        path.write_text(content + ("" if content.endswith("\n") else "\n") + text)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1], "ir_datasets", "datasets").is_dir():
        sys.exit("usage: python apply.py CHECKOUT, the folder of a clone of ir_datasets")
    apply(Path(sys.argv[1]))
