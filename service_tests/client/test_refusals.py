import pickle

from app.api.problems import KINDS
from bochner_client import JobFailed, JobRecord, ServiceAway
from bochner_client.refusals import refusal
from service_tests.cases import each


@each("slug", KINDS)
def test_every_kind_of_problem_has_its_exception(slug: str) -> None:
    document = {"type": f"/problems/{slug}", "title": "T", "detail": "what came", "limit": "max", "value": 3}
    error = refusal(KINDS[slug].status, document, 2.0)
    assert slug in type(error).slugs
    assert (error.slug, error.title, error.detail, error.limit, error.value) == (slug, "T", "what came", "max", 3)
    assert str(error) == f"{KINDS[slug].status}: what came"


def test_exceptions_go_from_process_to_process() -> None:
    job = {"id": "j", "state": "failed", "error": {"reason": "time", "detail": "too long"}}
    for error in (
        refusal(503, {"type": "/problems/overloaded", "detail": "busy"}, 1.5),
        ServiceAway("gone", unsent=True),
        JobFailed(JobRecord.read(job)),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
