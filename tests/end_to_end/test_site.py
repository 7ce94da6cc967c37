"""The documentation site: one command builds it, every document is listed, and a link without a target fails the build."""

from pathlib import Path

import pytest

from scripts import site


def test_site_has_every_page_and_no_broken_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.main([str(tmp_path / "site")]) == 0, capsys.readouterr().err
    for page in ("index.html", "docs/tutorial/index.html", "docs/reference/index.html", "app/index.html"):
        assert (tmp_path / "site" / page).is_file()
    summary = (tmp_path / "site" / "llms.txt").read_text()
    assert "[Tutorial](docs/tutorial.md)" in summary
    full = (tmp_path / "site" / "llms-full.txt").read_text()
    assert "# Build a pipeline" in full
    assert "# Move from RQ to Batuta" in full


def test_link_without_a_target_is_reported(tmp_path: Path) -> None:
    (tmp_path / "llms.txt").write_text("- [A page](gone.md)\n")
    (tmp_path / "index.html").write_text('<a href="#part">a</a><a href="other.html#x">b</a><a href="gone/">c</a>')
    (tmp_path / "other.html").write_text(
        '<h2 id="y">y</h2><a href="index.html">back</a><a href="https://a.example">d</a>'
    )
    assert list(site.broken_links(tmp_path)) == [
        "index.html: #part leads nowhere",
        "index.html: gone/ leads nowhere",
        "index.html: other.html#x leads nowhere",
        "llms.txt: gone.md leads nowhere",
    ]


def test_every_document_is_listed() -> None:
    listed = {page.path for page in site.pages()}
    documents = {file.relative_to(site.ROOT).as_posix() for file in site.documents()}
    decisions = {name for name in documents if name.startswith("docs/decisions/")}
    assert documents - decisions - listed - {"CHANGELOG.md", "CONTRIBUTING.md", "docs/README.md"} == set()
