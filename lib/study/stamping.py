"""Names today's code in records by older code whose training today's code repeats.

A refactoring, or a new option that no record uses, changes the digest of training and not a bit of what
it computes. Such records need not be trained anew: the first steps are, and where every number on
record of those steps comes out again, the record is stamped, which it says.
"""

from lib.evaluation.following import few_pairs, follow
from lib.study import records
from lib.study.jobs import Job, OnRecord, Place, digests, look
from lib.study.runs import load_network
from lib.training import train

STEPS = 20


def stamp(job: Job, place: Place) -> bool:
    """Whether a job's record, by older code on today's data, was found to be repeated and now names
    today's code of training and following. Its metrics are left to `lib.study.runs.carry_out`, which
    takes those by older code anew from the weights.

    Args:
        job: a training run.
        place: where its record and, beside it, its weights lie.

    Raises:
        FileNotFoundError, DamagedRecord: there are no weights, or not those that were written.
    """
    found, today = look(job, place), digests(job, place)
    if found.state != "older code" or job.recipe is None:
        return False
    record, then = found.content, found.content["digests"]
    same_data = all(then[part]["data"] == today[part]["data"] for part in ("training", "following"))
    if not (same_data and _trains_alike(job, place, record) and _followed_alike(job, place, found)):
        return False
    changed = {part: then[part]["code"] for part in ("training", "following")}
    record["stamped"] = [*record.get("stamped", ()), {"steps": STEPS, "instead_of": changed}]
    record["digests"] = {**then, "training": today["training"], "following": today["following"]}
    records.write(found.path, record)
    return True


def _trains_alike(job: Job, place: Place, record: dict) -> bool:
    """Whether the curves of the first steps are those on record, to every digit there is of them."""
    patch_set = place.source.load(job.train_set)
    trained = train(
        job.recipe, job.profile(place), patch_set, job.seed, device=place.device, max_steps=STEPS
    )
    closed = len(trained.curve["step"])
    return all(
        of[:closed] == [round(value, 6) for value in trained.curve.get(name, ())]
        for name, of in record["curve"].items()
    )


def _followed_alike(job: Job, place: Place, found: OnRecord) -> bool:
    """Whether the FPR95 that ended the following of training comes out of the weights again."""
    on_record, pairs = found.content["epoch_fpr95"], job.profile(place).followed_pairs
    few = {name: few_pairs(place.source.load(name), pairs) for name in on_record}
    today = follow(load_network(found.path, device=place.device), few, place.device)
    return all(round(today[name], 6) == of[-1] for name, of in on_record.items())
