"""Routes of keys: create, list, revoke."""

import logging
import re
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from app.api import bodies
from app.api.access import owner_of
from app.api.context import Admitted, ContextOf
from app.api.documents import KEY_BODY
from app.api.negotiation import JSON, posted_format
from app.api.problems import Refusal
from app.api.schemas import headers
from app.services.keys import AskedKey, CreatedKey, KeyList

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/v1/keys", tags=["keys"])

_ID = re.compile(r"[0-9a-f]{16}")


def _known_form(key_id: Annotated[str, Path(alias="id", description="Id of a key.")]) -> str:
    """Return the id in the address. A malformed id is not repeated in the refusal: it may be the text of a key."""
    if not _ID.fullmatch(key_id):
        raise Refusal("key-not-found", "what came is not the id of a key, which has 16 digits 0-9a-f")
    return key_id


KeyId = Annotated[str, Depends(_known_form)]


@router.post(
    "", operation_id="create_key", status_code=201, openapi_extra=KEY_BODY, responses={201: headers("Cache-Control")}
)
async def create_key(request: Request, response: Response, context: Admitted) -> CreatedKey:
    """Create a key. It is valid at once, in every process of the service."""
    posted_format(request, (JSON,))
    body = await bodies.read_options(request, context)
    made = await context.admission.ask(lambda: context.keys.create(bodies.parse(AskedKey, body)))
    logger.info("key %s made key %s, %r with role %s", owner_of(request), made.id, made.name, made.role)
    response.headers["Cache-Control"] = "no-store"
    return made


@router.get("", operation_id="list_keys")
async def list_keys(context: ContextOf) -> KeyList:
    """List all keys, oldest first."""
    return await context.admission.ask(context.keys.all)


@router.delete("/{id}", operation_id="revoke_key", status_code=204)
async def revoke_key(key_id: KeyId, request: Request, context: ContextOf) -> None:
    """Revoke a key. Within a second every process refuses it, and event streams opened with it end."""
    if not await context.admission.ask(lambda: context.keys.revoke(key_id)):
        raise Refusal("key-not-found", f"no key has the id {key_id}")
    context.access.keys.forget()
    logger.info("key %s revoked key %s", owner_of(request), key_id)
