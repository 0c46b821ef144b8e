"""One module per page. Numbers come from `server.queries`; here they are arranged and put into words."""

from __future__ import annotations

from dashboards.pages import methods, overview, run, runs

ROUTERS = tuple(each.router for each in (overview, runs, run, methods))
