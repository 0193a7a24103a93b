#!/usr/bin/python3
"""Installs the package in fresh roots of Debian, runs the service there by its unit's own command lines and restrictions
(service.py says which), reloads, upgrades and downgrades under load with learned pages and pages on the disk, removes and purges it.

    trial.py [--packages FOLDER] [--next FOLDER] [--upgrades N] [--visitors PROGRAM] [--seconds N] [--architecture NAME] [SUITE...]

Suites are bookworm and trixie, where none is named. With `--architecture arm64` on another machine, the root's programs run
by qemu. `--next` has a package of a later version, to upgrade to, and back again, N times; without it, no upgrade is tried. The
visitors meanwhile are those of bench-visitors (cargo build -p bench-tools), 50 connections for each version of HTTP, who
ask for so many seconds: more, where other work slows the machine down. Everything runs in namespaces of its own for network, processes and mounts, so that no port and no process of this machine is touched. Needs root and
what `scripts/setup.sh trial` installs.
"""

import argparse
import collections
import glob
import http.client
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import php_trial  # noqa: E402
import roots  # noqa: E402
import service  # noqa: E402
from roots import WORK, wait_until  # noqa: E402

CONNECTIONS = 50
# These answers come from memory. The visitors' page is kept for a second: once in each, one of them waits for PHP.
FROM_MEMORY = ("HIT", "UPDATING", "STALE")
MEMORY_LEAST = 0.995
MAY_DIFFER = ("var/log/dpkg.log", "var/log/alternatives.log", "var/lib/dpkg/", "var/cache/ldconfig/", "var/cache/man/", "etc/ld.so.cache",
              "var/cache/debconf/", "run/notify", "var/log/nginx/", "var/lib/nginx/", "run/nginx.pid", "tmp/", "var/tmp/", "proc/", "dev/", "var/lib/php/sessions/", "etc/passwd-", "etc/group-", "etc/shadow-",
              "etc/gshadow-", "etc/subuid", "etc/subgid", "etc/.pwd.lock", "var/lib/logrotate/")
# The same for each visitor: `cache_shared` stores no page that differs.
PAGE = "<?php usleep(2000); $page = 'made by PHP as ' . posix_geteuid(); header('Content-Length: ' . strlen($page)); echo $page;"
TLS = """listen 443 ssl;
    listen 443 quic;
    http2 on;
    ssl_certificate /var/lib/mayfly/site.pem;
    ssl_certificate_key /var/lib/mayfly/site.key;
    listen [::]:80;"""
# Pages that are learned, and pages that stay on the disk for an hour; PHP makes both from a file that it writes when it is posted to.
KEPT = "fastcgi_cache_path /var/cache/mayfly keys_zone=kept:8m disk_timeout=10s;\n"
KEPT_LOCATIONS = php_trial.LOCATION.format(name="www").replace("fastcgi_cache pages", "fastcgi_cache kept")
POOL = "php_pool www {\n    user www-data;\n    workers 2;\n}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", default=os.path.join(WORK, "out"))
    parser.add_argument("--next")
    parser.add_argument("--upgrades", type=int, default=1)
    parser.add_argument("--visitors", default=os.path.join(WORK, "..", "debug", "bench-visitors"))
    parser.add_argument("--seconds", type=int, default=15, help="how long visitors ask; what is tried under them must be over before")
    parser.add_argument("--architecture", default=roots.own_architecture())
    parser.add_argument("--inside")
    parser.add_argument("suites", nargs="*", default=["bookworm", "trixie"])
    args = parser.parse_args()
    if args.inside:
        return trial(args.inside, args)
    failed = 0
    for suite in args.suites:
        print(f"\n{suite}", flush=True)
        root = roots.fresh(suite, os.path.join(WORK, "roots", suite), architecture=args.architecture)
        command = ["unshare", "--net", "--pid", "--mount", "--ipc", "--uts", "--fork", "--kill-child", sys.executable, os.path.abspath(__file__),
                   "--inside", root, "--packages", args.packages, "--upgrades", str(args.upgrades), "--visitors", args.visitors, "--seconds", str(args.seconds)]
        failed += subprocess.run(command + (["--next", args.next] if args.next else []), check=False).returncode != 0
    print(f"\n{len(args.suites) - failed} passed, {failed} failed")
    return failed != 0


