"""The Grafana dashboards as code. `uv run python -m dashboards`, in the folder service/, writes their JSON.

They use the classic dashboard schema, which Grafana 11 to 13 read from a file.
Queries name metrics by their declarations in `overspill_service.telemetry.definitions`.
"""
