"""The pages, as a browser without scripts gets them."""

from __future__ import annotations

import html
import re

import pytest

from dashboards import marks
from dashboards.pages.overview import why
from dashboards.pages.run import ROWS
from harness.record import Finding, Flag, Level, Outcome, Stage
from server.queries import Queries
from tests.harness.formats.reading import EXTERNAL, imported
from tests.server import factory

PAGES = ("/", "/runs", "/runs/latest", "/methods", "/nowhere", "/runs/nope", "/runs?page=x")


def text_of(answer) -> str:
    """Return what a reader sees: no tags, no data, single spaces."""
    body = re.sub(r"<script.*?</script>", " ", answer.text, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


@pytest.mark.parametrize("path", ["/", "/runs"])
def test_nothing_ran_yet(client, path):
    """An empty database is answered with the command that fills it."""
    answer = client.get(path)

    assert 200 == answer.status_code
    assert "Nothing ran yet" in text_of(answer)
    assert "bench run --suite toy" in text_of(answer)


def test_overview_says_it_in_a_sentence(client, finished):
    """The overview begins with how many passed, then pass rate and mean per configuration, then what needs a look."""
    seen = text_of(client.get("/"))

    assert "3 of 5 passed, 2 did not" in seen
    assert "Geometric mean of 2 models, unclipped : 1.10× (1.08–1.11)" in seen
    assert "50 % (15–85) pass : 2 of 4" in seen
    assert "1 skipped · 0 missing · 0 crashed" in seen
    assert "Needs a look" in seen
    assert "no operator aten::foo" in seen
    assert "compiled is slower: 0.80× (0.79–0.81)" in seen


def test_overview_of_a_running_run(client, running):
    """While a run goes on, the overview says what is done, what is in hand and that figures are partial."""
    answer = client.get("/")

    assert "1 passed so far, 2 of 3 waiting" in text_of(answer)
    assert "1 of 3 cases done. Figures below are partial. Now: toy/model_1" in text_of(answer)
    assert 'data-live="/?part=live"' in answer.text


def test_finished_run(client, finished):
    """The page of a run holds every planned model with its numbers, and its failures by cause."""
    answer = client.get("/runs/latest")
    seen = text_of(answer)

    assert "▲ 1.50× (1.48–1.52) n = 20" in seen
    assert "▼ 0.80× (0.79–0.81) n = 20" in seen
    assert "✕ R fails to run in compile: no operator aten::foo 2 cases: toy/broken_a" in seen
    assert "– S skipped" in seen
    assert "n = 20, emulated" in seen
    assert 6 == len(re.findall(r'<tr id="row-', answer.text))
    assert "data-live" not in answer.text


def test_rule_beside_every_mean(client, finished):
    """Wherever a geometric mean stands, its rule stands beside it, and leads to what it is."""
    for path in ("/", "/runs", "/runs/latest"):
        answer = client.get(path)
        assert '<a href="/methods#geometric-mean">unclipped</a>' in answer.text, path

    assert "1.10× (1.08–1.11) , unclipped , n = 2" in text_of(client.get("/runs"))
    assert "geometric mean, unclipped, 1.10×" in client.get("/runs/latest").text
    assert '"mean 1.10\\u00d7, unclipped"' in client.get("/runs/latest").text


def test_another_configuration_is_not_compared(client, finished):
    """A run that is not of the announcement's configuration shows none of its figures, and says in which points."""
    answer = client.get("/runs/latest")
    seen = text_of(answer)

    assert "Beside the announcement PyTorch 2.0: not comparable, this run differs in" in seen
    assert "device: AMD EPYC 7R13, not A100" in seen
    assert "mode: inference, not training" in seen
    assert "models: none of 61 of timm" in seen
    assert "bench run --as pytorch-2.0" in seen
    assert "1.21x" not in seen
    assert "<details open" not in answer.text


def test_the_same_configuration_is_compared(client, store, of_the_announcement):
    """Of the same configuration, ours stand beside the published figures, with the rule, its reading and torch."""
    seen = text_of(client.get("/runs/latest"))

    assert "PyTorch 2.0: this run is of its configuration" in seen
    assert "Ours by the rule of 2022: a model passes if" in seen
    assert "Measured with torch 2.14.1." in seen
    assert "models that work the announcement says that it works on 93 % of 163 models" in seen
    assert "93 % read in its source 100 % of 2 models" in seen
    assert "1.21x read in its source 2.00× of 2 models" in seen
    assert "not comparable" not in seen


def test_methods_tell_the_rules_apart(client):
    """The page of methods says what unclipped means, what the rule of 2022 is, and how far they lie apart."""
    seen = text_of(client.get("/methods"))

    assert "each speedup below 1 is raised to 1" in seen
    assert "0.93×, 0.76× and 0.85× unclipped" in seen


def test_running_run(client, running):
    """A running run shows the case in hand with its stage, and waiting rows; its page asks for news."""
    answer = client.get(f"/runs/{running.id}")
    seen = text_of(answer)

    assert "Now: toy/model_1 inference fp32, compile for" in seen
    assert "▸ G going on" in seen
    assert "… W waiting" in seen
    assert f'data-live="/runs/{running.id}?part=live"' in answer.text


def test_live_part_is_part_of_the_page(client, running):
    """What the script asks for is a fragment with the same parts as the page, and no second head."""
    parts = set(re.findall(r'data-part="([^"]+)"', client.get(f"/runs/{running.id}").text))
    fragment = client.get(f"/runs/{running.id}?part=live").text

    assert {"head", "summaries", "failures", "chart-0-data"} <= parts
    assert parts == set(re.findall(r'data-part="([^"]+)"', fragment))
    assert "<html" not in fragment


@pytest.mark.parametrize("page", ["/", "/runs/latest"])
def test_news_alone_is_sent(client, store, running, page):
    """A page that follows a run gets nothing while nothing happens, its head for a stage, all of it for a record."""

    def pulse():
        return re.findall('data-pulse="([^"]+)"', client.get(page).text)[0]

    def parts(seen):
        return re.findall('data-part="([^"]+)"', client.get(page, params={"part": "live", "seen": seen}).text)

    seen = pulse()
    assert 204 == client.get(page, params={"part": "live", "seen": seen}).status_code
    assert "content-security-policy" in client.get(page, params={"part": "live", "seen": seen}).headers

    store.stage(factory.make_start(running.plan[1].case), Stage.CHECK)
    assert ["head"] == parts(seen)
    seen = pulse()

    store.record(factory.make_record(running.plan[1].case))
    assert len(parts(seen)) > 1


def test_all_emulated(client, all_emulated):
    """Where every time is emulated there is no mean, and the page says why."""
    assert "Geometric mean , unclipped : none (2 emulated)" in text_of(client.get("/"))
    assert "none (2 emulated)" in text_of(client.get("/runs/latest"))


def test_all_failed(client, all_failed):
    """Where everything failed the rate is 0 with its interval, and nothing is drawn as a number."""
    answer = client.get("/runs/latest")

    assert "0 of 3 passed" in text_of(answer)
    assert "0 % (0–56)" in text_of(answer)
    assert "0.00×" not in text_of(answer)


def test_interrupted_run_says_how_to_go_on(client, store):
    """Missing cases come with the command that runs them."""
    store.open(factory.make_run(2))
    store.close(factory.make_end(reason="interrupted"))

    seen = text_of(client.get("/runs/latest"))
    assert "0 of 2 cases ran; 2 are missing. To go on: bench run --resume 0194a3f2-1111" in seen


def test_sorting_by_links(client, finished):
    """Each column sorts by a link that the page itself offers; missing values come last in both directions."""
    body = client.get("/runs/latest").text
    (link,) = re.findall(rf'href="(/runs/{finished.id}\?sort=-speedup)#', body)

    def models(address):
        return re.findall(r'<tr id="row-.*?<th scope="row">(\w+)', client.get(address).text, re.S)

    missing = ["broken_a", "broken_b", "never"]
    assert ["fast", "fast", "slow", *missing] == models(link)
    assert ["slow", "fast", "fast", *missing] == models(link.replace("=-", "="))
    assert 'aria-sort="descending"' in client.get(link).text


def test_one_configuration_alone(client, finished):
    """The address can narrow the table to one configuration; what is hidden is counted."""
    link = re.findall(r'href="(/runs/[^"#]*only=[^"#]*)#', client.get("/runs/latest").text)[-1]
    answer = client.get(html.unescape(link))

    assert 1 == len(re.findall(r'<tr id="row-', answer.text))
    assert "5 rows of other configurations are hidden." in text_of(answer)


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'</script><!--"


def test_hostile_names_are_inert(client, store):
    """Markup in a name, a command or an error text is shown as text, in tables, charts and data alike."""
    case = factory.make_case(HOSTILE)
    run = factory.make_run([case, factory.make_case("b")], command=HOSTILE, skip={"b": HOSTILE})
    store.open(run)
    store.record(factory.make_record(case, Outcome.CRASH, text=HOSTILE))
    store.close(factory.make_end())

    for path in ("/", "/runs", "/runs/latest", "/runs/latest?part=live", f"/runs/{HOSTILE}", f"/{HOSTILE}"):
        body = client.get(path).text
        assert "<script>alert" not in body
        assert "<img" not in body
        assert "<!--" not in body


def test_hostile_address(client, finished):
    """Markup in the address never comes back as markup, and unknown parameters change nothing."""
    body = client.get("/runs/latest", params={"sort": HOSTILE, "only": HOSTILE, "part": HOSTILE}).text

    assert "<script>alert" not in body
    assert "<img" not in body


@pytest.mark.parametrize("path", PAGES)
def test_policy_on_every_page(client, finished, path):
    """Every page, errors too, forbids everything that is not from here and inline."""
    headers = client.get(path).headers

    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "nosniff" == headers["x-content-type-options"]


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_nothing_inline(client, finished, path):
    """No page has inline scripts, styles, handlers, or an address elsewhere."""
    body = client.get(path).text

    assert [] == re.findall(r"<script(?![^>]*(?:src=|application/json))[^>]*>", body)
    assert [] == re.findall(r'<style|\sstyle="|\son\w+="', body)
    assert [] == re.findall(r'(?:src|href)="(?:https?:)?//', body)


@pytest.mark.parametrize("path", PAGES)
def test_page_is_for_everybody(client, finished, path):
    """Each page has a language, a title, a skip link, one first heading, and tables with captions and scopes."""
    body = client.get(path).text

    assert '<html lang="en">' in body
    assert '<a class="skip" href="#main">' in body
    assert 1 == len(re.findall("<h1", body))
    assert len(re.findall("<table", body)) == len(re.findall("<caption", body))
    assert [] == re.findall(r"<th(?=[\s>])(?![^>]*scope)[^>]*>", body)


def test_every_link_leads_somewhere(client, finished):
    """Each link of each page is answered, and each anchor is there."""
    for path in ("/", "/runs", "/runs/latest", "/methods"):
        for link in set(re.findall(r'href="(/[^"]*)"', client.get(path).text)):
            address, _, anchor = html.unescape(link).partition("#")
            answer = client.get(address)
            assert 200 == answer.status_code, link
            assert not anchor or f'id="{anchor}"' in answer.text, link


def test_charts_only_where_they_are_drawn(client, finished):
    """The large plotting library is loaded on the page of a run alone."""
    assert ["/runs/latest"] == [path for path in PAGES if "plotly" in client.get(path).text]


def test_needs_a_look_is_ordered(store):
    """Failures come first, then missing cases, then passes that prove little, then slower models."""
    run = factory.make_run(5)
    store.open(run)
    store.record(factory.make_record(run.plan[0].case, speedup=0.9))
    store.record(factory.make_record(run.plan[1].case, flags=[Flag.INSENSITIVE]))
    store.record(factory.make_record(run.plan[3].case, Outcome.CRASH, text="signal 11"))
    store.record(factory.make_record(run.plan[4].case))
    store.close(factory.make_end())

    total, looks = Queries(store._engine).looks("latest", marks.GRAVE, 10)

    assert 4 == total
    assert [
        ("model_3", "signal 11"),
        ("model_2", "never ran"),
        ("model_1", "passed, but a wrong answer could go unnoticed"),
        ("model_0", "compiled is slower: 0.90× (0.89–0.91)"),
    ] == [(look.model, why(look)) for look in looks]


def test_slowest_is_looked_at_first(store):
    """Among slower models the slowest comes first; only as many come as were asked for, and the rest is counted."""
    run = factory.make_run(4)
    store.open(run)
    for planned, speedup in zip(run.plan, (0.9, 0.7, 1.2, 0.8), strict=True):
        store.record(factory.make_record(planned.case, speedup=speedup))

    total, looks = Queries(store._engine).looks("latest", marks.GRAVE, 2)

    assert (3, ["model_1", "model_3"]) == (total, [look.model for look in looks])


@pytest.fixture
def large(store):
    """A run of more rows than a page shows, in two configurations; one model of the second fails."""
    cases = [factory.make_case(f"m{number}", precision=p) for p in ("fp32", "amp") for number in range(ROWS // 2 + 1)]
    run = factory.make_run(cases)
    store.open(run)
    store.save([factory.make_record(case, speedup=1.5) for case in cases[:-1]])
    store.record(factory.make_record(cases[-1], Outcome.CRASH))
    store.close(factory.make_end())
    return run


def rows_of(answer) -> list[str]:
    return re.findall(r'<tr id="row-(\w+)"', answer.text)


def test_large_run_shows_one_configuration(client, large):
    """A run of more rows than a page holds shows its first configuration, with its chart, and offers the others."""
    answer = client.get("/runs/latest")

    assert [planned.case.id for planned in large.plan[: ROWS // 2 + 1]] == rows_of(answer)
    assert 1 == answer.text.count("data-figure=")
    assert f"{ROWS // 2 + 1} rows of other configurations are hidden." in text_of(answer)


def test_all_rows_of_a_large_run(client, large):
    """All of a large run's rows are there, page by page, each once; a page of them has no chart."""
    answer = client.get("/runs/latest?only=all&sort=model")
    found = rows_of(answer)
    (link,) = re.findall(r'href="([^"]*after=[^"]*)#', answer.text)
    rest = rows_of(client.get(html.unescape(link)))

    assert (ROWS, 2) == (len(found), len(rest))
    assert {planned.case.id for planned in large.plan} == {*found, *rest}
    assert "data-figure=" not in answer.text


def test_look_leads_to_its_row(client, large):
    """Also in a large run the overview's link leads to a page that has the row."""
    (link,) = re.findall(r'href="([^"]*)#row-' + large.plan[-1].case.id, client.get("/").text)

    assert large.plan[-1].case.id in rows_of(client.get(html.unescape(link)))


def test_runs_of_many_means(client, large, store):
    """A run of few configurations shows its means in the list; one of many leads to its page."""
    names = ("default", "reduce-overhead", "max-autotune")
    cases = [factory.make_case("m", precision=p, compile_mode=name) for p in ("fp32", "amp") for name in names]
    many = factory.make_run(cases, id="0194a3f2-2222-7000-8000-000000000002")
    store.open(many)

    seen = client.get("/runs").text
    assert f'href="/runs/{many.id}#summaries-title"' in seen
    assert f'href="/runs/{large.id}#summaries-title"' not in seen


def test_runs_are_listed(client, finished):
    """The list of runs gives state, pass rate and the mean of each configuration."""
    seen = text_of(client.get("/runs"))

    assert "✓ finished" in seen
    assert "3 of 5 60 % (23–88)" in seen
    assert "inference amp(bfloat16) none (1 emulated)" in seen


def make_finding(check, level, value=None):
    remedy = "echo mend it" if level in (Level.WARNING, Level.BAD) else None
    return Finding(check=check, level=level, value=value, sentence=f"About {check}.", remedy=remedy)


def test_host_of_a_run(client, store):
    """What disturbs is marked beside the run's head and told with its remedy; the rest is folded away."""
    bad, warnings, others = ("load",), ("smt", "numa"), ("turbo", "disk")
    levels = dict.fromkeys(bad, Level.BAD) | dict.fromkeys(warnings, Level.WARNING) | dict.fromkeys(others, Level.NOTE)
    findings = tuple(make_finding(check, level, "seen " + check) for check, level in levels.items())
    store.open(factory.make_run(1, doctor=findings))

    answer = client.get("/runs/latest")
    seen = text_of(answer)
    told, _, folded = answer.text.partition('id="host-title"')[2].partition("<details>")

    assert "on bench-1 ( ✕ 1 bad finding , ! 2 warnings ), torch" in seen
    assert "load ✕ bad seen load About load. Remedy: echo mend it" in seen
    assert [*bad, *warnings] == re.findall(r'<th scope="row">(\w+)', told)
    assert [*others] == re.findall(r'<th scope="row">(\w+)', folded)
    assert "2 other findings" in folded


def test_device_of_a_run(client, store):
    """The page names the accelerator with its driver, where children were kept, and variables that change numbers."""
    found = factory.make_environment(
        product="NVIDIA A100-SXM4-40GB",
        device_memory_bytes=40 << 30,
        device_count=2,
        driver="580.1",
        numa_nodes=2,
        pinned=(0, 2),
        cgroup_cores=1.5,
        variables={"OMP_NUM_THREADS": "<b>2</b>"},
    )
    store.open(factory.make_run(1, environment=found))
    seen = text_of(client.get("/runs/latest"))

    assert "NVIDIA A100-SXM4-40GB, 40.0 GiB, the first of 2, driver 580.1" in seen
    assert "2 NUMA nodes, kept on processors 0, 2, limited to the time of 1.5" in seen
    assert "OMP_NUM_THREADS=<b>2</b>" in seen
    assert "<b>2</b>" not in client.get("/runs/latest").text


def test_host_on_which_nothing_disturbs(client, store):
    """A host that is fit gets no mark, and the page says so."""
    store.open(factory.make_run(1, doctor=(make_finding("load", Level.GOOD), make_finding("turbo", Level.UNKNOWN))))

    seen = text_of(client.get("/runs/latest"))
    assert "Nothing that disturbs was found before the first model ran." in seen
    assert "on bench-1, torch" in seen


def test_host_that_nobody_looked_at(client, finished):
    """A run without findings says that nobody looked, which is not the same as good."""
    assert "Nobody looked: this run is older than bench doctor" in text_of(client.get("/runs/latest"))


def test_hostile_findings_are_inert(client, store):
    """A process may call itself what it likes: markup in a finding is text."""
    finding = Finding(check=HOSTILE, level=Level.BAD, value=HOSTILE, sentence=HOSTILE, remedy=HOSTILE)
    store.open(factory.make_run(1, doctor=(finding,)))

    body = client.get("/runs/latest").text
    assert "<script>alert" not in body
    assert "<img" not in body


def test_runs_of_others(client, store):
    """The pages of an imported run say where it comes from, and what is not known of it is not made up."""
    (run,) = imported(EXTERNAL / "pytorch_perf/expected_ci_perf_inductor_torchbench_2023-01-30_2b267fa7f2.csv")
    store.replay(run.lines())

    seen = {path: text_of(client.get(path)) for path in ("/", "/runs", "/runs/latest")}

    assert (
        "Measured elsewhere, imported from pytorch-csv; of 30 Jan 2023, 00:00 UTC, commit 2b267fa7f2"
        in seen["/runs/latest"]
    )
    assert "imported from pytorch-csv" in seen["/"]
    assert not [text for text in seen.values() if re.search(r"\bNone\b(?!\.)", text)]
    assert "2.60×" in seen["/runs/latest"]


def test_chips_carry_over(client, finished):
    """What a chip narrows stays narrowed on the way to other pages; a chip's own links change that chip alone."""
    body = client.get(f"/runs/{finished.id}?precision=amp&sort=-speedup").text

    assert 'href="/runs?precision=amp"' in body
    assert f'href="/runs/{finished.id}?sort=-speedup"' in body
    assert f'href="/runs/{finished.id}?precision=fp32&amp;sort=-speedup"' in body


def test_chips_narrow_a_run(client, finished):
    """A chip leaves the rows, means and charts of its cases; what is hidden is counted, and the way back offered."""
    answer = client.get(f"/runs/{finished.id}?precision=amp")

    assert [finished.plan[5].case.id] == rows_of(answer)
    assert (1, 1) == (answer.text.count('<tr id="summary-'), answer.text.count("data-figure="))
    assert "5 rows of other configurations are hidden." in text_of(answer)
    assert f'href="/runs/{finished.id}#results-title">Show all.' in answer.text


def test_chips_that_nothing_fits(client, finished):
    """Chips that no case of a run fits say so, and lead back."""
    answer = client.get(f"/runs/{finished.id}?suite=timm")

    assert 200 == answer.status_code
    assert "No case of this run fits. Show all." in text_of(answer)


def test_unknown_parameters_are_named(client, finished):
    """A parameter that a page does not know is ignored, and the page says so."""
    assert "Not understood, and ignored: sorted." in text_of(client.get("/runs/latest?sorted=speedup"))
    assert "Not understood" not in client.get("/runs/latest?sort=speedup").text
