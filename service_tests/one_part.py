"""The service, which has one part of its loops ready when it starts. Run it as the service is run."""

from app import __main__
from app.services import warm_up

if __name__ == "__main__":
    warm_up.PARTS = {"measures": warm_up.PARTS["measures"]}
    __main__.main()
