"""The panels that all dashboards are made of, with one look: a unit, a legend and a description for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import heatmap, stat, table, timeseries
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SOURCE: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
WIDTH: Final = 24
"""Columns of Grafana's grid."""
NUMBER_HEIGHT, GRAPH_HEIGHT, TABLE_HEIGHT = 4, 9, 12
"""Rows of Grafana's grid."""
FOLDER_TAG: Final = "overspill"
GREEN, AMBER, RED = "green", "#EAB839", "red"

Panel = Builder[dashboard.Panel]

PERCENT: Final = "percentunit"
BYTES: Final = "bytes"
BYTES_PER_SECOND: Final = "binBps"
PER_SECOND: Final = "cps"
REQUESTS_PER_SECOND: Final = "reqps"
SECONDS: Final = "s"
COUNT: Final = "short"
DOLLARS: Final = "currencyUSD"


class Query(NamedTuple):
    """A PromQL expression, and how its series are called: a text with `{{label}}` in it."""

    expr: str
    legend: str


class Step(NamedTuple):
    """From which value on a panel has which colour."""

    value: float | None
    color: str


def graph(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    stacked: bool = False,
    most: float | None = None,
) -> Panel:
    """Return a panel of lines over time."""
    legend = (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
        .calcs(["mean", "lastNotNull", "max"])
    )
    tooltip = common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
    panel = timeseries.Panel().legend(legend).tooltip(tooltip.sort(common.SortOrder.DESCENDING))
    panel = panel.min(0).fill_opacity(25 if stacked else 8).show_points(common.VisibilityMode.NEVER)
    if most is not None:
        panel = panel.max(most)
    if stacked:
        panel = panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    for place, query in enumerate(queries):
        panel = panel.with_target(_target(query, place).range())
    return _labelled(panel, title, description, unit, width, GRAPH_HEIGHT)


def number(title: str, description: str, unit: str, query: Query, *steps: Step, width: int = 4) -> Panel:
    """Return a panel with one number for each series. `steps` colour it, the first one from anywhere on.

    A query over the dashboard's whole time (`$__range`) has one value, any other one is drawn too.
    """
    is_instant = "$__range" in query.expr
    graph_mode = common.BigValueGraphMode.NONE if is_instant else common.BigValueGraphMode.AREA
    colors = [
        dashboard.Threshold(value=step.value, color=step.color) for step in steps or (Step(None, GREEN),)
    ]
    panel = (
        stat.Panel()
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(graph_mode)
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(colors))
        .no_value("none")
    )
    target = _target(query, 0)
    panel = panel.with_target(target.instant() if is_instant else target.range())
    return _labelled(panel, title, description, unit, width, NUMBER_HEIGHT)


def heat(title: str, description: str, unit: str, query: Query, *, width: int = 12) -> Panel:
    """Return a heat map of a histogram's buckets. The query is summed up by `le`."""
    axis = heatmap.YAxisConfig().unit(unit).axis_placement(common.AxisPlacement.LEFT)
    panel = heatmap.Panel().calculate(calculate=False).y_axis(axis)
    panel = panel.with_target(_target(query, 0).range().format(PromQueryFormat.HEATMAP))
    return _labelled(panel, title, description, unit, width, GRAPH_HEIGHT)


def rows(
    title: str, description: str, columns: Mapping[str, tuple[str, str]], by: Iterable[str], *, sort: str
) -> Panel:
    """Return a table with a row for each combination of the labels `by`.

    `columns` has for each heading its unit and an expression that keeps these labels.
    """
    panel, headings = table.Panel(), {}
    for place, (heading, (unit, expr)) in enumerate(columns.items()):
        target = _target(Query(expr, heading), place).instant().format(PromQueryFormat.TABLE)
        panel = panel.with_target(target)
        panel = panel.override_by_name(heading, [dashboard.DynamicConfigValue(id_val="unit", value=unit)])
        headings[f"Value #{_ref(place)}"] = heading
    order = {name: place for place, name in enumerate([*by, *headings])}
    options = {"excludeByName": {"Time": True}, "renameByName": headings, "indexByName": order}
    for id_, given in (("merge", {}), ("organize", options)):
        panel = panel.with_transformation(dashboard.DataTransformerConfig(id_val=id_, options=given))
    panel = panel.sort_by([common_builders.TableSortByFieldState().display_name(sort).desc(desc=True)])
    return _labelled(panel, title, description, COUNT, WIDTH, TABLE_HEIGHT)


def page(uid: str, title: str, description: str, *variables: Any) -> builders.Dashboard:
    """Return an empty dashboard with these variables, and links to the others."""
    made = (
        builders.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([FOLDER_TAG])
        .editable()
        .refresh("1m")
        .time("now-24h", "now")
        .timezone(common.TimeZoneBrowser)
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(
            builders.DashboardLink("Overspill")
            .type(dashboard.DashboardLinkType.DASHBOARDS)
            .tags([FOLDER_TAG])
            .include_vars(include_vars=True)
            .keep_time(keep_time=True)
            .as_dropdown(as_dropdown=True)
        )
        .with_variable(builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    for variable in variables:
        made = made.with_variable(variable)
    return made


def with_rows(page: builders.Dashboard, rows_: Mapping[str, Iterable[Panel]]) -> builders.Dashboard:
    """Add panels under the titles of their rows."""
    for title, panels in rows_.items():
        page = page.with_row(builders.Row(title))
        for panel in panels:
            page = page.with_panel(panel)
    return page


def choice(name: str, label: str, query: str, *, is_multi: bool = True) -> builders.QueryVariable:
    """Return a variable whose values come from a query, all of them at first if it `is_multi`."""
    made = (
        builders.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    )
    return made.multi(multi=True).include_all(include_all=True).all_value(".*") if is_multi else made


def _labelled(panel: Any, title: str, description: str, unit: str, width: int, height: int) -> Panel:
    made: Panel = (
        panel.title(title).description(description).unit(unit).datasource(SOURCE).span(width).height(height)
    )
    return made


def _target(query: Query, place: int) -> Dataquery:
    return Dataquery().expr(query.expr).legend_format(query.legend).ref_id(_ref(place)).datasource(SOURCE)


def _ref(place: int) -> str:
    return chr(ord("A") + place)
