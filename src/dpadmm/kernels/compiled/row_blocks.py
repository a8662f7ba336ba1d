"""The rows of one block: where they are, what is known of each, and what is asked of memory before they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpadmm.kernels.jit import kernel
from dpadmm.kernels.vectors.dense_blocks import copy_run, none_is_zero

U = np.uintp


@intrinsic
def prefetch(typing: Any, address: Any) -> Any:
    """Ask for the cache line at an address. A wrong address does no harm."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(ask, [builder.inttoptr(args[0], pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.uintp), generate


@intrinsic
def is_single(typing: Any, array: Any) -> Any:
    """Whether an array is of float32: a constant to the compiler."""
    return types.boolean(array), lambda context, builder, signature, args: ir.IntType(1)(array.dtype == types.float32)


@kernel(inline=True)
def _note(i, weight, r, factors, norms, target, index, factor, norm, weighed, label):
    """Row i of the table is row r of the block."""
    index[r], factor[r], norm[r], weighed[r] = i, factors[i], norms[i], factors[i] * weight
    for k in range(U(target.shape[0])):
        label[k, r] = target[k, i]


@kernel(inline=True)
def next_rows(length, position, end, at, rows, weights, factors, norms, target, index, factor, norm, weighed, label):
    """Note the next rows that count from place `at` on.

    Returns the position after them, how many there are, and the number of the first, or −1 if others may lie between
    them; `index` holds their numbers only then.
    """
    if rows is None and weights is None and position + U(length) <= end and none_is_zero(factors, position, U(length)):
        copy_run(factors, U(0), position, factor, U(0), at, U(length))
        copy_run(factors, U(0), position, weighed, U(0), at, U(length))
        copy_run(norms, U(0), position, norm, U(0), at, U(length))
        for k in range(U(target.shape[0])):
            copy_run(target, k, position, label, k, at, U(length))
        return position + U(length), U(length), np.intp(position)
    count = U(0)
    while count < U(length) and position < end:
        i = position if rows is None else U(rows[position])
        # Rows that count as zero may hold NaN and are never read.
        if factors[i] != 0.0:
            weight = 1.0 if weights is None else weights[position]
            _note(i, weight, at + count, factors, norms, target, index, factor, norm, weighed, label)
            count += U(1)
        position += U(1)
    return position, count, np.intp(-1)


@kernel(inline=True)
def thirds(room, outputs, anchors):
    """Margins, slopes and margins at the anchors, if there are any."""
    return room[:outputs], room[outputs : 2 * outputs], room[2 * outputs : (2 if anchors is None else 3) * outputs]
