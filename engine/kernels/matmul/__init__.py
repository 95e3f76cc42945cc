"""Matrix products with weights in every layout that files have, from the bytes of the file."""

from engine.kernels.matmul.dequantise import dequantise_rows
from engine.kernels.matmul.linear import linear, linear_many
from engine.kernels.matmul.repeated import linear_again
from engine.kernels.matmul.warm_up import warm_up

__all__ = ["dequantise_rows", "linear", "linear_again", "linear_many", "warm_up"]
