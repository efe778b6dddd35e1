"""What the services refuse, said without HTTP. Bad input is core.errors.InvalidInput."""


class NotFound(Exception):
    """There is no map of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no map {name!r}")
        self.name = name


class DatasetNotFound(Exception):
    """There is no dataset of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no dataset {name!r}")
        self.name = name


class ArrayNotFound(Exception):
    """The map has no such array."""


class MapExists(Exception):
    """Another spec has the name."""

    def __init__(self, name: str, digest: str) -> None:
        super().__init__(f"a map {name!r} with another spec exists (digest {digest}); delete it or take another name")
        self.name = name
        self.digest = digest


class DatasetExists(Exception):
    """Other rows have the name."""

    def __init__(self, name: str, digest: str) -> None:
        super().__init__(f"a dataset {name!r} of other rows exists (digest {digest}); delete it or take another name")
        self.name = name
        self.digest = digest
