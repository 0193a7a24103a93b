"""The PHP library, the WordPress plug-in and the examples: syntax, style, tests behind a running server."""

import glob
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.path.join(ROOT, "php/library")


def checks(binary):
    return [
        ("php_reads_every_file", php_reads_every_file),
        ("the_library_is_written_as_psr_12_says", style_is_psr_12),
        ("the_librarys_tests_pass_behind_the_server", lambda: tests_pass(binary)),
    ]


def php_reads_every_file():
    files = [path for folder in ("php", "apps/files", "demo", "examples") for path in glob.glob(f"{ROOT}/{folder}/**/*.php", recursive=True)]
    assert len(files) > 50, f"only {len(files)} files"
    for path in files:
        ran("php", "-l", path)


def style_is_psr_12():
    ran("phpcs", "-q", "-n", cwd=LIBRARY)


def tests_pass(binary):
    said = ran("phpunit", cwd=LIBRARY, env={**os.environ, "MAYFLY_BINARY": binary})
    counted = re.search(r"OK \((\d+) tests", said)
    assert counted and int(counted[1]) > 50, said[-2000:]


def ran(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, f"{' '.join(command[:3])}: {(done.stdout + done.stderr)[-3000:]}"
    return done.stdout
