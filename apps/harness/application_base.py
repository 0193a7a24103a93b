"""Applications of other projects, each put into a folder and installed as a person would: by its own installer, in a browser or at the
command line. Where their files are taken from is said by `--sources` (apps/README.md); nothing of them is in this project."""

import os
import re
import shutil
import subprocess

SECONDS = 300
PASSWORD = "Correct-Horse-9"


class Source:
    """Files in a folder `NAME` below `sources`, or in a Git repository `OWNER+NAME/repo`, which may lack some large ones."""

    def __init__(self, name, part=""):
        self.name = name
        self.part = part

    def place(self, sources):
        for folder in (self.name.partition("/")[2], self.name.replace("/", "+"), f"{self.name.replace('/', '+')}/repo"):
            path = os.path.join(sources, folder)
            if os.path.isfile(os.path.join(path, "HEAD")) or os.path.isdir(os.path.join(path, self.part)) and not os.path.isdir(os.path.join(path, "repo")):
                return path
        return None

    def put(self, sources, target):
        path = self.place(sources)
        if not os.path.isfile(os.path.join(path, "HEAD")):
            shutil.copytree(os.path.join(path, self.part), target, dirs_exist_ok=True, symlinks=True)
            return
        git = ["git", "--git-dir", path]
        listed = subprocess.run([*git, "ls-tree", "-rz", "HEAD", f"{self.part}/" if self.part else "."], check=True, capture_output=True, text=True)
        files = [line.split("\t", 1) for line in listed.stdout.split("\0") if " blob " in line]
        asked = "".join(f"{about.split()[2]}\n" for about, _ in files)
        told = subprocess.run([*git, "cat-file", "--batch"], input=asked.encode(), capture_output=True, timeout=SECONDS).stdout
        at = 0
        for _, name in files:
            end = told.index(b"\n", at)
            size = told[at:end].split()
            at = end + 1
            if size[1] == b"missing":
                continue
            content = told[at : at + int(size[2])]
            at += len(content) + 1
            file = os.path.join(target, os.path.relpath(name, self.part or "."))
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "wb") as out:
                out.write(content)


class Application:
    """`skip` are addresses that a crawl leaves out, `normal` what differs each time in a text, `starts` where a crawl begins."""

    source = None
    has_database, has_sqlite, has_postgres = True, False, False
    skip = r"(?!)"
    normal = r"(?!)"
    starts = ("/",)
    # The script that runs statements of the trial; where `serve` runs a few scripts alone, one of those.
    door = "trial.php"

    def put(self, site):
        self.source.put(site.options.sources, site.root)

    def install(self, site):
        raise NotImplementedError

    def seed(self, site):
        pass

    def after(self, site):
        """Statements that a program runs after a write, since the application keeps copies in other tables."""
        return []

    def own(self, site):
        """Pairs of a name and a function that makes the change, at the server under test."""
        return []


def php(site, *command, environment=None):
    """PHP's command line as the account of the site."""
    done = subprocess.run(
        ["setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups", "php", *command],
        capture_output=True, text=True, timeout=SECONDS, cwd=site.root, env=os.environ | (environment or {}),
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"{command[:2]}: {done.stdout[:600]} ... {done.stdout[-900:]} {done.stderr[-1500:]}")
    return done.stdout


def words_of(text):
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def installed(answer, word):
    if word not in answer.text:
        raise RuntimeError(f"the installer answers {answer.status}: {words_of(answer.text)[-1500:]}")


def remove(site, *names):
    for name in names:
        path = os.path.join(site.root, name)
        (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
