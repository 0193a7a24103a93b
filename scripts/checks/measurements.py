"""The measurements: their client tells a whole answer from a broken one, their configurations load."""

import glob
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

from lib import chart, comparison, load, page, peers, process, report, subject, upstream
import encrypted
import scenarios


def checks(binary):
    return [
        ("client_waits_for_the_end_of_a_chunked_answer", client_waits_for_chunks),
        ("client_waits_for_the_whole_content_length", client_waits_for_length),
        ("client_tells_a_page_put_together_from_two", client_tells_mixed_pages),
        ("template_lines_are_for_one_server_each", template_lines),
        ("a_check_above_its_limit_is_not_kept", check_above_limit),
        ("a_ratio_is_the_median_of_the_rounds_ratios", ratio_of_rounds),
        ("a_peer_that_cannot_take_part_stays_in_table_and_picture", failed_peer_is_shown),
        ("every_scenario_names_peers_that_exist", scenarios_name_peers),
        ("the_summary_of_a_run_has_no_figures_of_single_rounds", summary_without_rounds),
        ("the_benchmarks_page_is_what_its_summary_makes", page_is_rendered),
        ("an_upstream_knows_the_end_of_a_fastcgi_request", fastcgi_request_end),
        ("a_process_is_at_rest_only_when_it_waits", process_at_rest),
        ("every_program_of_bench_starts", programs_start),
        ("benchmark_configurations_load", lambda: configurations_load(binary)),
    ]


def client_waits_for_chunks():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    whole = head + b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
    for end in range(len(whole)):
        assert load.parse(whole[:end]) is None, f"took {whole[:end]} for whole"
    assert load.parse(whole)[2] == b"hello world"


def client_waits_for_length():
    whole = b"HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nabc"
    assert load.parse(whole[:-1]) is None
    assert load.parse(whole)[0] == 404 and load.parse(whole)[2] == b"abc"


def client_tells_mixed_pages():
    assert load._is_whole(b"0123456789-0123456789", 21)
    assert not load._is_whole(b"0123456789-9876543210", 21)
    assert not load._is_whole(b"0123456789-0123456789", 22)


def template_lines():
    template = "listen @PORT@;\n    @mayfly memory 1m;\n    @nginx size 1m;\n"
    assert subject.render(template, "mayfly", {"PORT": 1}) == "listen 1;\nmemory 1m;\n"
    assert subject.render(template, "nginx", {"PORT": 1}) == "listen 1;\nsize 1m;\n"


def check_above_limit():
    result = report.Result("name", "title", "true")
    result.check("something", 2, 1)
    assert not result.is_kept()


def ratio_of_rounds():
    scenario = scenarios.Scenario("name", "Title", "", "/", 1, 1, goals=(("cpu_us", "nginx", 0.5), ("cpu_us", "floor", 2)))
    own = [{"cpu_us": 4}, {"cpu_us": 50}, {"cpu_us": 6}]
    theirs = [{"cpu_us": 10}, {"cpu_us": 100}, {"cpu_us": 10}]
    missed, unknown = comparison.of(scenario, [("Mayfly", {}, own), ("nginx", {}, theirs)])["goals"]
    assert missed["value"] == 0.5 and missed["reached"], missed
    assert unknown["value"] is None and not unknown["reached"], "what was not measured is not reached"


def failed_peer_is_shown():
    scenario = scenarios.SCENARIOS[0]
    figures = {"cpu_us": 2.0, "user_us": 1.0, "system_us": 1.0, "p50_us": 10.0, "wrong": 0}
    result = comparison.of(scenario, [("Mayfly", figures, []), ("Varnish", {"failed": "not installed"}, [])])
    assert "not measured: not installed" in comparison.table(result)
    picture = chart.draw("A & B", [(one["label"], one) for one in result["subjects"]])
    assert "not installed" in picture and "A &amp; B" in picture
    xml.dom.minidom.parseString(picture)


def scenarios_name_peers():
    known = {one.__name__.lower() for one in peers.PEERS}
    names = [scenario.name for scenario in scenarios.SCENARIOS]
    assert len(names) == len(set(names)), "two of one name"
    for scenario in scenarios.SCENARIOS:
        assert "mayfly" in scenario.peers and set(scenario.peers) <= known, scenario.name
        assert scenario.fields == () or all(": " in field for field in scenario.fields), scenario.name


