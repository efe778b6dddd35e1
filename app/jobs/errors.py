"""What can be wrong with a job, said without HTTP."""


class JobNotFound(Exception):
    """There is no job of that id, or no more."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id!r}; ended jobs are kept for a time only")


class JobHasNoResult(Exception):
    """The job has not succeeded, or gives no result of its own."""


class JobHasEnded(Exception):
    """The job cannot be cancelled any more."""


class TooManyJobs(Exception):
    """A job is not taken on, as `max_queued_jobs` of them wait already."""

    limit = "max_queued_jobs"

    def __init__(self, waiting: int, allowed: int) -> None:
        super().__init__(f"{waiting} jobs wait; max_queued_jobs is {allowed}")
        self.allowed = allowed


class NotMine(Exception):
    """The job has been cancelled, or given to another process: whatever this one still does is not wanted."""


class ResultElsewhere(Exception):
    """The result of a job is at another address, its only argument."""
