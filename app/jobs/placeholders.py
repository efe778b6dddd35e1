"""What becomes of the placeholder of something that a job did not make."""

import orjson


def failed_placeholder(fields: dict[str, str], error: str) -> bytes:
    """The placeholder in a job's fields, marked with the error (JSON); empty if there is nothing to mark."""
    placeholder = fields.get("placeholder")
    if not placeholder or not error:
        return b""
    return orjson.dumps(orjson.loads(placeholder) | {"error": orjson.loads(error)})