def summary_without_rounds():
    scenario = scenarios.SCENARIOS[0]
    rounds = [{"cpu_us": 1.23456789, "wrong": 0}]
    result = comparison.of(scenario, [("Mayfly", dict(rounds[0]), rounds)])
    promise = report.Result("name", "Title", "true")
    promise.figures["single_turns"] = [1, 2, 3]
    promise.check("something", 1, 2)
    kept = page.summary({"date": "today"}, [result], [promise])
    text = report.rows_of_json(kept)
    assert json.loads(text) == kept, "what is read back is not what was written"
    assert "rounds" not in text and "single_turns" not in text, text
    assert kept["scenarios"][0]["subjects"] == [{"label": "Mayfly", "cpu_us": 1.23457, "wrong": 0}]
    assert len(text.splitlines()) < 40, text


def page_is_rendered():
    """Words are changed in bench/page.md, and bench/all.py --render puts them in place."""
    docs = os.path.join(os.path.dirname(report.FOLDER), "docs")
    with open(os.path.join(docs, "benchmarks.json")) as file:
        made = page.markdown("benchmarks.json", json.load(file))
    with open(os.path.join(docs, "benchmarks.md")) as file:
        assert file.read() == made, "docs/benchmarks.md differs; bench/all.py --render writes it"


def fastcgi_request_end():
    begin = upstream._record(1, bytes(8))
    params = upstream._record(4, b"x" * 13) + upstream._record(4, b"")
    whole = begin + params + upstream._record(upstream.STDIN, b"")
    for end in range(len(whole)):
        assert not upstream.is_whole_fastcgi(whole[:end]), f"took {whole[:end]} for whole"
    assert upstream.is_whole_fastcgi(whole)


def process_at_rest():
    """One that computes is awake; the same one is at rest when it reads from its pipe."""
    program = "import sys\nwhile True:\n sys.stdin.readline()\n sum(range(30_000_000))\n print(flush=True)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as child:
        try:
            process.wait_until_asleep(child.pid)
            child.stdin.write("\n")
            child.stdin.flush()
            assert process._wake_ups(child.pid) is None, "it computes"
            child.stdout.readline()
            process.wait_until_asleep(child.pid)
        finally:
            child.kill()


def programs_start():
    for path in sorted(glob.glob(os.path.join(report.FOLDER, "*.py"))):
        done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, f"{path} --help: {done.stderr}"


def configurations_load(binary):
    values = {
        "PORT": subject.free_port(), "USER": "", "PAGE": "/page.php", "SOCKET": "/php.sock",
        "EXECUTIONS": "/dev/null", "WORK_ROUNDS": 0, "LIFETIME": "1s", "MEMORY": "64m",
        "SMALL": 1, "LARGE": 2, "RESPONDER": 4, "ORIGIN": 3, "WORKERS": 2, "CONCURRENCY": "auto", "DATABASE": "", "BODY": "x" * 40,
        "FILES": "/var/www", "PAGES": "/var/www", "ONE_LINE": "/one.php", "ACCESS_LOG": "off", "GZIP": "on", "SENDFILE": "on", "KEPT": "memory=64m",
        "PLAIN": subject.free_port(), "RSA": subject.free_port(), "TLS": subject.free_port(),
    }
    templates = [os.path.join(subject.TEMPLATES, name) for name in sorted(os.listdir(subject.TEMPLATES))]
    for name in [*templates, os.path.join(peers.TEMPLATES, "mayfly-nginx.conf")]:
        with tempfile.TemporaryDirectory() as folder:
            values.update(FOLDER=folder, CACHE=folder + "/cache")
            if os.path.basename(name) in ("encrypted.conf", "training.conf"):
                values["KEY"], _ = encrypted.make_keys(folder)
            config = os.path.join(folder, "nginx.conf")
            with open(name) as source, open(config, "w") as file:
                file.write(subject.render(source.read(), subject.kind_of(binary), values))
            command = [binary, "-t", "-p", folder, "-e", "error.log", "-c", config]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{name}: {done.stderr or done.stdout}"
