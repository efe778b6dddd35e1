"""The obvious service without pydantic: a pickled RBFSampler behind Starlette, arrays in .npy.

Run: SAMPLER=sampler.pickle uvicorn benchmarks.bare_service:app
"""

import io
import os
import pickle
from pathlib import Path

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

sampler = pickle.loads(Path(os.environ["SAMPLER"]).read_bytes())


async def live(_: Request) -> Response:
    """Nothing to do."""
    return JSONResponse({"status": "live"})


async def transform(request: Request) -> Response:
    """Features of the vectors."""
    answer = io.BytesIO()
    np.save(answer, sampler.transform(np.load(io.BytesIO(await request.body()))))
    return Response(answer.getvalue(), media_type="application/x-npy")


app = Starlette(routes=[Route("/health/live", live), Route("/transform", transform, methods=["POST"])])
