#!/usr/bin/env python3
"""Compares Mayfly with Debian's Apache on the .htaccess files that applications ship.

    scripts/conformance/apache_applications.py FOLDER [--binary FILE] [--show] [--write-facts] [APPLICATION...]

FOLDER has a folder or a git repository for each application; nothing of it is changed. A tree of the same names is made
of each: its .htaccess files as they are (a file called htaccess.txt or the like where there is none), scripts that say which
one runs, and other files with their paths in them. Both servers are asked for each folder, for some files of each extension
in each folder that rules are about, for scripts with something behind them and for paths of no file. A server with
`htaccess on` is asked, so that what `serve` closes beside Apache is not compared.

It fails where Apache refuses a request (401, 403, 404, 405, 410) that Mayfly answers, or where Mayfly refuses more than 2 of
1,000 that Apache answers; `closed here` are scripts that a line is meant to keep from running, which Apache runs where its own
configuration names their handler.

application_facts.txt has for each application some paths and how Apache answers them: refused, by which script, or with the file.
Where both servers answer one otherwise, it is said: the application has other rules by now. `--write-facts` writes the file.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

import apache_htaccess as beside
import htaccess_sites

# Files by which an application offers its rules under another name.
OTHER_NAMES = ("htaccess.txt", ".htaccess.example", "htaccess.dist", ".htaccess.dist", "htaccess.example", "_htaccess", ".htaccess-dist",
               "htaccess-example.txt", ".htaccess.txt", "sample.htaccess", "htaccess", "htaccess_for_php.txt", "_.htaccess", "default.htaccess")
FACTS = os.path.join(beside.ROOT, "scripts/conformance/application_facts.txt")
FACTS_OF_EACH = 8
SCRIPT = re.compile(r"\.(?:php\d?|phtml|phar|inc\.php)$", re.IGNORECASE)
OF_EACH_EXTENSION = 2
# Folders that are asked for, of an application with more.
MAX_FOLDERS = 400
MAX_REQUESTS = 2500
# Lines by which scripts are meant not to run, which counts here and not in Apache, whose own configuration names PHP's handler.
NO_SCRIPTS = re.compile(r"^\s*(?:AddHandler|AddType text|ForceType|RemoveHandler|RemoveType|SetHandler|php_flag\s+engine)", re.MULTILINE | re.IGNORECASE)
# No folder is listed here: Apache's own configuration lists none either.
NO_LISTINGS = "<Directory {root}>\nOptions FollowSymLinks\n</Directory>\n"
MAX_STRICTER = 2 / 1000
# Paths of no file, behind each folder with rules and the root.
OF_NO_FILE = ("none", "none/", "none.php", "none.css", "a/b/c", "none.png", ".git/config", "x.sql", "none.php/x", "backup.zip")


def git_folder(folder):
    """The git directory of an application; None for a plain folder."""
    for name in ("repo/.git", "repo", ".git", ""):
        path = os.path.join(folder, name)
        if os.path.exists(os.path.join(path, "HEAD")) and os.path.isdir(os.path.join(path, "refs")):
            return path
    return None


def files_of(folder):
    """The names of an application's files, and a function that reads one."""
    repository = git_folder(folder)
    if repository is None:
        names = []
        for path, _, files in os.walk(folder):
            names += [os.path.relpath(os.path.join(path, file), folder) for file in files]

        def read(name):
            with open(os.path.join(folder, name), "rb") as file:
                return file.read()
    else:
        git = ["git", "--git-dir", repository]
        listed = subprocess.run([*git, "ls-tree", "-r", "-z", "--name-only", "HEAD"], stdout=subprocess.PIPE, check=True)
        names = [name.decode("utf-8", "surrogateescape") for name in listed.stdout.split(b"\0") if name]

        def read(name):
            return subprocess.run([*git, "show", f"HEAD:{name}"], stdout=subprocess.PIPE, check=True).stdout
    return names, read


def rules_of(names):
    """Which file becomes the .htaccess of which folder."""
    found = {}
    for name in names:
        folder, base = os.path.split(name)
        if base == ".htaccess":
            found[folder] = name
        elif base in OTHER_NAMES:
            found.setdefault(folder, name)
    return found


def top_of(rules, names):
    """The folder that a site would serve: `public` and the like, where only that one has rules and an index."""
    for folder in ("public", "web", "pub", "webroot", "upload", "src", "e107_files", "code", "public_html", "public/lists", "phpBB", "www"):
        index = f"{folder}/index.php"
        if index in names and "index.php" not in names:
            return folder
    return ""


