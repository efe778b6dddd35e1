"""A program of KServe's client, run in an environment of its own: its package wants an older psutil than the service.

It is told the address of a service and the names of two maps, and writes what it found as JSON.
"""

import asyncio
import json
import sys

import numpy as np
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.protocol.infer_type import RequestedOutput


async def main(url: str, features: str, codes: str) -> None:
    """Ask for everything that the client has calls for."""
    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    found = {
        "live": await client.is_server_live(url),
        "ready": await client.is_server_ready(url),
        "models": [await client.is_model_ready(url, name) for name in (features, codes, "none")],
    }
    rows = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
    for binary in (True, False):
        tensor = InferInput("vectors", [4, 3], "FP32")
        tensor.set_data_from_numpy(rows, binary_data=binary)
        request = InferRequest(features, [tensor], request_id="a-7")
        answer = await client.infer(url, request, model_name=features)
        found[f"features {binary}"] = answer.outputs[0].as_numpy().tolist()
        found[f"id {binary}"] = answer.id
        wanted = [RequestedOutput("codes", parameters={"binary_data": binary})]
        answer = await client.infer(url, InferRequest(codes, [tensor], request_outputs=wanted), model_name=codes)
        found[f"codes {binary}"] = answer.outputs[0].as_numpy().tolist()
    at_once = [client.infer(url, InferRequest(features, [tensor]), model_name=features) for _ in range(20)]
    found["at once"] = [answer.outputs[0].as_numpy().tolist() for answer in await asyncio.gather(*at_once)]
    wrong = InferInput("vectors", [1, 2], "FP32")
    wrong.set_data_from_numpy(np.zeros((1, 2), np.float32), binary_data=True)
    try:
        await client.infer(url, InferRequest(features, [wrong]), model_name=features)
    except Exception as error:
        found["error"] = str(error)
    sys.stdout.write(json.dumps(found))


asyncio.run(main(*sys.argv[1:]))
