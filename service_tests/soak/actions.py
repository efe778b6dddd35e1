"""What clients do, and what the answers must be then."""

from collections.abc import Callable

from service_tests.checks import NPY, RESPOND_ASYNC, npy
from service_tests.soak.client import REFUSED, Client
from service_tests.soak.index_actions import delete_index, delete_vector, search_index, upsert_vectors
from service_tests.soak.model import Wrong
from service_tests.soak.truth import ROWS, SPECS, STANDING, sample, use_of


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
    name, stands = client.settled(client.model.maps)
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


def put_dataset(client: Client) -> None:
    """Make a dataset, or find that there is one."""
    name, stands = client.settled(client.model.datasets)
    if not stands.known:
        return
    rows, there = client.chance.choices(list(ROWS), [6] * (len(ROWS) - 1) + [1])[0], stands.value
    status = 201 if there is None else 200 if there == rows else 409
    headers = {"Content-Type": NPY}
    answer = client.ask("PUT", f"/v1/datasets/{name}", (status, *REFUSED), content=npy(ROWS[rows]), headers=headers)
    if answer is None:
        if there is None:
            stands.perhaps(rows)
    elif answer.status_code == 201:
        stands.is_now(rows)
    if answer is not None and answer.status_code < 400:
        client.same(answer.json()["digest"], client.truth.datasets[rows].digest, "digest")


def delete_map(client: Client) -> None:
    """Delete a map, and cancel the job that builds it."""
    name, stands = client.settled(client.model.maps)
    client.delete(f"/v1/maps/{name}", stands)


def delete_dataset(client: Client) -> None:
    """Delete a dataset."""
    name, stands = client.settled(client.model.datasets)
    client.delete(f"/v1/datasets/{name}", stands)


def use_map(client: Client) -> None:
    """Look at a map, and transform or hash with it."""
    name, stands = client.settled(client.model.maps)
    if client.look_at_map(name, stands) and stands.value is not None:
        path, body = use_of(name, stands.value)
        wanted = (200, 409) if stands.building else (200,)
        answer = client.ask("POST", f"/v1/maps/{path}", wanted, json=body, headers={"Accept": NPY})
        if answer is not None and answer.status_code == 200:
            client.same(answer.content, client.truth.maps[stands.value].content, stands.value)


def use_dataset(client: Client) -> None:
    """Look at a dataset, and transform its rows."""
    name, stands = client.settled(client.model.datasets)
    if client.look_at_dataset(name, stands) and stands.value is not None:
        headers = {"Accept": NPY}
        answer = client.ask("POST", f"/v1/maps/{STANDING}/transform", (200,), json=sample(name), headers=headers)
        if answer is not None:
            client.same(answer.content, client.truth.datasets[stands.value].content, stands.value)


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
    put_dataset: 3,
    use_dataset: 3,
    delete_dataset: 2,
    list_maps: 1,
    cancel_job: 1,
    look_at_job: 4,
    upsert_vectors: 4,
    search_index: 4,
    delete_vector: 3,
    delete_index: 1,
}
"""What clients do, and how often for each other."""
