"""The documents around the book say what is so: commands, files, versions, licences, workflows."""

import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml

import rederive
from rederive_book.sources import papers

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "chapters").rglob("*.md")])
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def workflow(name: str) -> dict:
    found = yaml.safe_load(text(f".github/workflows/{name}.yml"))
    found["on"] = found.pop(True)  # YAML 1.1 reads the key `on` as a truth value
    return found


def steps() -> list[tuple[str, dict]]:
    return [
        (f"{path.name}: {name}", step)
        for path in WORKFLOWS
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
        for step in job["steps"]
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_make_command_that_is_named_exists(path):
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.M))
    assert named <= targets


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_links_of_a_document_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link]
    assert [link for link in inside if not (ROOT / link).exists()] == []


def test_map_of_the_repository_names_what_exists():
    section = text("README.md").split("## Map")[1].split("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 8
    assert [n for n in names if not list(ROOT.glob(n.replace("<folder>", "*").rstrip("/")))] == []


def test_three_plain_commands_stand_in_for_make():
    readme = text("README.md")
    assert "python lib/rederive_book/environment.py" in readme
    assert "-m rederive_book book" in readme
    assert "-m pytest" in readme


def test_smallest_python_is_the_same_everywhere():
    floor = tomllib.loads(text("pyproject.toml"))["project"]["requires-python"].removeprefix(">=")
    assert f"Python {floor} or newer" in text("README.md")
    assert f"expected Python {floor} or newer" in text("lib/rederive_book/environment.py")
    tried = workflow("ci")["jobs"]["book"]["strategy"]["matrix"]["python"]
    assert tried[0] == floor
    assert len(tried) == 2


def test_conda_environment_repeats_no_version():
    environment = yaml.safe_load(text("environment.yml"))
    floor = tomllib.loads(text("pyproject.toml"))["project"]["requires-python"].removeprefix(">=")
    python, pip = environment["dependencies"]
    assert pip == "pip"
    name, version = python.split("=")
    assert name == "python"
    assert [int(part) for part in version.split(".")] >= [int(part) for part in floor.split(".")]


def test_what_pip_cannot_check_by_hash_is_installed_after_what_it_can():
    installed = re.findall(r"pip install (.*)", text("postBuild"))
    assert [line.split("--")[-1] for line in installed] == [
        "requirement requirements.lock",
        "requirement requirements-torch.txt",
        "editable .",
    ]
    assert "--no-deps --require-hashes" in installed[0]
    assert "--hash" not in text("requirements-torch.txt")
    assert "requirements-torch.txt" in text("environment.yml")


def test_version_is_the_same_everywhere():
    citation = yaml.safe_load(text("CITATION.cff"))
    newest = re.search(r"^## (\S+) – (\S+)$", text("CHANGELOG.md"), re.M)
    assert citation["version"] == newest[1] == rederive.__version__
    assert str(citation["date-released"]) == newest[2]


def test_licences_are_named_where_they_apply():
    licence = text("LICENSE")
    assert "BSD 3-Clause License" in licence
    assert "https://creativecommons.org/licenses/by/4.0/legalcode" in licence
    assert tomllib.loads(text("pyproject.toml"))["project"]["license"] == "BSD-3-Clause"
    assert yaml.safe_load(text("CITATION.cff"))["license"] == ["BSD-3-Clause", "CC-BY-4.0"]


def test_papers_on_trial_are_credited():
    for paper in papers().values():
        for name in ("chapters/if-we-are-wrong.md", "CITATION.cff", "references.bib"):
            assert paper.arxiv in text(name), (paper.key, name)


def test_history_of_verdicts_is_dated_and_in_order():
    section = text("chapters/if-we-are-wrong.md").split("## History")[1].split("\n## ")[0]
    dates = re.findall(r"^\| (\d{4}-\d{2}-\d{2}) \|", section, re.M)
    assert dates
    assert [date.fromisoformat(day) for day in dates] == sorted(map(date.fromisoformat, dates))


def test_the_form_to_contest_a_verdict_is_the_one_that_the_book_names():
    form = yaml.safe_load(text(".github/ISSUE_TEMPLATE/contest-a-verdict.yml"))
    assert f"**{form['name']}**" in text("chapters/if-we-are-wrong.md")
    verdicts = next(part for part in form["body"] if part.get("id") == "verdict")
    assert verdicts["attributes"]["options"][:4] == ["holds", "amended", "refuted", "open"]


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.github-issue-forms", [path for path in FORMS if path.stem != "config"]),
        ("vendor.github-issue-config", [path for path in FORMS if path.stem == "config"]),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_files_keep_the_schema_of_those_who_read_them(schema, paths):
    assert paths
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    result = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_actions_are_pinned_by_commit_and_say_which_version_that_is():
    uses = [line for path in WORKFLOWS for line in path.read_text(encoding="utf-8").splitlines()]
    uses = [line.split("uses:")[1].strip() for line in uses if "uses:" in line]
    assert uses
    for line in uses:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_one_action_has_one_commit():
    uses = [step["uses"].split("@") for _, step in steps() if "uses" in step]
    commits = {}
    for action, commit in uses:
        commits.setdefault(action, set()).add(commit)
    assert all(len(found) == 1 for found in commits.values()), commits


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_read_only_and_publication_alone_may_write(path):
    found = workflow(path.stem)
    assert found["permissions"] in ({}, {"contents": "read"})
    assert "pull_request_target" not in found["on"]
    for job in found["jobs"].values():
        allowed = job.get("permissions", {})
        written = {name for name, right in allowed.items() if right == "write"}
        assert written == ({"pages", "id-token"} if path.stem == "publish" else set())


def test_checkouts_keep_no_credentials():
    checkouts = [step for _, step in steps() if step.get("uses", "").startswith("actions/checkout")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_no_command_is_written_by_an_expression():
    # An expression inside a command is replaced before the shell sees it: a way to inject code.
    assert [name for name, step in steps() if "${{" in step.get("run", "")] == []


def test_gpu_jobs_need_a_named_runner_and_never_run_on_forks():
    found = workflow("gpu")
    assert set(found["on"]) == {"schedule", "workflow_dispatch"}
    for job in found["jobs"].values():
        assert "vars.GPU_RUNNER != ''" in job["if"]
        assert "!github.event.repository.fork" in job["if"]
    assert found["jobs"]["gpu"]["runs-on"] == "${{ vars.GPU_RUNNER }}"


def test_gpu_results_are_compared_with_the_cpus_and_none_is_left_out():
    commands = "\n".join(s.get("run", "") for name, s in steps() if name == "gpu.yml: gpu")
    assert "make book PROFILE=full DEVICE=cuda" in commands
    assert "rederive_book compare cpu/claims.json _build/claims.json" in commands
    assert "--figures cpu/figures _build/figures" in commands
    assert "UNTRIED" not in commands


def test_only_a_successful_build_of_main_is_published():
    found = workflow("publish")
    assert found["on"]["workflow_run"]["workflows"] == [workflow("ci")["name"]]
    assert found["on"]["workflow_run"]["branches"] == ["main"]
    condition = found["jobs"]["pages"]["if"]
    assert "conclusion == 'success'" in condition
    assert "event != 'pull_request'" in condition
    assert "head_repository.full_name == github.repository" in condition


def test_published_artifacts_are_those_that_ci_keeps():
    kept = {
        step["with"]["name"].replace("${{ matrix.python }}", "3.11")
        for name, step in steps()
        if name.startswith("ci.yml") and "upload-artifact" in step.get("uses", "")
    }
    fetched = {
        step["with"]["name"]
        for name, step in steps()
        if name.startswith("publish.yml") and "download-artifact" in step.get("uses", "")
    }
    assert fetched == {"site", "ledger-3.11"} == kept
