from collections.abc import Iterator
from typing import Any

import pytest

from app.store.keys import Role
from bochner_client import Client, Forbidden, InvalidInput, KeyNotFound, Unauthorized
from service_tests.keyed import Keyed, keyed
from service_tests.running import service


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with service(tmp_path_factory.mktemp("keys") / "data", "--require-keys", "true") as running:
        yield keyed(running)


def of(here: Keyed, key: str | None, patience: float = 10) -> Client:
    return Client(here.running.url, key, patience=patience)


def test_keys_are_made_listed_and_revoked(here: Keyed) -> None:
    with of(here, here.texts[Role.admin]) as admin:
        made = admin.create_key("search", "read", rate=50, burst=40, quota=1000)
        assert (made.name, made.role, made.rate, made.burst, made.quota) == ("search", "read", 50, 40, 1000)
        assert made.key not in repr(admin)
        with of(here, made.key) as reader:
            assert reader.list_maps().maps == ()
        listed = {one.id: one for one in admin.list_keys()}
        assert listed[made.id].created_at == made.created_at
        assert not hasattr(listed[made.id], "key")
        admin.revoke_key(made.id)
        with pytest.raises(KeyNotFound):
            admin.revoke_key(made.id)
        with pytest.raises(InvalidInput):
            admin.create_key("search", "owner")  # type: ignore[arg-type]


def test_who_lacks_a_key_or_a_role_is_told(here: Keyed, gaussian: dict[str, Any]) -> None:
    with of(here, None) as nobody, pytest.raises(Unauthorized):
        nobody.info()
    with of(here, here.texts[Role.read]) as reader, pytest.raises(Forbidden, match="role read"):
        reader.put_map("m", gaussian)
    with of(here, None) as nobody:
        assert nobody.ready()["status"] == "ready"
