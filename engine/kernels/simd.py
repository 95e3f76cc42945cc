"""Vector code for Numba: small functions that emit LLVM instructions into an `@intrinsic` under construction.

Every function takes the builder `b` and IR values and returns IR values. Addresses are 64-bit integers. No fast-math
flag is ever set and every fused multiply-add is explicit, so that a result depends neither on the code around it nor on
the width of the registers: LLVM splits a vector that is too wide, lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features

Builder = Any
"""llvmlite.ir.IRBuilder, which is untyped"""
Value = Any
"""llvmlite.ir.Value"""

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F16, F32 = ir.HalfType(), ir.FloatType()


@cache
def target_features() -> frozenset[str]:
    """Features of the processor that Numba compiles for (`NUMBA_CPU_FEATURES` included), in LLVM's names."""
    text = config.CPU_FEATURES if config.CPU_FEATURES is not None else get_host_cpu_features()
    return frozenset(name[1:] for name in text.split(",") if name.startswith("+"))


def has(*features: str) -> bool:
    """Whether the processor that Numba compiles for has all of `features`."""
    return target_features().issuperset(features)


# ---- types and constants ----


def vector(element: ir.Type, lanes: int) -> ir.Type:
    """The LLVM type <lanes x element>."""
    return ir.VectorType(element, lanes)


def zero(kind: ir.Type) -> Value:
    """All bits zero."""
    return ir.Constant(kind, None)


def constant(element: ir.Type, values: Sequence[float]) -> Value:
    """A vector of the given lanes."""
    return ir.Constant(vector(element, len(values)), [element(value) for value in values])


def filled(element: ir.Type, lanes: int, value: float) -> Value:
    """A vector with `value` in every lane."""
    return constant(element, [value] * lanes)


# ---- memory ----


def offset(b: Builder, address: Value, distance: int) -> Value:
    """address + a constant number of bytes."""
    return b.add(address, I64(distance)) if distance else address


def load(b: Builder, address: Value, kind: ir.Type, align: int = 1) -> Value:
    """The value of type `kind` at `address`, which is a multiple of `align`."""
    instruction = b.load(b.inttoptr(address, kind.as_pointer()))
    instruction.align = align
    return instruction


def store(b: Builder, value: Value, address: Value, align: int = 1) -> None:
    """Write `value` to `address`, which is a multiple of `align`."""
    b.store(value, b.inttoptr(address, value.type.as_pointer())).align = align


def stack_buffer(b: Builder, nbytes: int) -> Value:
    """Address of `nbytes` zeroed bytes in the frame of the function, aligned to 64."""
    with b.goto_entry_block():
        slot = b.alloca(ir.ArrayType(I8, nbytes))
        slot.align = 64
        b.store(zero(slot.type.pointee), slot)
        return b.ptrtoint(slot, I64)


def unknown_buffer(b: Builder, nbytes: int) -> Value:
    """A `stack_buffer` of which LLVM does not know that what is read from it is what was stored just before."""
    buffer = stack_buffer(b, nbytes)
    with b.goto_entry_block():
        return b.asm(ir.FunctionType(I64, [I64]), "", "=r,0", [buffer], side_effect=False)


def copy_bytes(b: Builder, target: Value, source: Value, count: Value) -> None:
    """memcpy of `count` bytes (a run-time value)."""
    cgutils.raw_memcpy(b, b.inttoptr(target, I8.as_pointer()), b.inttoptr(source, I8.as_pointer()), count, 1)


# ---- moving lanes ----


def shuffle(b: Builder, first: Value, lanes: Sequence[int], second: Value | None = None) -> Value:
    """The lanes of `first` followed by `second`, in the order of the numbers `lanes`."""
    other = ir.Constant(first.type, ir.Undefined) if second is None else second
    return b.shuffle_vector(first, other, ir.Constant(vector(I32, len(lanes)), [I32(lane) for lane in lanes]))


def splat(b: Builder, scalar: Value, lanes: int) -> Value:
    """A vector with the run-time value `scalar` in every lane."""
    kind = vector(scalar.type, lanes)
    return shuffle(b, b.insert_element(ir.Constant(kind, ir.Undefined), scalar, I32(0)), [0] * lanes)


def split(b: Builder, value: Value, parts: int) -> list[Value]:
    """`parts` vectors of equal length, in order."""
    lanes = value.type.count // parts
    return [shuffle(b, value, range(part * lanes, (part + 1) * lanes)) for part in range(parts)]


def concatenate(b: Builder, values: Sequence[Value]) -> Value:
    """One vector of all lanes; the number of vectors is a power of two."""
    parts = list(values)
    while len(parts) > 1:
        lanes = range(2 * parts[0].type.count)
        parts = [shuffle(b, parts[i], lanes, parts[i + 1]) for i in range(0, len(parts), 2)]
    return parts[0]


