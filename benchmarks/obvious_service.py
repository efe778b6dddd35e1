"""The service that one writes in an afternoon: a pickled RBFSampler behind a pydantic model, lists of numbers in JSON.

Run: SAMPLER=sampler.pickle uvicorn benchmarks.obvious_service:app
"""

import os
import pickle
from pathlib import Path

import numpy as np
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
sampler = pickle.loads(Path(os.environ["SAMPLER"]).read_bytes())


class Vectors(BaseModel):
    """What is posted."""

    vectors: list[list[float]]


class Features(BaseModel):
    """What is answered."""

    features: list[list[float]]


@app.post("/transform")
def transform(body: Vectors) -> Features:
    """Features of the vectors."""
    return Features(features=sampler.transform(np.array(body.vectors, np.float32)).tolist())
