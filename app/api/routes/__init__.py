"""The routes, a file for each part of the contract."""

from app.api.routes.datasets import router as datasets
from app.api.routes.diagnostics import router as diagnostics
from app.api.routes.docs_page import router as docs_page
from app.api.routes.jobs import router as jobs
from app.api.routes.maps import router as maps
from app.api.routes.service import router as service
from app.api.routes.vectors import router as vectors

ROUTERS = (maps, vectors, datasets, diagnostics, jobs, service, docs_page)
