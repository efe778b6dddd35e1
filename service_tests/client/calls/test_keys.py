from pathlib import Path
from typing import Any

import pytest

from app.store.keys import Role
from bochner_client import Client, Forbidden, KeyNotFound, Unauthorized
from service_tests.keyed import keyed
from service_tests.running import service


def test_keys_are_made_listed_and_revoked(tmp_path: Path, gaussian: dict[str, Any]) -> None:
    with service(tmp_path / "data", "--require-keys", "true") as running:
        url, text = running.url, keyed(running).texts[Role.admin]
        with Client(url) as nobody, pytest.raises(Unauthorized):
            nobody.info()
        with Client(url, text) as admin:
            made = admin.create_key("search", "read", rate=50, burst=40, quota=1000)
            assert (made.name, made.role, made.rate, made.burst, made.quota) == ("search", "read", 50, 40, 1000)
            assert text not in repr(admin)
            with Client(url, made.key) as reader, pytest.raises(Forbidden, match="role read"):
                reader.put_map("m", gaussian)
            listed = {one.id: one for one in admin.list_keys()}
            assert listed[made.id].created_at == made.created_at
            assert not hasattr(listed[made.id], "key")
            admin.revoke_key(made.id)
            with pytest.raises(KeyNotFound):
                admin.revoke_key(made.id)
