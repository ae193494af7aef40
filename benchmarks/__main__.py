"""Run every benchmark: ``python -m benchmarks`` in the repository's root, or ``make bench``."""

import pathlib
import subprocess
import sys

failed = []
for script in sorted(pathlib.Path(__file__).parent.glob("bench_*.py")):
    print(f"== {script.stem}", flush=True)
    if subprocess.run([sys.executable, str(script)]).returncode:
        failed.append(script.stem)
if failed:
    sys.exit(f"goals missed: {', '.join(failed)}")