def reinterpret(b: Builder, value: Value, element: ir.Type, lanes: int) -> Value:
    """The same bits as <lanes x element>."""
    return b.bitcast(value, vector(element, lanes))


def gather(b: Builder, element: ir.Type, scalars: Sequence[Value]) -> Value:
    """A vector of the given scalars."""
    result = ir.Constant(vector(element, len(scalars)), ir.Undefined)
    for lane, scalar in enumerate(scalars):
        result = b.insert_element(result, scalar, I32(lane))
    return result


def table(b: Builder, name: str, element: ir.Type, values: Sequence[int]) -> Value:
    """Address of a constant array that is part of the compiled code."""
    content = ir.Constant(ir.ArrayType(element, len(values)), [element(value) for value in values])
    return b.ptrtoint(cgutils.global_constant(b, name, content), I64)


def lookup_bytes(b: Builder, values: Sequence[int], indices: Value) -> Value:
    """values[index] for the bytes 0…15 in `indices` <16n x i8>; 16 signed bytes are the values."""
    lanes = indices.type.count
    if has("avx2") and lanes > 32:
        return concatenate(b, [lookup_bytes(b, values, half) for half in split(b, indices, 2)])
    if has("avx2") and lanes == 32:
        return _call(b, "llvm.x86.avx2.pshuf.b", indices.type, [constant(I8, [*values, *values]), indices])
    if has("ssse3") and lanes == 16:
        return _call(b, "llvm.x86.ssse3.pshuf.b.128", indices.type, [constant(I8, values), indices])
    entries = table(b, "bytes", I8, [value & 0xFF for value in values])
    found = [b.extract_element(indices, I32(lane)) for lane in range(lanes)]
    return gather(b, I8, [load(b, b.add(entries, b.zext(index, I64)), I8) for index in found])


def opaque(b: Builder, value: Value) -> Value:
    """The same value, of whose origin LLVM knows nothing: it then leaves cheap shuffles of it as they are written.

    Only for AVX2, where what LLVM makes of two shuffles in a row often crosses the halves of a register, at many times
    the price; elsewhere, and with vectors of integers that do not fill one register, nothing happens.
    """
    if not _narrow_avx() or value.type.count * value.type.element.width != 256:
        return value
    return b.asm(ir.FunctionType(value.type, [value.type]), "", "=x,0", [value], side_effect=False)


def spread_lanes(b: Builder, value: Value, memory: Value | None) -> Callable[[int, int], Value]:
    """The function (lane, width) → that lane of a float vector, `width` times.

    Given `memory` (`unknown_buffer`), which pays with AVX2 (`prefers_memory`), the lanes are read back from there.
    """
    if memory is None:
        return lambda lane, width: shuffle(b, value, [lane] * width)
    store(b, value, memory, 4)
    return lambda lane, width: splat(b, load(b, offset(b, memory, 4 * lane), value.type.element, 4), width)


def prefers_memory() -> bool:
    """Whether a broadcast from memory costs less than moving lanes between the halves of a register."""
    return _narrow_avx()


def _narrow_avx() -> bool:
    return has("avx2") and not has("avx512bw")


# ---- arithmetic ----


def _call(b: Builder, name: str, result: ir.Type, arguments: Sequence[Value]) -> Value:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return b.call(cgutils.get_or_insert_function(b.module, kind, name), arguments)


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z with one rounding, float32 vector or scalar."""
    lanes = f"v{x.type.count}" if isinstance(x.type, ir.VectorType) else ""
    return _call(b, f"llvm.fma.{lanes}f32", x.type, [x, y, z])


def to_float(b: Builder, value: Value) -> Value:
    """Signed integers to float32."""
    return b.sitofp(value, vector(F32, value.type.count))


def sum_of_lanes(b: Builder, value: Value) -> Value:
    """The sum as a scalar, by the fixed tree lane i + lane i + n/2."""
    add = b.fadd if isinstance(value.type.element, ir.FloatType) else b.add
    while value.type.count > 1:
        low, high = split(b, value, 2)
        value = add(low, high)
    return b.extract_element(value, I32(0))


def half_to_float(b: Builder, bits: Value) -> Value:
    """IEEE half precision, given as <n x i16> or i16, to float32, exactly, with or without the processor's help."""
    if has("f16c") or has("fullfp16"):
        kind = vector(F16, bits.type.count) if isinstance(bits.type, ir.VectorType) else F16
        result = vector(F32, bits.type.count) if isinstance(bits.type, ir.VectorType) else F32
        return b.fpext(b.bitcast(bits, kind), result)
    if not isinstance(bits.type, ir.VectorType):
        one = b.insert_element(ir.Constant(vector(I16, 1), ir.Undefined), bits, I32(0))
        return b.extract_element(half_to_float(b, one), I32(0))
    lanes = bits.type.count
    wide = b.zext(bits, vector(I32, lanes))
    magnitude = b.shl(b.and_(wide, filled(I32, lanes, 0x7FFF)), filled(I32, lanes, 13))
    scaled = b.fmul(reinterpret(b, magnitude, F32, lanes), filled(F32, lanes, 2.0**112))  # moves the exponent's bias
    special = b.icmp_unsigned(">=", magnitude, filled(I32, lanes, 0x7C00 << 13))
    infinite = b.or_(magnitude, filled(I32, lanes, 0x7F800000))
    finite = reinterpret(b, scaled, I32, lanes)
    sign = b.shl(b.and_(wide, filled(I32, lanes, 0x8000)), filled(I32, lanes, 16))
    return reinterpret(b, b.or_(b.select(special, infinite, finite), sign), F32, lanes)


