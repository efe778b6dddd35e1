"""What clients do, and what the answers must be then."""

from collections.abc import Callable

from service_tests.checks import NPY, RESPOND_ASYNC
from service_tests.soak.client import REFUSED, Client
from service_tests.soak.model import Wrong
from service_tests.soak.truth import SPECS, STANDING, use_of

THERE = "there"
TAGS = ("red", "green", "blue")
ALSO = "also"
AT_ONCE = 5


def upsert_vectors(client: Client) -> None:
    """Put some vectors, each with the same tag; make the index before, if it is not known to be there."""
    if not _is_made(client):
        return
    vectors, tag = client.model.vectors, client.chance.choice(TAGS)
    ids = client.chance.sample(list(vectors), AT_ONCE)
    rows = [[1.0 + i, -0.5, len(one)] for i, one in enumerate(ids)]
    body = {"ids": ids, "vectors": rows, "tags": [client.chance.choice([tag, [ALSO, tag]]) for _ in ids]}
    query = client.chance.choice(["", "?unless_similar=1"])  # equal rows are refused, and stay as they were
    answer = client.ask("POST", f"{_path(client)}/vectors{query}", (200, *REFUSED), json=body)
    told = answer.json() if answer is not None and answer.status_code == 200 else {}
    if told and told["upserted"] + len(told.get("refused", ())) != AT_ONCE:
        raise Wrong(f"of {AT_ONCE} vectors, {told['upserted']} were put")
    for one in ids:
        if answer is None:
            vectors[one].perhaps(tag)
        elif told and one in told.get("inserted", ids):
            vectors[one].is_now(tag)


def change_tags(client: Client) -> None:
    """Give a vector another tag, or hear that there is none."""
    if not (client.model.index.known and client.model.index.value == THERE):
        return
    tag, (one, stands) = client.chance.choice(TAGS), client.chance.choice(list(client.model.vectors.items()))
    body = {"ids": [one], "add_tags": [tag], "remove_tags": [other for other in TAGS if other != tag]}
    answer = client.ask("PATCH", f"{_path(client)}/vectors", (200, *REFUSED), json=body)
    if answer is None:
        stands.perhaps(tag)
    elif answer.status_code == 200:
        if answer.json()["missing"]:
            stands.seen(None)
        else:
            stands.is_now(tag)


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


def get_vector(client: Client) -> None:
    """Read the tags of a vector, or hear that there is none."""
    if client.model.index.known and client.model.index.value == THERE:
        one, stands = client.chance.choice(list(client.model.vectors.items()))
        answer = client.ask("GET", f"{_path(client)}/vectors/{one}?kind=string", (200, 404))
        if answer is not None:
            tags = answer.json()["tags"] if answer.status_code == 200 else []
            stands.seen(next((tag for tag in tags if tag != ALSO), None))


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


def act(client: Client) -> str:
    """Have a client do one thing; gives its name. Raises Wrong."""
    (action,) = client.chance.choices(list(ACTIONS), list(ACTIONS.values()))
    try:
        action(client)
    except Wrong as wrong:
        raise Wrong(f"{client.model.prefix}, {action.__name__}: {wrong}") from wrong
    return action.__name__


def put_map(client: Client) -> None:
    """Make a map, in the request or by a job; or find that there is one."""
    name, stands = client.settled()
    if not stands.known:
        return
    spec, there = client.chance.choice(list(SPECS)), stands.value
    later = client.chance.random() < 0.3 and not client.waits
    if there is None:
        # While it ends in order, a service leaves every map to a job.
        wanted: tuple[int, ...] = (202,) if later else (201, 202)
    else:
        wanted = (409,) if there != spec else (200, 202) if stands.building else (200,)
    headers = RESPOND_ASYNC if later else {}
    answer = client.ask("PUT", f"/v1/maps/{name}", (*wanted, *REFUSED), json=SPECS[spec], headers=headers)
    if answer is None:
        if there is None:
            stands.perhaps(spec, building=True)
    elif answer.status_code == 202 and there is None:
        stands.is_now(spec, client.submitted(answer.json()["job"]))
    elif answer.status_code in (200, 201):
        stands.is_now(spec)
        client.check_map(spec, answer.json())


def delete_map(client: Client) -> None:
    """Delete a map, and cancel the job that builds it."""
    (name, stands), alias = client.settled(), client.model.alias
    if alias.known and alias.value == name:
        client.ask("DELETE", f"/v1/maps/{name}", (409, *REFUSED))
    elif name not in alias.may | client.model.held:
        client.delete(f"/v1/maps/{name}", stands)


def put_alias(client: Client) -> None:
    """Let the alias stand for a map that is there."""
    (name, stands), alias = client.settled(), client.model.alias
    if not stands.known or stands.value is None or stands.building:
        return
    wanted = (200, 201) if not alias.known else (201,) if alias.value is None else (200,)
    answer = client.ask("PUT", client.alias_path, (*wanted, *REFUSED), json={"map": name})
    if answer is None:
        alias.perhaps(name)
        client.model.held.add(name)
    elif answer.status_code in wanted:
        alias.is_now(name)


def use_alias(client: Client) -> None:
    """Look at the map that the alias stands for."""
    client.look_at_alias()


def delete_alias(client: Client) -> None:
    """Delete the alias, or hear that there is none."""
    client.delete(client.alias_path, client.model.alias)


def use_map(client: Client) -> None:
    """Look at a map, and transform or hash with it."""
    name, stands = client.settled()
    if client.look_at_map(name, stands) and stands.value is not None:
        path, body = use_of(name, stands.value)
        wanted = (200, 409) if stands.building else (200,)
        answer = client.ask("POST", f"/v1/maps/{path}", wanted, json=body, headers={"Accept": NPY})
        if answer is not None and answer.status_code == 200:
            client.same(answer.content, client.truth[stands.value].content, stands.value)


def list_maps(client: Client) -> None:
    """List all maps of this client."""
    answer = client.ask("GET", "/v1/maps", (200,), params={"prefix": f"{client.model.prefix}-", "limit": "1000"})
    if answer is not None:
        client.model.listed(record["name"] for record in answer.json()["maps"])


def cancel_job(client: Client) -> None:
    """Cancel a job that has not ended as far as this client knows."""
    job = client.job(ended=False)
    if job is None or job.cancelled is not False:
        return
    answer = client.ask("DELETE", job.link, (202, 409, *REFUSED))
    if answer is not None and answer.status_code in REFUSED:
        return
    job.cancelled = True if answer is not None and answer.status_code == 202 else None
    for stands in client.model.maps.values():
        # The name is free as soon as the job is told to end.
        if stands.job is job and answer is None:
            stands.perhaps(None)
        elif stands.job is job and job.cancelled:
            stands.is_now(None)


def look_at_job(client: Client) -> None:
    """Look at a job, ended or not, and at what it has made."""
    job = client.job(ended=client.chance.random() < 0.3)
    if job is not None:
        client.follow(job)


ACTIONS: dict[Callable[[Client], None], int] = {
    put_map: 6,
    use_map: 8,
    delete_map: 4,
    list_maps: 1,
    put_alias: 2,
    use_alias: 3,
    delete_alias: 1,
    cancel_job: 1,
    look_at_job: 4,
    upsert_vectors: 4,
    search_index: 4,
    get_vector: 3,
    change_tags: 2,
    delete_vector: 3,
    delete_index: 1,
}
"""What clients do, and how often for each other."""
