"""Whether a version in the lock has a known vulnerability, asked of the database at osv.dev.

    python -m audit.vulnerabilities

Exit status: 0 nothing known, 1 something known, 2 the database could not be asked, which is not the
same as nothing known.
"""

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-torch.txt")
SERVICE = "https://api.osv.dev/v1/querybatch"
PATIENCE = 30


def locked(root=ROOT):
    """Names and versions of all that the locks pin, sorted."""
    pinned = re.compile(r"^([A-Za-z0-9._-]+)(?:\[.*?\])?==([^\s;\\]+)", re.MULTILINE)
    text = "\n".join((root / name).read_text(encoding="utf-8") for name in LOCKS)
    return sorted(set(pinned.findall(text)))


def known(packages, service=SERVICE):
    """Map each package with known vulnerabilities to their numbers; OSError if nobody answers."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
        for name, version in packages
    ]
    request = urllib.request.Request(
        service, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        results = json.load(answer)["results"]
    if len(results) != len(packages):
        raise OSError(f"{len(results)} answers to {len(packages)} questions")
    return {
        package: [found["id"] for found in result["vulns"]]
        for package, result in zip(packages, results, strict=True)
        if result.get("vulns")
    }


def main(service=SERVICE, root=ROOT):
    """Ask and print; return the exit status."""
    packages = locked(root)
    try:
        found = known(packages, service)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"Not scanned: the database at {service} could not be asked ({error}).")
        return 2
    for (name, version), numbers in found.items():
        print(f"{name} {version}: {', '.join(numbers)} – see https://osv.dev/list?q={name}")
    print(f"{len(packages)} packages asked about, {len(found)} with known vulnerabilities.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