class Root(roots.Root):
    def files(self):
        """All files and folders, but for those that dpkg itself keeps; and the accounts."""
        found = set()
        for folder, folders, names in os.walk(self.path):
            below = os.path.relpath(folder, self.path)
            for name in folders + names:
                path = os.path.normpath(os.path.join(below, name))
                if not any(path.startswith(it) or path == it.rstrip("/") for it in MAY_DIFFER):
                    found.add(path)
        return found | set(self.read("/etc/passwd").splitlines()) | set(self.read("/etc/group").splitlines())

    def install(self, folder):
        """Also the tools, where they are a package of their own: 0.1.0 has none."""
        files = []
        for name in ("mayfly", "mayfly-tools"):
            if glob.glob(os.path.join(folder, f"{name}_*.deb")):
                files.append(f"/tmp/{name}.deb")
                shutil.copy(roots.package_in(folder, self.architecture(), name), self.path + files[-1])
            else:
                self.run("dpkg", "--remove", name)
        said = self.run("dpkg", "--install", *files)
        if len(files) > 1:
            self.run("test", "-x", "/usr/bin/mayfly-tools")
        return said

    def architecture(self):
        return self.run("dpkg", "--print-architecture").strip()


def trial(path, args):
    root = Root(path)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    root.mount()
    service.prepare()
    before = root.files()
    step = Steps()
    step("installs, and takes no port", lambda: installs(root, args.packages))
    step("has units with little exposure, and a profile of AppArmor", lambda: is_confined(root))
    step("is left alone by needrestart", lambda: needrestart_leaves_it(root))
    step("takes over from nginx, and gives back", lambda: beside_nginx(root))
    step("a start lets go of the pipes that it was started with", lambda: lets_go_of_pipes(root))
    running = step("starts by its unit, read-only but for its own folders", lambda: starts(root))
    step("serves PHP as one account, as another", lambda: serves(root))
    step("learns a page, and keeps one on the disk", lambda: learns(root))
    step("writes nothing to /etc", lambda: etc_is_unwritten(root))
    step("reloads; a mistake is said, and the former configuration serves", lambda: reloads(root, running))
    step("rotates its logs", lambda: rotates(root))
    if args.next:
        step(f"is upgraded {args.upgrades} times under {CONNECTIONS} connections of each HTTP", lambda: upgrades(running, root, args))
        for name, folder in (("an earlier", args.packages), ("a later", args.next), ("an earlier", args.packages)):
            running = step(f"starts {name} version with the pages on the disk", lambda folder=folder: starts_another(running, root, folder))
        step("keeps the old program where the new one refuses", lambda: refuses(running, root, args))
    step("starts workers of a PHP that a package has upgraded", lambda: php_is_upgraded(root, args))
    step("serves another site as mayfly@shop, whose PHP has an account of its own", lambda: instance(root))
    step("is removed: it ends, its configuration stays", lambda: removes(root, running))
    step("is purged: nothing is left", lambda: purges(root, before))
    return step.failed != 0


class Steps:
    def __init__(self):
        self.failed = 0

    def __call__(self, name, run):
        try:
            result = run()
        except Exception as error:
            self.failed += 1
            print(f"  FAIL  {name}\n        {error}", flush=True)
            raise SystemExit(1) from error
        said = result if isinstance(result, str) else getattr(result, "pages", "")
        print(f"  ok    {name}" + (f" ({said})" if said else ""), flush=True)
        return result


