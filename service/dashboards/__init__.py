"""The Grafana dashboards as code. `uv run --group dev python -m dashboards`, in service/, writes their JSON.

They use the classic dashboard schema, which Grafana reads from a file; docker-compose.yml pins Grafana 13.
Queries name metrics by their declarations in `overspill_service.telemetry.definitions`.
"""
