"""The service as a later version of it might be: all that it stores has a version higher by one.

Run with "serve" or "worker", and options of the same command of the service.
"""

from app.jobs import checkpoints


def main() -> None:
    """Raise each version before what writes it is imported."""
    checkpoints.FORMAT += 1
    from app import __main__
    from app.store.datasets import DatasetManifest
    from app.store.maps import MapManifest

    MapManifest.newest += 1
    DatasetManifest.newest += 1
    __main__.main()


if __name__ == "__main__":
    main()