def installs(root, folder):
    root.install(folder)
    assert root.run("mayfly", "--version").startswith("mayfly 0."), "no version"
    root.run("mayfly", "-t")
    listening = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout
    assert not listening, listening
    assert os.path.exists(root.path + "/usr/share/man/man1/mayfly-serve.1.gz")


def is_confined(root):
    """Judged by the programs of this machine, where it has them."""
    said = []
    for unit in ("mayfly.service", "mayfly@.service"):
        path = f"{root.path}/lib/systemd/system/{unit}"
        command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-300:] + done.stderr
        said.append(done.stdout.rsplit(":", 1)[1].split()[0])
    if shutil.which("apparmor_parser"):
        command = ["apparmor_parser", "--skip-kernel-load", "--skip-cache", "--base", "/etc/apparmor.d", root.path + "/etc/apparmor.d/usr.bin.mayfly"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return f"{', '.join(said)} of 10"


def needrestart_leaves_it(root):
    """Its answer for our units, as the file in its conf.d makes it."""
    program = ('our %nrconf; defined(do "/etc/needrestart/conf.d/mayfly.conf") or die "no file"; for my $unit (@ARGV) {'
               ' my ($found) = grep { $unit =~ /$_/ } keys %{$nrconf{override_rc}}; print "$unit ", ($found ? $nrconf{override_rc}{$found} : 1), "\\n"; }')
    said = root.run("perl", "-e", program, "mayfly.service", "mayfly@shop.service", "nginx.service").split()
    assert said == ["mayfly.service", "0", "mayfly@shop.service", "0", "nginx.service", "1"], said


def lets_go_of_pipes(root):
    """`mayfly -c FILE 2>&1 | cat` ends when the server serves, with a pool of PHP and without: as soon as the start without
    a pipe. The best of four; PHP's own start is waited for."""
    said = []
    for name, pool in (("without PHP", ""), ("with a pool of PHP", POOL)):
        root.write("/tmp/pipe.conf", f"pid /run/mayfly/pipe.pid;\nerror_log /dev/null;\n{pool}events {{}}\nhttp {{ server {{ listen 127.0.0.1:8082; }} }}\n")
        alone, piped = [], []
        for took, pipe in ((alone, ">/dev/null"), (piped, "| cat")) * 4:
            began = time.monotonic()
            root.run("sh", "-c", f"mayfly -c /tmp/pipe.conf 2>&1 {pipe}")
            took.append(time.monotonic() - began)
            root.run("mayfly", "-s", "quit", "-c", "/tmp/pipe.conf")
            wait_until(lambda: not os.path.exists(root.path + "/run/mayfly/pipe.pid"), "it has not ended")
        assert min(piped) < min(alone) + 0.2, f"{name}: {piped}, without a pipe {alone}"
        said.append(f"{name} {min(piped) * 1000:.0f} ms, without a pipe {min(alone) * 1000:.0f} ms")
    return "; ".join(said)


def beside_nginx(root):
    """As docs/guide/from-nginx.md says."""
    configuration = "/etc/nginx/nginx.conf"
    root.run("nginx")
    pid = root.read("/run/nginx.pid")
    root.run("mayfly", "check", configuration)
    code, said = root.run("mayfly", "-c", configuration, check=False)
    assert code != 0 and "80" in said, said
    assert root.read("/run/nginx.pid") == pid and ask()[0] == 200, "nginx does not serve on"
    root.run("nginx", "-s", "quit")
    wait_until(lambda: not os.path.exists(root.path + "/run/nginx.pid"), "nginx has not ended")
    root.run("mayfly", "-c", configuration)
    wait_until(lambda: answers(), "Mayfly does not serve nginx's configuration")
    assert "mayfly" in ask()[1]["Server"], ask()
    root.run("mayfly", "-s", "quit", "-c", configuration)
    wait_until(lambda: not os.path.exists(root.path + "/run/nginx.pid"), "Mayfly has not ended")
    root.run("nginx")
    wait_until(lambda: answers() and "nginx" in ask()[1]["Server"], "nginx does not serve again")
    root.run("nginx", "-s", "quit")
    wait_until(lambda: not os.path.exists(root.path + "/run/nginx.pid"), "nginx has not ended")


def instance(root):
    root.run("useradd", "--system", "--user-group", "--no-create-home", "shop")
    root.write("/var/www/shop/index.php", PAGE)
    root.run("chown", "-R", "shop:shop", "/var/www/shop")
    root.write("/etc/mayfly/sites/shop.env", 'SITE_OPTIONS="--listen 127.0.0.1:8081 --php-user shop"\n')
    running = service.Service(root.path, "mayfly@shop.service")
    try:
        status, _, body = ask(port=8081)
        assert status == 200 and body.split()[-1] == root.run("id", "-u", "shop").strip(), (status, body)
    finally:
        running.stop()
    shutil.rmtree(root.path + "/var/www/shop")
    root.run("userdel", "shop")


def answers():
    try:
        return ask()[0] == 200
    except OSError:
        return False


def starts(root):
    root.write("/var/www/site/index.php", PAGE)
    root.run("chown", "-R", "www-data:www-data", "/var/www/site")
    text = root.read("/etc/mayfly/mayfly.conf").replace("http {", POOL + "http {\n" + KEPT, 1).replace("error.log warn", "error.log info")
    root.write("/etc/mayfly/mayfly.conf", text)
    root.write("/srv/site/index.php", php_trial.FILE_PAGE)
    os.makedirs(root.path + "/srv/site/data")
    root.run("chown", "-R", "www-data:www-data", "/srv/site")
    site = root.read("/etc/mayfly/sites/example").replace("/var/www/example.org", "/var/www/site").replace("listen [::]:80;", TLS + KEPT_LOCATIONS)
    place = root.path + "/var/lib/mayfly/site"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=example.org",
               "-keyout", place + ".key", "-out", place + ".pem"]
    subprocess.run(command, check=True, capture_output=True)
    root.write("/etc/mayfly/sites/site.conf", site)
    return service.Service(root.path, "mayfly.service")