def select_signed(b: Builder, by: Value, value: Value) -> Value:
    """value · (−1 where `by` is negative, anything where it is 0, else 1), <n x i8>."""
    lanes = value.type.count
    if has("avx2") and not has("avx512bw") and lanes > 32:
        halves = zip(split(b, by, 2), split(b, value, 2), strict=True)
        return concatenate(b, [select_signed(b, p, q) for p, q in halves])
    if has("avx2") and lanes == 32:
        return _call(b, "llvm.x86.avx2.psign.b", value.type, [value, by])
    return b.select(b.icmp_signed("<", by, zero(by.type)), b.sub(zero(value.type), value), value)


def absolute(b: Builder, value: Value) -> Value:
    """|value| of signed bytes as unsigned bytes (128 for −128)."""
    return b.select(b.icmp_signed("<", value, zero(value.type)), b.sub(zero(value.type), value), value)


# ---- integer dot products ----


def multiply_bytes(b: Builder, unsigned: Value, signed: Value) -> Value:
    """<2n x u8> · <2n x s8> → <n x i16>, sums of neighbouring pairs.

    x86 saturates where the portable form wraps: the caller keeps |u0·s0 + u1·s1| ≤ 32767.
    """
    lanes = unsigned.type.count
    if has("avx512bw") and lanes == 64:
        return _call(b, "llvm.x86.avx512.pmaddubs.w.512", vector(I16, 32), [unsigned, signed])
    if has("avx2") and lanes == 32:
        return _call(b, "llvm.x86.avx2.pmadd.ub.sw", vector(I16, 16), [unsigned, signed])
    if has("avx2") and lanes > 32:
        halves = zip(split(b, unsigned, 2), split(b, signed, 2), strict=True)
        return concatenate(b, [multiply_bytes(b, u, s) for u, s in halves])
    wide = vector(I16, lanes)
    return _sum_pairs(b, b.mul(b.zext(unsigned, wide), b.sext(signed, wide)))


def multiply_words(b: Builder, x: Value, y: Value) -> Value:
    """<2n x i16> · <2n x i16> → <n x i32>, sums of neighbouring pairs."""
    lanes = x.type.count
    if has("avx512bw") and lanes == 32:
        return _call(b, "llvm.x86.avx512.pmaddw.d.512", vector(I32, 16), [x, y])
    if has("avx2") and lanes == 16:
        return _call(b, "llvm.x86.avx2.pmadd.wd", vector(I32, 8), [x, y])
    if has("avx2") and lanes > 16:
        halves = zip(split(b, x, 2), split(b, y, 2), strict=True)
        return concatenate(b, [multiply_words(b, p, q) for p, q in halves])
    wide = vector(I32, lanes)
    return _sum_pairs(b, b.mul(b.sext(x, wide), b.sext(y, wide)))


def _sum_pairs(b: Builder, value: Value) -> Value:
    lanes = value.type.count
    return b.add(shuffle(b, value, range(0, lanes, 2)), shuffle(b, value, range(1, lanes, 2)))


def dot_bytes(b: Builder, total: Value, unsigned: Value, signed: Value) -> Value:
    """total <n x i32> + sums of four neighbouring products u8 · s8, within the bounds of `multiply_bytes`."""
    lanes = total.type.count
    if has("avx512vnni", "avx512vl") and lanes in {4, 8, 16}:
        return _call(b, f"llvm.x86.avx512.vpdpbusd.{lanes * 32}", total.type, [total, unsigned, signed])
    pairs = multiply_bytes(b, unsigned, signed)
    return b.add(total, multiply_words(b, pairs, filled(I16, pairs.type.count, 1)))
