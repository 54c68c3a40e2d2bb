"""A report for other programs: JUnit's XML for CI, and a plot as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from portico_cli.show.output import plain
from portico_eval.report import FIGURES, Report
from portico_eval.showing import value_words

_WIDTH, _ROW, _TOP, _LEFT, _BAR = 720, 30, 48, 190, 330
_NOW, _EARLIER, _RAIL, _INK = "#2f6f9f", "#a9bac6", "#eef1f3", "#1f2a33"
_NOT_XML = {0xFFFE: None, 0xFFFF: None}


def junit(report: Report, name: str) -> str:
    """Return the report as JUnit's XML: a test for each case, with what failed and the answer."""
    cases = report["cases"]
    times = {each["id"]: sum(run["seconds"] for run in each["runs"]) for each in cases}
    failed = sum(not each["passed"] for each in cases)
    counts = {"tests": str(len(cases)), "failures": str(failed), "errors": "0", "time": f"{sum(times.values()):.3f}"}
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": _words(name), **counts})
    for each in cases:
        names = {"classname": _words(name), "name": _words(each["id"])}
        test = ET.SubElement(suite, "testcase", names | {"time": f"{times[each['id']]:.3f}"})
        failures = list(dict.fromkeys(words for run in each["runs"] for words in run["failures"]))
        if failures:
            fault = ET.SubElement(test, "failure", {"message": _words(failures[0])})
            fault.text = _words("\n".join(failures))
        said = [run["answer"] or run["reason"] for run in each["runs"]]
        ET.SubElement(test, "system-out").text = _words("\n\n".join(filter(None, [each["question"], *said])))
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}'


def plot(report: Report) -> str:
    """Return a plot of the figures as SVG: a bar for each, and below it a thin one for the earlier report.

    Shares are drawn from 0 to 1. The others are drawn by the larger of the two; without an earlier report they are
    numbers only.
    """
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    against = report["against"]
    rows = [name for name in FIGURES if report["figures"][name] is not None]
    height = _TOP + _ROW * len(rows) + 12
    passed = sum(each["passed"] for each in report["cases"])
    title = f"{passed} of {len(report['cases'])} cases passed"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif" font-size="13" fill="{_INK}">'
    )
    yield f'<title>{title}</title><rect width="100%" height="100%" fill="#ffffff"/>'
    yield f'<text x="16" y="27" font-size="16" font-weight="600">{title}</text>'
    for place, (colour, words) in enumerate(((_NOW, "now"), (_EARLIER, "earlier")) if against is not None else ()):
        x = _LEFT + _BAR + 12 + 62 * place
        yield f'{_bar(x, 17, 10, 10, colour)}<text x="{x + 15}" y="27">{words}</text>'
    for number, name in enumerate(rows):
        top = _TOP + _ROW * number
        now = report["figures"][name] or 0.0
        before = against["figures"][name]["before"] if against is not None else None
        yield f'<text x="{_LEFT - 10}" y="{top + 15}" text-anchor="end">{escape(FIGURES[name].words)}</text>'
        whole = (max(now, before or 0.0) or 1.0) if FIGURES[name].unit else 1.0
        if before is not None or not FIGURES[name].unit:
            yield _bar(_LEFT, top, _BAR, 20, _RAIL)
            yield _bar(_LEFT, top, _BAR * now / whole, 20 if before is None else 13, _NOW)
        if before is not None:
            yield _bar(_LEFT, top + 13, _BAR * before / whole, 7, _EARLIER)
        words, was = value_words(name, now), value_words(name, before)
        words += "" if before is None or was == words else f" (was {was})"
        yield f'<text x="{_LEFT + _BAR + 12}" y="{top + 15}">{escape(words)}</text>'
    yield "</svg>"


def _bar(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}"/>'


def _words(text: str) -> str:
    """Return a text without what XML cannot hold."""
    return plain(text).translate(_NOT_XML)
