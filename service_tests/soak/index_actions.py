"""What clients do with an index of their own: put vectors into it, find them by tags, take them out, delete it."""

from service_tests.soak.client import REFUSED, Client
from service_tests.soak.model import Wrong
from service_tests.soak.truth import STANDING

THERE = "there"
TAGS = ("red", "green", "blue")
AT_ONCE = 5


def upsert_vectors(client: Client) -> None:
    """Put some vectors, each with the same tag; make the index before, if it is not known to be there."""
    if not _is_made(client):
        return
    vectors, tag = client.model.vectors, client.chance.choice(TAGS)
    ids = client.chance.sample(list(vectors), AT_ONCE)
    rows = [[1.0 + i, -0.5, len(one)] for i, one in enumerate(ids)]
    body = {"ids": ids, "vectors": rows, "tags": [tag] * AT_ONCE}
    answer = client.ask("POST", f"{_path(client)}/vectors", (200, *REFUSED), json=body)
    for one in ids:
        if answer is None:
            vectors[one].perhaps(tag)
        elif answer.status_code == 200:
            vectors[one].is_now(tag)


def search_index(client: Client) -> None:
    """Find all vectors of a tag, in whatever process."""
    if client.model.index.known and client.model.index.value == THERE:
        look_for_vectors(client, client.chance.choice(TAGS))


def look_for_vectors(client: Client, tag: str) -> bool:
    """See which vectors have a tag; False where nobody answers."""
    body = {"vectors": [[1, 2, 3]], "k": 100, "tag": tag}
    answer = client.ask("POST", f"{_path(client)}/search", (200,), json=body)
    if answer is None:
        return False
    there = set(answer.json()["results"][0]["ids"])
    for one, stands in client.model.vectors.items():
        if one in there:
            stands.seen(tag)
        elif stands.may == {tag}:
            raise Wrong(f"vector {one} is not found by its tag, {tag}")
        else:
            stands.may.discard(tag)
    if strange := there - client.model.vectors.keys():
        raise Wrong(f"vectors {strange} were never put")
    return True


def delete_vector(client: Client) -> None:
    """Take a vector out, or hear that there is none."""
    if client.model.index.known and client.model.index.value == THERE:
        one, stands = client.chance.choice(list(client.model.vectors.items()))
        client.delete(f"{_path(client)}/vectors/{one}?kind=string", stands)


def delete_index(client: Client) -> None:
    """Delete the index."""
    index = client.model.index
    client.delete(_path(client), index)
    for stands in client.model.vectors.values():
        if index.known and index.value is None:
            stands.is_now(None)
        elif not index.known:
            stands.perhaps(None)


def settle_index(client: Client) -> None:
    """With nobody disturbing, look for all vectors; nothing may be unknown then."""
    if not (_is_made(client) and all(look_for_vectors(client, tag) for tag in TAGS)):
        raise Wrong(f"the index of {client.model.prefix} cannot be looked at")
    unknown = [one for one, stands in client.model.vectors.items() if not stands.known]
    if unknown:
        raise Wrong(f"vectors {unknown} have no tag, and more than one")


def _is_made(client: Client) -> bool:
    """Have the index be there, which is over the standing map; False where nobody says so."""
    index = client.model.index
    if index.known and index.value == THERE:
        return True
    wanted = (201,) if index.known else (200, 201)
    answer = client.ask("PUT", _path(client), (*wanted, *REFUSED), json={"map": STANDING, "keep": "vectors"})
    if answer is None:
        index.perhaps(THERE)
    elif answer.status_code in wanted:
        index.is_now(THERE)
        if answer.status_code == 201:
            for stands in client.model.vectors.values():
                stands.seen(None)
        return True
    return False


def _path(client: Client) -> str:
    return f"/v1/indexes/{client.model.prefix}"
