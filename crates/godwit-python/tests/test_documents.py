"""The examples of the documents, and the programs beside them, run and are typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import reference
from conftest import ROOT, Site

#: Documents with examples, and how many each has at least.
PROJECT = ROOT.parent.parent
DOCUMENTS = {ROOT / "README.md": 4, PROJECT / "README.md": 1, PROJECT / "docs" / "library.md": 2}


def blocks(document: Path) -> list[str]:
    """The Python in it."""
    parts = document.read_text(encoding="utf-8").split("```python\n")[1:]
    return [part.split("```")[0] for part in parts]


ALL = [
    pytest.param(block, id=f"{document.relative_to(PROJECT)}-{number}")
    for document in DOCUMENTS
    for number, block in enumerate(blocks(document))
]


def run(folder: Path, *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-X", "dev", *words], cwd=folder, capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_documents_have_examples() -> None:
    for document, least in DOCUMENTS.items():
        assert len(blocks(document)) >= least, document


@pytest.mark.parametrize("block", ALL)
def test_an_example_runs(site: Site, tmp_path: Path, block: str) -> None:
    (tmp_path / "ca.pem").write_bytes(site.authority.read_bytes())
    (tmp_path / "example.py").write_text(block.replace("https://localhost:4433", site.url), encoding="utf-8")
    assert run(tmp_path, "example.py")


def test_the_programs_run(site: Site) -> None:
    examples = ROOT / "examples"
    assert run(examples, "hello_quic.py") == "hello, world\n"
    said = run(examples, "hello_client.py", f"{site.url}/lines", str(site.authority))
    assert said.splitlines()[0].startswith("HTTP/") and "zweite" in said


def test_everything_is_typed(tmp_path: Path) -> None:
    for number, parameters in enumerate(ALL):
        (tmp_path / f"example_{number}.py").write_text(str(parameters.values[0]), encoding="utf-8")
    package = ROOT / "python" / "godwit"
    files = [*sorted(tmp_path.glob("*.py")), *sorted((ROOT / "examples").glob("*.py")), *sorted(package.rglob("*.py"))]
    run(tmp_path, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *map(str, files))


def test_the_stubs_are_what_there_is(tmp_path: Path) -> None:
    run(tmp_path, "-m", "mypy.stubtest", "godwit._godwit")


def test_the_reference_is_what_the_modules_say() -> None:
    assert reference.FILE.read_text(encoding="utf-8") == reference.text(), "run `python tests/reference.py`"