def write_tree(folder, root):
    """The tree of an application; gives names and folders with rules."""
    names, read = files_of(folder)
    rules = rules_of(names)
    top = top_of(rules, set(names))
    begin = f"{top}/" if top else ""
    rules = {name[len(begin):] if name != top else "": source for name, source in rules.items() if name == top or name.startswith(begin)}
    kept = []
    for name in names:
        if not name.startswith(begin) or os.path.basename(name) == ".htaccess":
            continue
        own = name[len(begin):]
        path = os.path.join(root, own)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(htaccess_sites.PHP if SCRIPT.search(own) else f"the file {own}\n")
        kept.append(own)
    for own, source in rules.items():
        os.makedirs(os.path.join(root, own), exist_ok=True)
        with open(os.path.join(root, own, ".htaccess"), "wb") as file:
            file.write(read(source))
    for path, _, _ in os.walk(root):
        os.chmod(path, 0o755)
    return kept, sorted(rules)


def quoted(path):
    safe = b"/-._~!$&'()*+,;=:@"
    return "".join(chr(b) if b in safe or chr(b).isalnum() and b < 128 else f"%{b:02X}" for b in os.fsencode(path))


def requests_of(names, ruled):
    """The targets that are asked for."""
    folders = collections.defaultdict(list)
    for name in names:
        folders[os.path.dirname(name)].append(name)
    every = set(folders)
    for folder in list(folders):
        while folder:
            folder = os.path.dirname(folder)
            every.add(folder)
    targets = {}
    # Folders with rules, those in them and those at the top come first.
    is_near = lambda it: it in ruled or os.path.dirname(it) in ruled or it.count("/") == 0
    for folder in sorted(every, key=lambda it: (not is_near(it), it.count("/"), it))[:MAX_FOLDERS]:
        begin = f"/{quoted(folder)}/" if folder else "/"
        targets[begin] = None
        targets[begin.rstrip("/") or "/"] = None
        counts = collections.Counter()
        for name in sorted(folders[folder]):
            extension = os.path.splitext(name)[1].lower()
            counts[extension] += 1
            if counts[extension] > OF_EACH_EXTENSION and not is_near(folder):
                continue
            if counts[extension] > 4 * OF_EACH_EXTENSION:
                continue
            target = f"/{quoted(name)}"
            targets[target] = None
            if SCRIPT.search(name) and counts[extension] <= 2:
                targets[f"{target}/behind"] = None
                targets[f"{target}?a=b&c=http://x/"] = None
        if is_near(folder):
            targets.update(dict.fromkeys(begin + name for name in (*OF_NO_FILE, ".htaccess", "index.php", "index.php/behind")))
    return list(targets)[:MAX_REQUESTS]


def add_upload_scripts(root, names, ruled):
    """A script, a picture and a document in each folder with rules: as an upload would put it there."""
    for folder in ruled:
        for base in ("uploaded.php", "uploaded.phtml", "uploaded.jpg", "uploaded.pdf"):
            own = os.path.join(folder, base)
            with open(os.path.join(root, own), "w", encoding="utf-8") as file:
                file.write(htaccess_sites.PHP if SCRIPT.search(own) else f"the file {own}\n")
            names.append(own)


def fact(answer):
    """An answer in few words."""
    status, location, body, _ = answer
    if status in (301, 302, 303, 307, 308):
        return f"{status} {re.sub('^http://t[0-9]+/', '/', location)}"
    if status != 200:
        return str(status)
    return "script " + body.split('"')[1].replace("\\/", "/") if body.startswith('["') else "file"


def some_of(facts):
    """Paths that rules lead to a script or elsewhere, files that are refused, and, where there are too few, others."""
    kinds = {"led": {}, "refused": {}, "other": {}}
    for target, answer in facts:
        path = target.split("?")[0]
        if answer.startswith("500") or path.endswith("/.htaccess"):
            continue
        leads = answer.startswith("script ") and not path.startswith(answer[7:]) and answer != f"script {path}index.php"
        kind = "led" if leads or answer[0] == "3" and answer != f"301 {path}/" else "refused" if answer[0] == "4" else "other"
        if kind != "refused" or not path.endswith("/") and "/none" not in path:
            kinds[kind].setdefault((answer.split("?")[0], os.path.dirname(path) if kind == "refused" else ""), (target, answer))
    led, refused, other = ([*found.values()] for found in kinds.values())
    return (led[:3] + refused[:4] + other)[:FACTS_OF_EACH]