def ask(path="/", method="GET", port=80):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, headers={"Host": "example.org"})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def serves(root):
    status, _, body = ask()
    assert status == 200 and "made by PHP" in body, (status, body)
    account = body.split()[-1]
    assert root.run("id", "-u", "www-data").strip() == account, body
    # Two pages of two visitors are compared before one is stored, for a second.
    wait_until(lambda: ask()[1]["X-Cache"] == "HIT", f"the page is not stored: {ask()}")
    server = root.run("id", "-u", "mayfly").strip()
    accounts = {line.split()[0] for line in root.run("ps", "-eo", "uid,comm").splitlines() if "mayfly" in line}
    assert accounts == {"0", server}, accounts
    return f"PHP as {account}, the server as {server}"


def learns(root):
    status, _, body = ask("/www/page", "POST")
    assert status == 200, (status, body)
    wait_until(lambda: time.sleep(0.3) or ask("/www/page")[1]["X-Cache"] == "HIT", f"not learned: {ask('/www/page')}", 30)
    wait_until(lambda: ask("/kept-www/page")[1]["X-Cache"] == "HIT", f"not kept: {ask('/kept-www/page')}", 30)


def pages_of_another_version(root):
    """What a version has of the pages of the one before it: a write is seen at once, and what is kept for an hour is the same."""
    kept = ask("/kept-www/page")
    assert kept[0] == 200 and " version 1" in kept[2], kept
    learned = ask("/www/page")
    written = ask("/www/page", "POST")[2].rsplit(" ", 1)[1]
    shown = ask("/www/page")[2]
    assert shown.endswith(f" version {written}"), f"version {written} was written, and {shown} is shown"
    return f"kept page {kept[1]['X-Cache']}, learned page {learned[1]['X-Cache']}"


