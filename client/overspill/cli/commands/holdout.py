"""The command holdout: compares the arms of experiments."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from overspill.advice.comparison import compare_arms
from overspill.cli import output
from overspill.cli.declaration import command
from overspill.cli.invocation import Invocation
from overspill.cli.options import Span
from overspill.cli.parameters import argument

if TYPE_CHECKING:
    from overspill.advice.comparison import ArmReport, Comparison, ExperimentReport
    from overspill.advice.estimates import Interval


@command(
    "overspill holdout",
    "overspill holdout whole --since 7d",
    "overspill holdout whole --json | jq -r '.[].comparisons[] | [.measure, .verdict] | @tsv'",
)
def holdout(
    invocation: Invocation,
    name: Annotated[str | None, argument(metavar="NAME", help="The experiment (default: all).")] = None,
    *,
    since: Span = "30d",  # type: ignore[assignment]  # the parser reads the default too
) -> None:
    """Compare the two arms of an experiment.

    Guards with a `Holdout` treat a random share of sessions in another way. These sessions are held out; all
    others are the usual arm. Each interval is a 95 % confidence interval of one measure. --json prints the
    report, without the counts behind it.
    """
    with invocation.client() as client:
        found = client.experiments(since=datetime.now(UTC) - timedelta(seconds=since))
    reports = compare_arms(found, name)
    if invocation.answered(reports):
        return
    for report in reports:
        for line in _lines(report):
            output.line(line)
    if not reports:
        output.say(_nothing(name, [each.experiment for each in compare_arms(found)]))
    if found.overflowed:
        output.say("there are more experiments than the service keeps apart: some counts are missing")


def _nothing(name: str | None, others: list[str]) -> str:
    """Return why there is no report, and what to do."""
    if name is None or not others:
        return "nothing was counted in this time; a guard with a Holdout begins an experiment"
    return f"nothing was counted of {name!r} in this time; there are {', '.join(others)}"


def _lines(report: "ExperimentReport") -> Iterator[str]:
    yield f"experiment {report.experiment}"
    yield f"  usual    {_counts(report.usual)}"
    yield f"  holdout  {_counts(report.holdout)}"
    for comparison in report.comparisons:
        yield f"{comparison.measure}: {comparison.verdict}"
        yield from _estimates(comparison)
    missing = dict.fromkeys(each for comparison in report.comparisons for each in comparison.missing)
    yield from (f"not enough data: {each}" for each in missing)


def _counts(arm: "ArmReport") -> str:
    return (
        f"{arm.sessions:,} sessions, {arm.outputs:,} outputs, "
        f"{arm.oversized:,} above the usual limits, {arm.spilled:,} spilled"
    )


def _estimates(comparison: "Comparison") -> Iterator[str]:
    for name in ("usual", "holdout", "difference", "ratio"):
        found: Interval | None = getattr(comparison, name)
        if found is not None:
            yield f"  {name:<10}  {_number(found.value)} ({_number(found.low)} to {_number(found.high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"  # noqa: PLR2004  (four digits are enough)
