"""From Python to the tasks in few calls: records are filled in compiled code, where an array's address costs nothing.

A plan is an int64 array: a counter, the number of jobs, then for every worker the jobs (`job.Field`). A plan that runs
again and again has the jobs that prepare its activations behind them.
"""

from __future__ import annotations

from numba.extending import register_jitable

from engine.kernels.compiled import Task, kernel
from engine.kernels.matmul.job import JOB_FIELDS, Field
from engine.kernels.team import argument, call_task, run_tasks, take_number

_KERNEL, _CHUNKS, _CHUNK_ROWS = int(Field.KERNEL), int(Field.CHUNKS), int(Field.CHUNK_ROWS)
_ROWS, _WEIGHTS, _ROW_BYTES = int(Field.ROWS), int(Field.WEIGHTS), int(Field.ROW_BYTES)
_ACTIVATIONS, _ACTIVATION_STRIDE = int(Field.ACTIVATIONS), int(Field.ACTIVATION_STRIDE)
_COUNT, _OUT, _OUT_STRIDE, _PANEL = int(Field.COUNT), int(Field.OUT), int(Field.OUT_STRIDE), int(Field.PANEL)
_JOBS = 8  # the counter, which all threads write, has a cache line to itself
PREPARATIONS, PREPARATIONS_AT = 9, 10  # how many there are, and the field of the first
HEADER_FIELDS = 16

_CHUNK_BYTES = 1 << 16
"""weights that a thread takes at a time: they stay in its second-level cache while several passes read them"""
_CHUNKS_A_THREAD = 4
"""so that a thread which started late still finds work"""


@register_jitable
def _prepare(plan, task, x, target, stride, workers):  # type: ignore[no-untyped-def]
    """Have activations [T, K] brought into the form that `task` makes, at address `target`, rows `stride` bytes apart.

    One worker does it at once; for several the plan is made, for `DEALER` to run.
    """
    T, K = x.shape
    chunk = (T + workers - 1) // workers
    plan[0], plan[_JOBS] = 0, 1
    for worker in range(workers):
        job = plan[HEADER_FIELDS + worker * JOB_FIELDS :]
        job[_KERNEL], job[_CHUNKS], job[_CHUNK_ROWS], job[_ROWS] = task, (T + chunk - 1) // chunk, chunk, T
        job[_WEIGHTS], job[_ROW_BYTES] = x.ctypes.data, 4 * K
        job[_ACTIVATIONS], job[_ACTIVATION_STRIDE] = target, stride
    if workers == 1:
        call_task(task, plan.ctypes.data + 8 * HEADER_FIELDS, 0, T)


@register_jitable
def _add_job(plan, index, fields, activations, stride, out, workers):  # type: ignore[no-untyped-def]
    """Job number `index`: what is known of the matrix (`fields`), its activations and its output."""
    job = plan[HEADER_FIELDS + index * JOB_FIELDS :]
    for i in range(JOB_FIELDS):
        job[i] = fields[i]
    rows = fields[_ROWS]
    fair = (rows + _CHUNKS_A_THREAD * workers - 1) // (_CHUNKS_A_THREAD * workers)
    chunk = max(4, min(_CHUNK_BYTES // fields[_ROW_BYTES], fair))
    job[_CHUNKS], job[_CHUNK_ROWS] = (rows + chunk - 1) // chunk, chunk
    job[_ACTIVATIONS], job[_ACTIVATION_STRIDE], job[_COUNT] = activations, stride, out.shape[0]
    job[_OUT], job[_OUT_STRIDE] = out.ctypes.data, 4 * out.shape[1]


@register_jitable
def _share_out(plan, jobs, workers, panels, panel_bytes):  # type: ignore[no-untyped-def]
    """Make the plan ready to run: every worker gets records and a panel of its own, from address `panels` on."""
    plan[0], plan[_JOBS] = 0, jobs
    size = jobs * JOB_FIELDS
    for worker in range(workers):
        start = HEADER_FIELDS + worker * size
        for i in range(size):
            plan[start + i] = plan[HEADER_FIELDS + i]
        for index in range(jobs):
            plan[start + index * JOB_FIELDS + _PANEL] = panels + worker * panel_bytes


@kernel("intp(int64[::1], intp, float32[:, ::1], uint8[::1], intp, intp, intp)")
def prepare(plan, task, x, scratch, start, stride, workers):  # type: ignore[no-untyped-def]
    """Prepare activations [T, K] at scratch + start, or leave them where they are if `task` is 0; returns where.

    With several workers the plan then waits to be run.
    """
    if task == 0:
        return x.ctypes.data
    _prepare(plan, task, x, scratch.ctypes.data + start, stride, workers)
    return scratch.ctypes.data + start


@kernel("void(int64[::1], intp, int64[::1], intp, intp, float32[:, ::1], intp)")
def add_job(plan, index, fields, activations, stride, out, workers):  # type: ignore[no-untyped-def]
    """Put a product into a plan."""
    _add_job(plan, index, fields, activations, stride, out, workers)


@kernel("void(int64[::1], intp, intp, uint8[::1], intp, intp)")
def share_out(plan, jobs, workers, scratch, panels, panel_bytes):  # type: ignore[no-untyped-def]
    """Make a plan of `jobs` jobs ready to run; the panels are in scratch memory from `panels` on."""
    _share_out(plan, jobs, workers, scratch.ctypes.data + panels, panel_bytes)


@kernel("void(int64[::1], intp, int64[::1], intp, intp, float32[:, ::1], float32[:, ::1], uint8[::1])")
def product_here(plan, dealer, fields, task, stride, x, out, scratch):  # type: ignore[no-untyped-def]
    """A product on the calling thread from beginning to end: a call from Python costs as much as a small one."""
    activations = x.ctypes.data
    if task != 0:
        activations = scratch.ctypes.data
        _prepare(plan, task, x, activations, stride, 1)
    _add_job(plan, 0, fields, activations, stride, out, 1)
    _share_out(plan, 1, 1, scratch.ctypes.data + x.shape[0] * stride, 0)
    call_task(dealer, plan.ctypes.data, 0, 1)


@kernel("void(int64[::1], intp, intp, intp)")
def run_again(plan, dealer, team, workers):  # type: ignore[no-untyped-def]
    """Prepare the activations of a plan that may have run before, and run it; `team` as in `team.run_tasks`."""
    plan[0] = 0
    for i in range(plan[PREPARATIONS]):
        job = plan[plan[PREPARATIONS_AT] + i * JOB_FIELDS :]
        call_task(job[_KERNEL], job.ctypes.data, 0, job[_ROWS])
    run_tasks(team, dealer, plan.ctypes.data, workers)


def _deal(plan, worker, _workers):  # type: ignore[no-untyped-def]
    jobs = argument(plan, _JOBS)
    records = plan + 8 * (HEADER_FIELDS + worker * jobs * JOB_FIELDS)
    while True:
        chunk = take_number(plan)
        job = records
        left = jobs
        while left > 0 and chunk >= argument(job, _CHUNKS):
            chunk -= argument(job, _CHUNKS)
            job += 8 * JOB_FIELDS
            left -= 1
        if left == 0:
            return
        rows = argument(job, _CHUNK_ROWS)
        first = chunk * rows
        call_task(argument(job, _KERNEL), job, first, min(first + rows, argument(job, _ROWS)))


DEALER = Task(_deal)
"""Takes chunks of rows, of one job after the other, from the plan's counter until none is left."""
KERNELS = (DEALER, prepare, add_job, share_out, product_here, run_again)