def starts_another(running, root, folder):
    """By a start, not by an upgrade: the folder on the disk is all that it has of the former one."""
    running.stop()
    root.install(folder)
    again = service.Service(root.path, "mayfly.service")
    wait_until(lambda: "were loaded" in root.read("/var/log/mayfly/error.log").rsplit("stopping", 1)[-1], "the folder was not read")
    again.pages = pages_of_another_version(root)
    learns(root)
    return again


def etc_is_unwritten(root):
    for folder, folders, names in os.walk(root.path + "/etc/mayfly"):
        for name in folders + names:
            assert name in ("mayfly.conf", "mime.types", "fastcgi.conf", "conf.d", "sites", "example", "site.conf"), os.path.join(folder, name)
    assert os.path.exists(root.path + "/run/mayfly/mayfly.pid") and os.path.exists(root.path + "/var/log/mayfly/access.log")


def reloads(root, running):
    site = root.read("/etc/mayfly/sites/site.conf")
    root.write("/etc/mayfly/sites/site.conf", site.replace("index index.php", "location = /reloaded { return 200 yes; }\n    index index.php"))
    code, said = running.reload()
    assert code == 0, said
    running.wait_for("RELOADING=1")
    running.wait_for("READY=1")
    assert ask("/reloaded")[2] == "yes"
    root.write("/etc/mayfly/conf.d/mistake.conf", "nonsense on;\n")
    code, said = running.reload()
    assert code != 0 and "nonsense" in said, (code, said)
    os.unlink(root.path + "/etc/mayfly/conf.d/mistake.conf")
    assert ask()[0] == 200


def rotates(root):
    root.run("logrotate", "--force", "/etc/logrotate.d/mayfly")
    assert os.path.exists(root.path + "/var/log/mayfly/access.log.1")
    ask("/after-rotation")
    deadline = time.monotonic() + 30
    while "/after-rotation" not in root.read("/var/log/mayfly/access.log"):
        assert time.monotonic() < deadline, "no line in the new log"
        time.sleep(0.1)


class Load:
    """Visitors who ask for one page again and again, over connections that they keep."""

    def __init__(self, args):
        self.runs, self.seconds = {}, args.seconds
        for protocol, port, options in (("http1", 80, []), ("http2", 443, ["--tls"]), ("http3", 443, [])):
            command = [args.visitors, protocol, f"127.0.0.1:{port}", "/", str(args.seconds), "--keepers", str(CONNECTIONS), *options]
            self.runs[protocol] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(1)

    def end(self):
        """What became of it, for each protocol: asked, failed, again, hits."""
        early = [protocol for protocol, run in self.runs.items() if run.poll() is not None]
        results = {}
        for protocol, run in self.runs.items():
            said = run.communicate(timeout=self.seconds + 120)[0]
            assert run.returncode == 0, f"{protocol}: {said}"
            results[protocol] = json.loads(said)["kept"]
        assert not early, f"{early} had ended before what was tried: {results}"
        return results


def sum_of(results):
    """One line on many loads; a failed request is an error, and so is too little from memory."""
    said, together = [], collections.Counter()
    for protocol in results[0]:
        asked, failed, again = (sum(it[protocol][name] for it in results) for name in ("asked", "failed", "again"))
        words = collections.Counter()
        for it in results:
            words.update(it[protocol]["cache"])
        together.update(words)
        longest = max(it[protocol]["longest_ms"] for it in results)
        assert not failed, f"{protocol}: {failed} of {asked} failed, such as {[it[protocol]['reason'] for it in results if it[protocol]['failed']]}"
        kinds = ", ".join(f"{word} {count}" for word, count in words.most_common())
        said.append(f"{protocol} {asked} requests, {again} sent again, longest {longest:.0f} ms ({kinds})")
    memory = sum(together[word] for word in FROM_MEMORY) / max(1, together.total())
    assert memory >= MEMORY_LEAST, f"{memory:.2%} from memory: {dict(together)}"
    return f"none failed, {memory:.2%} from memory: " + "; ".join(said)


