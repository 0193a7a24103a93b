"""The measurements: their client tells a whole answer from a broken one, their configurations load."""

import os
import subprocess
import tempfile
import xml.dom.minidom

from lib import chart, comparison, load, peers, report, subject
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


def configurations_load(binary):
    values = {
        "PORT": subject.free_port(), "USER": "", "PAGE": "/page.php", "SOCKET": "/php.sock",
        "EXECUTIONS": "/dev/null", "WORK_ROUNDS": 0, "LIFETIME": "1s", "MEMORY": "64m",
        "SMALL": 1, "LARGE": 2, "ORIGIN": 3, "WORKERS": 2, "BODY": "x" * 40,
        "FILES": "/var/www", "ONE_LINE": "/one.php", "ACCESS_LOG": "off", "GZIP": "on", "SENDFILE": "on",
    }
    templates = [os.path.join(subject.TEMPLATES, name) for name in sorted(os.listdir(subject.TEMPLATES))]
    for name in [*templates, os.path.join(peers.TEMPLATES, "mayfly-nginx.conf")]:
        with tempfile.TemporaryDirectory() as folder:
            values.update(FOLDER=folder, CACHE=folder + "/cache")
            config = os.path.join(folder, "nginx.conf")
            with open(name) as source, open(config, "w") as file:
                file.write(subject.render(source.read(), subject.kind_of(binary), values))
            command = [binary, "-t", "-p", folder, "-e", "error.log", "-c", config]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, f"{name}: {done.stderr or done.stdout}"
