"""exp (within 1 unit in the last place), sigmoid, silu and softplus (within 3) of sixteen lanes, the same everywhere.

Libraries of different systems and vector widths disagree in the last bit; these use only additions, multiplications,
divisions and explicit fused multiply-adds, which IEEE 754 defines exactly. NaN gives NaN.
"""

from __future__ import annotations

from engine.kernels import simd
from engine.kernels.lanes import LANES, Lanes, emitted
from engine.kernels.simd import F32, I32, Builder, Value

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471824645996, -1.9046542121259336e-09  # high is ln 2 as float32, low is the rest
_ROUNDER = 12582912.0  # 1.5 · 2²³: adding it rounds to an integer, which then stands in the low bits
_ROUNDER_BITS = 0x4B400000
_EXP_LOWEST, _EXP_HIGHEST = -104.0, 89.0  # beyond these the result is 0 or infinite
# (exp r − 1 − r) / r² for |r| ≤ ln 2 / 2, minimax, relative error of exp r below 2⁻²⁸
_EXP = (0.4999999403953552, 0.1666651964187622, 0.04166839271783829, 0.008368780836462975, 0.0013814467238262296)
# (artanh s / s − 1) / s² in s² for s ≤ 1/3, minimax, relative error below 2⁻³³
_ARTANH = (0.3333333730697632, 0.19999438524246216, 0.14308442175388336, 0.10713828355073929, 0.12150470167398453)


def _filled(value: float) -> Value:
    return simd.filled(F32, LANES, value)


def _polynomial(b: Builder, x: Value, coefficients: tuple[float, ...]) -> Value:
    """Σ coefficients[i] · xⁱ, by Horner's rule."""
    *rest, total = (_filled(coefficient) for coefficient in coefficients)
    for coefficient in reversed(rest):
        total = simd.fma(b, total, x, coefficient)
    return total


def _power_of_two(b: Builder, exponent: Value) -> Value:
    """2 to the integers `exponent`, −126…127."""
    biased = b.add(exponent, simd.filled(I32, LANES, 127))
    return simd.reinterpret(b, b.shl(biased, simd.filled(I32, LANES, 23)), F32, LANES)


def emit_exp(b: Builder, x: Value) -> Value:
    """exp x = 2ⁿ · exp r with n = round(x / ln 2) and r = x − n ln 2 (Cody and Waite, 1980)."""
    x = b.select(b.fcmp_ordered(">", x, _filled(_EXP_HIGHEST)), _filled(_EXP_HIGHEST), x)
    x = b.select(b.fcmp_ordered("<", x, _filled(_EXP_LOWEST)), _filled(_EXP_LOWEST), x)
    shifted = simd.fma(b, x, _filled(_LOG2_E), _filled(_ROUNDER))
    n = b.sub(simd.reinterpret(b, shifted, I32, LANES), simd.filled(I32, LANES, _ROUNDER_BITS))
    n_float = b.fsub(shifted, _filled(_ROUNDER))
    r = simd.fma(b, n_float, _filled(-_LN2_HIGH), x)
    r = simd.fma(b, n_float, _filled(-_LN2_LOW), r)
    grown = simd.fma(b, b.fmul(r, r), _polynomial(b, r, _EXP), r)
    power = b.fadd(grown, _filled(1.0))
    # In two factors, because 2ⁿ itself is out of range where the result is infinite or has no leading bit.
    half = b.ashr(n, simd.filled(I32, LANES, 1))
    power = b.fmul(power, _power_of_two(b, half))
    return b.fmul(power, _power_of_two(b, b.sub(n, half)))


def _exp_of_minus_magnitude(b: Builder, x: Value) -> Value:
    """exp −|x|, never above 1."""
    return emit_exp(b, b.select(b.fcmp_ordered(">", x, _filled(0.0)), b.fneg(x), x))


def emit_sigmoid(b: Builder, x: Value, factor: Value | None = None) -> Value:
    """1 / (1 + exp −x), from exp −|x| so that neither end overflows; with a factor, that times it."""
    small = _exp_of_minus_magnitude(b, x)
    numerator = b.select(b.fcmp_ordered(">=", x, _filled(0.0)), _filled(1.0), small)
    if factor is not None:
        numerator = b.fmul(factor, numerator)
    return b.fdiv(numerator, b.fadd(small, _filled(1.0)))


def emit_softplus(b: Builder, x: Value) -> Value:
    """log(1 + exp x) = max(x, 0) + 2 artanh(t / (2 + t)) with t = exp −|x|."""
    t = _exp_of_minus_magnitude(b, x)
    s = b.fdiv(t, b.fadd(t, _filled(2.0)))
    square = b.fmul(s, s)
    log1p = b.fmul(_filled(2.0), simd.fma(b, b.fmul(s, square), _polynomial(b, square, _ARTANH), s))
    return b.fadd(b.select(b.fcmp_ordered(">", x, _filled(0.0)), x, _filled(0.0)), log1p)


@emitted(Lanes, Lanes)
def exp(b: Builder, x: Value) -> Value:
    """e to the power of every lane."""
    return emit_exp(b, x)


@emitted(Lanes, Lanes)
def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + exp −x)"""
    return emit_sigmoid(b, x)


@emitted(Lanes, Lanes)
def silu(b: Builder, x: Value) -> Value:
    """x · sigmoid x"""
    return emit_sigmoid(b, x, x)


@emitted(Lanes, Lanes)
def softplus(b: Builder, x: Value) -> Value:
    """log(1 + exp x)"""
    return emit_softplus(b, x)
