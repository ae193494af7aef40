"""Laws of the notebooks that the pages offer."""

import nbformat
import pytest
from nbclient import NotebookClient

from rederive_book import downloads

GITHUB = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "someone/book",
    "GITHUB_SHA": "0" * 40,
}
PAGE = """---
kernelspec:
  name: python3
---

# A page

```{code-cell} ipython3
:tags: [parameters]

seed = 1
```

```{code-cell} ipython3
print(6 * 7 + seed)
```
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A page as it was executed, with another seed than its own."""
    source = tmp_path_factory.mktemp("page") / "page.md"
    source.write_text(PAGE, encoding="utf-8")
    made = downloads.read(source)
    injected = nbformat.v4.new_code_cell("seed = 2", metadata={"tags": ["injected-parameters"]})
    made.cells.insert(2, injected)
    made.metadata["papermill"] = {"duration": 1.0}
    NotebookClient(made, kernel_name="python3").execute()
    return made


def printed(notebook):
    return [output.text for cell in notebook.cells for output in cell.get("outputs", [])]


def test_page_without_code_has_no_notebook(tmp_path):
    source = tmp_path / "page.md"
    source.write_text("# Words\n", encoding="utf-8")
    assert downloads.read(source) is None


def test_three_lines_set_up_an_empty_environment():
    lines = downloads.set_up("torch==2", {})
    assert [line.split()[:2] for line in lines] == [["pip", "install"]] * 3
    assert "requirements.lock" in lines[0] and "torch==2" in lines[1]
    assert "https" not in "".join(lines)


def test_lines_name_repository_and_commit_where_the_build_knows_them():
    lines = downloads.set_up("torch==2", GITHUB)
    where = "https://github.com/someone/book"
    assert lines[0].endswith(f"{where}/raw/{'0' * 40}/requirements.lock")
    assert lines[2].endswith(f"git+{where}@{'0' * 40}")


def test_clean_notebook_runs_from_the_parameters_of_the_page_and_gives_what_it_says(notebook):
    fresh = downloads.clean(notebook)
    assert downloads.executed(notebook) and not downloads.executed(fresh)
    assert printed(fresh) == [] and "papermill" not in fresh.metadata
    NotebookClient(fresh, kernel_name="python3").execute()
    assert printed(fresh) == ["43\n"]


def test_executed_notebook_keeps_its_results_and_its_parameters(notebook):
    assert printed(notebook) == ["44\n"]
    again = downloads.with_instructions(notebook, "how")
    NotebookClient(again, kernel_name="python3").execute()
    assert printed(again) == ["44\n"]


def test_notebook_begins_with_instructions_and_is_valid(notebook):
    text = downloads.instructions(downloads.set_up("torch==2", {}), checkout=True)
    assert "checkout" in text and text.count("pip install") == 3
    made = downloads.with_instructions(notebook, text)
    nbformat.validate(made)
    assert made.cells[0].source == text and made.cells[1:] == notebook.cells


def test_buttons_of_services_appear_only_with_an_address_and_colab_with_a_branch():
    assert downloads.services("chapters/a/b", {}) == {}
    assert set(downloads.services("chapters/a/b", GITHUB)) == {"Binder"}
    found = downloads.services("chapters/a/b", GITHUB | {downloads.BRANCH: "notebooks"})
    where = "https://colab.research.google.com/github/someone/book/blob/notebooks"
    assert found["Colab"] == f"{where}/chapters/a/b.ipynb"
    assert found["Binder"].startswith(f"https://mybinder.org/v2/gh/someone/book/{'0' * 40}?")


def test_other_hosts_than_github_have_no_buttons():
    elsewhere = GITHUB | {"GITHUB_SERVER_URL": "https://code.example.org"}
    assert downloads.services("chapters/a/b", elsewhere) == {}
