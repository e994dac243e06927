"""The Grafana dashboards as code. `uv run python -m dashboards`, in the folder service/, writes their JSON.

They use the classic dashboard schema, which Grafana reads from a file; docker-compose.yml pins Grafana 13.
Queries name metrics by their declarations in `overspill_service.telemetry.definitions`.
"""
