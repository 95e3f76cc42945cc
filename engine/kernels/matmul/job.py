"""A job: the record of int64 fields that tells a compiled kernel which rows times which activations go where."""

from __future__ import annotations

from enum import IntEnum

from engine.kernels.simd import I64, Builder, Value, load, offset


class Field(IntEnum):
    """Position of a field in the record; addresses and strides are in bytes."""

    KERNEL = 0
    """address of the compiled kernel (fields, first weight row, end of weight rows)"""
    CHUNKS = 1
    CHUNK_ROWS = 2
    ROWS = 3
    """rows of the weight matrix"""
    WEIGHTS = 4
    ROW_BYTES = 5
    STEPS = 6
    """steps along a row, the last of which may be a tail"""
    TAIL_BYTES = 7
    """bytes of the last step that exist when it is not whole, else 0"""
    ACTIVATIONS = 8
    ACTIVATION_STRIDE = 9
    COUNT = 10
    """rows of activations"""
    OUT = 11
    OUT_STRIDE = 12
    SCALE = 13
    SCALE_STRIDE = 14
    PANEL = 15
    """this worker's memory: a record, then decoded weights; 64-byte aligned"""
    PANEL_ROWS = 16
    """weight rows that fit in the panel"""
    PANEL_KERNEL = 17
    """address of the task that multiplies panels of the format's kind"""


JOB_FIELDS = 20


def load_field(b: Builder, job: Value, field: Field) -> Value:
    """The value of `field` of the record at address `job`."""
    return load(b, offset(b, job, 8 * field), I64, 8)


def scale_address(b: Builder, job: Value, row: Value, column: Value) -> Value:
    """Address of the factor of the 128 × 128 block that a weight is in (F8_E4M3; elsewhere it is not read)."""
    of_row = b.mul(b.lshr(row, I64(7)), load_field(b, job, Field.SCALE_STRIDE))
    return b.add(b.add(load_field(b, job, Field.SCALE), of_row), b.mul(b.lshr(column, I64(7)), I64(4)))