def read_facts():
    """The answers by application and target."""
    facts = collections.defaultdict(dict)
    with open(FACTS, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                name, target, answer = line.rstrip("\n").split("\t")
                facts[name][target] = answer
    return facts


def write_facts(facts):
    with open(FACTS, "w", encoding="utf-8") as file:
        file.write("# How Debian's Apache answers some requests to applications with the .htaccess files that they ship.\n")
        for name, answers in sorted(facts.items()):
            file.writelines(f"{name}\t{target}\t{answer}\n" for target, answer in answers.items())


def compare(number, folder, chosen, work):
    """The counts of one application."""
    name = os.path.basename(folder.rstrip("/"))
    root = os.path.join(work, "trees", str(number))
    os.makedirs(root)
    names, ruled = write_tree(folder, root)
    if not ruled:
        return None
    add_upload_scripts(root, names, ruled)
    with open(os.path.join(work, "users"), "w", encoding="utf-8"):
        pass
    theirs_port, ours_port = beside.free_port(), beside.free_port()
    extra = beside.APACHE_TREE.format(port=theirs_port, seed=number, root=root) + NO_LISTINGS.format(root=root)
    servers = beside.MAYFLY_TREE.format(port=ours_port, seed=number, root=root, work=work)
    config = os.path.join(work, "trees.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(beside.MAYFLY_TREES.format(work=work, servers=servers))
    texts = []
    for own in ruled:
        with open(os.path.join(root, own, ".htaccess"), encoding="utf-8", errors="replace") as file:
            texts.append(file.read())
    rules, known = "\n".join(texts), chosen.facts.get(name, {})
    counts, facts = collections.Counter(), []
    server = beside.running([os.path.abspath(chosen.binary), "-p", work, "-c", config], ours_port, os.path.join(work, "trees.out"))
    with beside.apache(work, os.path.join(work, "trees"), theirs_port, extra), server:
        askers = beside.Asker(theirs_port), beside.Asker(ours_port)
        for target in requests_of(names, set(ruled)):
            theirs, ours = (asker.ask(number, "GET", target, {}, "127.0.0.1") for asker in askers)
            found = beside.judge_tree(theirs, ours, "GET", rules)
            if found == "stricter" and ours[0] == 403 and fact(theirs).startswith("script ") and NO_SCRIPTS.search(rules):
                found = "closed here"
            counts[found] += 1
            facts.append((target, fact(theirs)))
            if known.get(target, fact(theirs)) != fact(theirs):
                print(f"{name}: {target} is not answered with {known[target]} any more, but with {fact(theirs)}")
            if found == "open" or chosen.show and found not in ("same", "both refuse"):
                print(f"{name}: {found}: {target}\n  Apache: {theirs}\n  Mayfly: {ours}")
    if chosen.write_facts:
        chosen.facts[name] = dict(some_of(facts))
    print(f"{name}: {len(ruled)} files, " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())), flush=True)
    shutil.rmtree(root)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("applications", nargs="*", metavar="APPLICATION")
    parser.add_argument("--binary", default=os.path.join(beside.ROOT, "target/debug/mayfly"))
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--write-facts", action="store_true")
    chosen = parser.parse_args()
    chosen.facts = read_facts()
    names = chosen.applications or sorted(os.listdir(chosen.folder))
    folders = [os.path.join(chosen.folder, name) for name in names]
    folders = [folder for folder in folders if os.path.isdir(folder)]
    total, applications = collections.Counter(), 0
    work = tempfile.mkdtemp(prefix="mayfly-htaccess-")
    try:
        os.chmod(work, 0o755)
        os.makedirs(os.path.join(work, "trees"))
        with beside.php_fpm(work):
            for number, folder in enumerate(folders):
                counts = compare(number, folder, chosen, work)
                applications += counts is not None
                total.update(counts or {})
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if chosen.write_facts:
        write_facts(chosen.facts)
    given = sum(total[kind] for kind in ("same", "stricter", "different", "other fields"))
    stricter = total["stricter"] / max(given, 1)
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(total.items()))
    print(f"{applications} applications: {shown}; {1000 * stricter:.1f} of 1,000 that Apache gives are refused")
    sys.exit(1 if total["open"] or total["no answer"] or stricter > MAX_STRICTER else 0)


if __name__ == "__main__":
    main()
