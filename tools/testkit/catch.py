# SPDX-License-Identifier: Apache-2.0
"""Runs Catch2 programs (2 and 3) and reads their XML report. A program that crashes leaves its report
cut off at an uncertain place; then every test case without a result is run alone."""

import shlex
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from . import processes
from .processes import ROOT
from .results import Result, matches


def list_names(program: str) -> list[str]:
    """The program's test cases; empty when it is no Catch2 program or does not start."""
    # Catch2 2 knows the first form and exits with the count, Catch2 3 the second.
    for form in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        done = processes.run([str(ROOT / program), *form], timeout=60)
        if "Unrecognised token" not in done.output and "rror" not in done.output[:200]:
            return [line.strip() for line in done.output.splitlines() if line.strip()]
    return []


def escape(name: str) -> str:
    """A test's name as Catch2's command line takes it: these characters mean something there."""
    return "".join("\\" + c if c in '\\,["' else c for c in name)


def run(
    title: str,
    program: str,
    *,
    pattern: str | None = None,
    env: dict[str, str] | None = None,
    quiet_env: dict[str, str] | None = None,
) -> list[Result]:
    """Every test case of `program` that `pattern` selects, named "title: its name". `quiet_env` is
    not worth a word in the command that runs a test again."""
    env = env or {}
    whole_env = {**env, **(quiet_env or {})}

    def rerun(name: str) -> str:
        prefix = "".join(f"{key}={shlex.quote(value)} " for key, value in env.items())
        return f"{prefix}{program} {shlex.quote(escape(name))}"

    names = list_names(program)
    if not names:
        return [Result(title, "failed", f"{program} does not name its test cases", program)]
    wanted = [name for name in names if matches(f"{title}: {name}", pattern)]
    results: dict[str, Result] = {}

    def take(only: str | None) -> processes.Finished:
        """Runs all of `wanted`, or one test alone."""
        selected = [only] if only else [] if wanted == names else wanted
        found, done = _run(program, selected, whole_env)
        for name, outcome, detail, seconds in found:
            results[name] = Result(f"{title}: {name}", outcome, detail, rerun(name), seconds)
        return done

    if not wanted:
        return []
    done = take(None)
    crashed = [name for name in wanted if name not in results]
    for name in crashed:
        again = take(name)
        if name not in results:
            detail = f"{again.output}\n{again.why()}"
            results[name] = Result(f"{title}: {name}", "failed", detail, rerun(name))
    found = list(results.values())
    if not done.ok and all(result.outcome != "failed" for result in found):
        # Such as a leak, which a sanitizer reports when all tests have run.
        detail = f"no single test case failed, but\n{done.output}\n{done.why()}"
        found.append(Result(f"{title}: as a whole", "failed", detail, f"{program}"))
    return found


def _run(program: str, names: list[str], env: dict[str, str]):
    """Runs the named tests, or all: what parse() makes of the report, and how the program ended."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [str(ROOT / program), "--reporter", "xml", "--out", str(report)]
        command += ["--durations", "yes"]
        if names:
            command.append(",".join(escape(name) for name in names))
        done = processes.run(command, timeout=900, env=env)
        text = report.read_text(errors="replace") if report.exists() else ""
    return parse(text), done


def parse(report: str):
    """(name, outcome, detail, seconds) of each test case that is whole in an XML report."""
    parser = ElementTree.XMLPullParser(["end"])
    results = []
    try:
        parser.feed(report)
        for _, element in parser.read_events():
            if element.tag == "TestCase":
                results.append((element.get("name", "").strip(), *_outcome(element)))
    except ElementTree.ParseError:
        pass  # what is missing is run again, alone
    return results


def _outcome(case: ElementTree.Element) -> tuple[str, str, float]:
    overall = case.find("OverallResult")
    if overall is None:
        return "failed", "no result was reported", 0.0
    seconds = float(overall.get("durationInSeconds", "0"))
    if overall.get("success") != "true":
        return "failed", "\n".join(_messages(case)), seconds
    skip = next(case.iter("Skip"), None)  # Catch2 3
    if skip is not None:
        return "skipped", _text(skip), seconds
    # Catch2 2 has no SKIP: there a test that can not run warns and returns.
    for warning in map(_text, case.iter("Warning")):
        if warning.startswith("skipped: "):
            return "skipped", warning.removeprefix("skipped: "), seconds
    return "passed", "", seconds


def _text(element: ElementTree.Element | None) -> str:
    return (element.text or "").strip() if element is not None else ""


def _messages(case: ElementTree.Element) -> list[str]:
    """Failures as lines: where, what was claimed, what it was, with the notes before it."""
    lines: list[str] = []
    notes: list[str] = []

    def walk(element: ElementTree.Element, path: str) -> None:
        for part in element:
            place = f"{part.get('filename', '')}:{part.get('line', '')}".removeprefix("../")
            if part.tag == "Section":
                walk(part, f"{path} / {part.get('name')}" if path else part.get("name", ""))
            elif part.tag in ("Info", "Warning"):
                notes.append(_text(part))
            elif part.tag == "Expression" and part.get("success") != "true":
                claim = f"{part.get('type')}( {_text(part.find('Original'))} )"
                lines.append(f"{place}: {claim}{f'  in: {path}' if path else ''}")
                lines.append(f"  was: {_text(part.find('Expanded'))}")
                for cause in (part.find("Exception"), part.find("FatalErrorCondition")):
                    if cause is not None:
                        lines.append(f"  {_text(cause)}")
                take_notes()
            elif part.tag in ("Exception", "Failure", "FatalErrorCondition"):
                lines.append(f"{place}: {_text(part) or part.tag}{f'  in: {path}' if path else ''}")
                take_notes()
            elif part.tag == "OverallResult":
                for stream in ("StdOut", "StdErr"):
                    if _text(part.find(stream)):
                        lines.append(f"{stream}: {_text(part.find(stream))}")
            if part.tag in ("Expression", "Section"):
                notes.clear()

    def take_notes() -> None:
        lines.extend(f"  note: {line}" for note in notes for line in note.splitlines())
        notes.clear()

    walk(case, "")
    return lines
