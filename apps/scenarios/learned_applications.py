"""Real applications behind `mayfly serve FOLDER`, without a line written, on MariaDB, MySQL (MAYFLY_APPS_MYSQLD),
PostgreSQL (`--postgres`) or SQLite (`--sqlite`).

Of each, up to 20 pages that a guest finds are kept, and 20 changes are made: by the application's own forms, by the site's own PHP, and by
another program. After each, all pages are compared with PHP's own answers: at once, or two seconds after another program's write.
A kept page that comes from memory with other than PHP's answer was missed. `--learn=auto` for what `serve` does by itself.
"""

import traceback

from harness import learned
from harness.application_sites import APPLICATIONS
from harness.application_trial import Trial
from harness.workdir import Workdir


def run(options, report):
    if options.subject != "mayfly":
        report.note("left out: only Mayfly's own configuration learns")
        return
    names = options.applications.split(",") if options.applications else list(APPLICATIONS)
    trials = []
    for name in names:
        application = APPLICATIONS[name]
        if options.sqlite and not application.has_sqlite or options.sqlite and not application.has_database:
            continue
        if options.postgres and not application.has_postgres:
            continue
        if application.source and not application.source.place(options.sources):
            report.note(f"left out: {name}: there is no {application.source.name} in {options.sources} (--sources)")
            continue
        trials.append(Trial(name, application, options))
    for trial in trials:
        one(trial, report)
    report.note("application | database | pages | learned | changes | pairs | changed | missed | from memory at once | 2 s | 10 s | not learned")
    for trial in trials:
        report.note(" | ".join(map(str, (
            trial.name, trial.database, trial.pages, trial.learned, trial.changes, trial.pairs, trial.changed, trial.missed,
            trial.share("at once"), trial.share("2 s"), trial.share("10 s"), dict(trial.reasons),
        ))))  # fmt: skip


def one(trial, report):
    try:
        with Workdir(f"app-{trial.name}", keep=trial.options.keep, parent=learned.SITES) as workdir:
            trial.run(workdir)
            report.check(f"{trial.name}: the server ran to the end", not trial.wrong, trial.wrong)
            report.check(f"{trial.name}: no kept page is missed", trial.changed and not trial.missed, f"{trial.missed} of {trial.changed}")
    except Exception:
        report.check(f"{trial.name} ran to its end", False, traceback.format_exc())
