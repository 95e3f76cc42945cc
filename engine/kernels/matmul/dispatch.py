"""From Python to the tasks in few calls: records are filled in compiled code, where an array's address costs nothing.

A plan is an int64 array: a counter, the number of jobs, then for every worker the jobs (`job.Field`).
"""

from __future__ import annotations

from numba.extending import register_jitable

from engine.kernels.compiled import Task, kernel
from engine.kernels.matmul.job import JOB_FIELDS, Field
from engine.kernels.team import argument, call_task, run_team, take_number

_KERNEL, _CHUNKS, _CHUNK_ROWS = int(Field.KERNEL), int(Field.CHUNKS), int(Field.CHUNK_ROWS)
_ROWS, _WEIGHTS, _ROW_BYTES = int(Field.ROWS), int(Field.WEIGHTS), int(Field.ROW_BYTES)
_ACTIVATIONS, _ACTIVATION_STRIDE = int(Field.ACTIVATIONS), int(Field.ACTIVATION_STRIDE)
_COUNT, _OUT, _OUT_STRIDE, _PANEL = int(Field.COUNT), int(Field.OUT), int(Field.OUT_STRIDE), int(Field.PANEL)
_JOBS = 8  # the counter, which all threads write, has a cache line to itself
HEADER_FIELDS = 16

_CHUNK_BYTES = 1 << 16
"""weights that a thread takes at a time: they stay in its second-level cache while several passes read them"""
_CHUNKS_A_THREAD = 4
"""so that a thread which started late still finds work"""
_SMALL_PREPARATION = 1 << 16
"""activations below which one thread prepares them alone"""


@register_jitable
def _prepare(plan, dealer, task, x, target, stride, threads):  # type: ignore[no-untyped-def]
    """Bring activations [T, K] into the form that `task` makes, at address `target`, rows `stride` bytes apart."""
    T, K = x.shape
    if x.size < _SMALL_PREPARATION:
        threads = 1
    chunk = (T + threads - 1) // threads
    plan[0], plan[_JOBS] = 0, 1
    for worker in range(threads):
        job = plan[HEADER_FIELDS + worker * JOB_FIELDS :]
        job[_KERNEL], job[_CHUNKS], job[_CHUNK_ROWS], job[_ROWS] = task, (T + chunk - 1) // chunk, chunk, T
        job[_WEIGHTS], job[_ROW_BYTES] = x.ctypes.data, 4 * K
        job[_ACTIVATIONS], job[_ACTIVATION_STRIDE] = target, stride
    if threads == 1:
        call_task(task, plan.ctypes.data + 8 * HEADER_FIELDS, 0, T)
    else:
        run_team(dealer, plan.ctypes.data, threads)


@register_jitable
def _add_job(plan, index, fields, activations, stride, out, threads):  # type: ignore[no-untyped-def]
    """Job number `index`: what is known of the matrix (`fields`), its activations and its output."""
    job = plan[HEADER_FIELDS + index * JOB_FIELDS :]
    for i in range(JOB_FIELDS):
        job[i] = fields[i]
    rows = fields[_ROWS]
    fair = (rows + _CHUNKS_A_THREAD * threads - 1) // (_CHUNKS_A_THREAD * threads)
    chunk = max(4, min(_CHUNK_BYTES // fields[_ROW_BYTES], fair))
    job[_CHUNKS], job[_CHUNK_ROWS] = (rows + chunk - 1) // chunk, chunk
    job[_ACTIVATIONS], job[_ACTIVATION_STRIDE], job[_COUNT] = activations, stride, out.shape[0]
    job[_OUT], job[_OUT_STRIDE] = out.ctypes.data, 4 * out.shape[1]


@register_jitable
def _run(plan, dealer, jobs, threads, panels, panel_bytes):  # type: ignore[no-untyped-def]
    """Work through the first `jobs` jobs; every worker has records and a panel of its own, from address `panels` on."""
    plan[0], plan[_JOBS] = 0, jobs
    size = jobs * JOB_FIELDS
    for worker in range(threads):
        start = HEADER_FIELDS + worker * size
        for i in range(size):
            plan[start + i] = plan[HEADER_FIELDS + i]
        for index in range(jobs):
            plan[start + index * JOB_FIELDS + _PANEL] = panels + worker * panel_bytes
    if threads == 1:
        call_task(dealer, plan.ctypes.data, 0, 1)
    else:
        run_team(dealer, plan.ctypes.data, threads)


@kernel("intp(int64[::1], intp, intp, float32[:, ::1], uint8[::1], intp, intp, intp)")
def prepare(plan, dealer, task, x, scratch, start, stride, threads):  # type: ignore[no-untyped-def]
    """Prepare activations [T, K] at scratch + start, or leave them where they are if `task` is 0; returns where."""
    if task == 0:
        return x.ctypes.data
    _prepare(plan, dealer, task, x, scratch.ctypes.data + start, stride, threads)
    return scratch.ctypes.data + start


@kernel("void(int64[::1], intp, int64[::1], intp, intp, float32[:, ::1], intp)")
def add_job(plan, index, fields, activations, stride, out, threads):  # type: ignore[no-untyped-def]
    """Put a product into a plan."""
    _add_job(plan, index, fields, activations, stride, out, threads)


@kernel("void(int64[::1], intp, intp, intp, uint8[::1], intp, intp)")
def run_plan(plan, dealer, jobs, threads, scratch, panels, panel_bytes):  # type: ignore[no-untyped-def]
    """Work through the first `jobs` jobs; threads take chunks of rows as they come free."""
    _run(plan, dealer, jobs, threads, scratch.ctypes.data + panels, panel_bytes)


@kernel("void(int64[::1], intp, int64[::1], intp, intp, intp, float32[:, ::1], float32[:, ::1], uint8[::1], intp)")
def product(plan, dealer, fields, task, stride, panel_bytes, x, out, scratch, threads):  # type: ignore[no-untyped-def]
    """One product from beginning to end: a call from Python costs as much as a small one."""
    activations = x.ctypes.data
    if task != 0:
        activations = scratch.ctypes.data
        _prepare(plan, dealer, task, x, activations, stride, threads)
    _add_job(plan, 0, fields, activations, stride, out, threads)
    _run(plan, dealer, 1, threads, scratch.ctypes.data + x.shape[0] * stride, panel_bytes)


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
KERNELS = (DEALER, prepare, add_job, run_plan, product)
