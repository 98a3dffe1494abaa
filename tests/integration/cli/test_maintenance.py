"""`arbor status` and `arbor doctor` say where maintenance is behind, and what to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from apps.memories.models import JobRun
from apps.memories.services.jobs.rounds import note_run
from tests.integration.cli.conftest import Arbor

LATE = "the job arbor.decay.fade_memories has not succeeded for 2 h"


def stop_a_job() -> None:
    note_run(name="arbor.decay.fade_memories", period_s=300, seconds=1)
    JobRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(hours=2))


def test_an_installation_that_keeps_up_says_so(arbor: Arbor) -> None:
    assert "keeps up" in arbor("status").out
    shown = arbor("status", "--json").json["maintenance"]
    assert (shown["state"], shown["findings"]) == ("ok", [])
    assert shown["figures"]["stale_neighborhoods"] == {
        "count": 0,
        "judged": 0,
        "limit": "100:10000",
        "state": "ok",
        "remedy": "",
    }


def test_what_is_behind_is_named_with_its_remedy(arbor: Arbor) -> None:
    stop_a_job()
    out = " ".join(arbor("status").out.split())
    assert LATE in out
    assert "see that its worker and the scheduler run" in out
    shown = arbor("status", "--json").json["maintenance"]
    assert [finding["what"] for finding in shown["findings"]] == [LATE]
    assert shown["jobs"]["arbor.decay.fade_memories"]["state"] == "critical"


def test_the_doctor_finds_it(arbor: Arbor) -> None:
    def finding() -> tuple[str, str]:
        checks = {each["check"]: each for each in arbor("doctor", "--json").json["checks"]}
        return checks["maintenance"]["verdict"], checks["maintenance"]["detail"]

    assert finding() == ("ok", "keeps up; 0 jobs have been heard of")
    stop_a_job()
    assert finding() == ("fail", LATE)