def upgrades(running, root, args):
    results, kinds = [], []
    for number in range(args.upgrades):
        old, load = running.main, Load(args)
        said = root.install(args.packages if number % 2 else args.next)
        assert "serves, version" in said, said
        running.wait_for("MAINPID=")
        assert running.main != old, said
        kinds.append(pages_of_another_version(root))
        results.append(load.end())
        learns(root)
        wait_until(lambda old=old: is_gone(root, old), f"process {old}, whose place was taken, has not ended")
    return "; ".join([*kinds, sum_of(results)])


def php_is_upgraded(root, args):
    """By a package that puts another file in the place of PHP-FPM, as PHP's own does, and has a file where PHP's packages
    have theirs."""
    program = next(it for it in sorted(os.listdir(root.path + "/usr/sbin")) if it.startswith("php-fpm"))
    made = root.path + "/tmp/php-upgrade"
    root.write("/tmp/php-upgrade/DEBIAN/control", "Package: php-upgrade\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\n"
               "Description: another PHP-FPM\n")
    root.write("/tmp/php-upgrade/DEBIAN/preinst", f"#!/bin/sh\nset -e\ncp -p /usr/sbin/{program} /usr/sbin/{program}.dpkg-new\n"
               f"mv /usr/sbin/{program}.dpkg-new /usr/sbin/{program}\n")
    os.chmod(made + "/DEBIAN/preinst", 0o755)
    root.write("/tmp/php-upgrade/usr/lib/php/upgraded", "")
    root.run("dpkg-deb", "--build", "/tmp/php-upgrade", "/tmp/php-upgrade.deb")
    before = masters(root)
    load = Load(args) if os.path.exists(args.visitors) else None
    root.run("dpkg", "--install", "/tmp/php-upgrade.deb")
    wait_until(lambda: masters(root) and not masters(root) & before, f"PHP-FPM of the former file goes on: {before}, {masters(root)}")
    told = sum_of([load.end()]) if load else "no visitors"
    status, _, body = ask()
    assert status == 200 and "made by PHP" in body, (status, body)
    root.run("dpkg", "--purge", "php-upgrade")
    return told


def masters(root):
    """The masters of PHP-FPM that run."""
    lines = root.run("ps", "-eo", "pid,args").splitlines()
    return {line.split()[0] for line in lines if "php-fpm: master" in line}


def is_gone(root, pid):
    """A process whose parent has ended is ours to wait for, as it is systemd's elsewhere."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return not os.path.exists(f"{root.path}/proc/{pid}")


def refuses(running, root, args):
    old = running.main
    root.write("/etc/mayfly/conf.d/mistake.conf", "nonsense on;\n")
    load = Load(args)
    said = root.install(args.packages)
    results = load.end()
    os.unlink(root.path + "/etc/mayfly/conf.d/mistake.conf")
    assert "nonsense" in said and "serves on" in said, said
    assert running.main == old and os.path.exists(f"{root.path}/proc/{old}"), "it has ended"
    return sum_of([results])


def removes(root, running):
    root.run("dpkg", "--remove", "mayfly", "mayfly-tools")
    running.ended()
    assert os.path.exists(root.path + "/etc/mayfly/sites/site.conf"), "the configuration is gone"
    assert not os.path.exists(root.path + "/usr/bin/mayfly")


def purges(root, before):
    root.run("dpkg", "--purge", "mayfly", "mayfly-tools")
    for site in ("/var/www/site", "/srv/site"):
        shutil.rmtree(root.path + site)
    left = root.files() - before - {"var/www/site", "var/www"}
    assert not left, sorted(left)


if __name__ == "__main__":
    sys.exit(main())
