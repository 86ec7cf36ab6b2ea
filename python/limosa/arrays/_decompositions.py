"""Decompositions of distributed matrices, and what follows from them.

How each is computed:

- `solve`, `inv`, `det`, `slogdet`, `cholesky`: by all ranks, in blocks of columns (`_eliminate`).
- `qr`, `svd`, `svdvals`, `pinv`, `matrix_rank` of matrices with more rows than columns: each rank decomposes its block
  of rows; the small factors are decomposed once more on one rank, and its result goes to all (TSQR).
- `eig`, `eigh`, `eigvals`, `eigvalsh`, and `qr` and `svd` with larger factors than the matrix: on one rank, by NumPy.
  Larger matrices than `LARGEST` are an error.
- Of an array of more than two axes each rank decomposes its own matrices with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limosa.arrays._array import Array, check_comm
from limosa.arrays._creation import asarray
from limosa.arrays._eliminate import eliminate, lower_factor, substitute
from limosa.arrays._functions import conj
from limosa.arrays._indexing import broadcast_to
from limosa.arrays._linalg import matmul
from limosa.arrays._map import Map
from limosa.arrays._shaping import matrix_transpose

#: Bytes of a matrix that one rank may decompose for all.
LARGEST = 1 << 28


class QRResult(NamedTuple):
    """The factors of `qr`."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """The factors of `svd`."""

    U: Array
    S: Array
    Vh: Array


class EigResult(NamedTuple):
    """What `eigh` and `eig` return."""

    eigenvalues: Array
    eigenvectors: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


def solve(x1: Array, x2: Array, /) -> Array:
    """Return the solution `x` of ``x1 @ x == x2``, by elimination with partial pivoting on all ranks.

    Raises
    ------
    numpy.linalg.LinAlgError
        On all ranks: `x1` is singular.

    """
    _square(x1, "solve")
    check_comm(x2, x1.map)
    vector = x2.ndim == 1
    if x2.shape[0 if vector else -2] != x1.shape[-1]:
        raise ValueError(f"solve: the right hand sides have the shape {x2.shape}, and the matrix {x1.shape}")
    if x1.ndim > 2 or x2.ndim > 2:
        right = x2[:, None] if vector else x2
        batch = np.broadcast_shapes(x1.shape[:-2], right.shape[:-2])
        made = _each(
            np.linalg.solve, broadcast_to(x1, batch + x1.shape[-2:]), broadcast_to(right, batch + right.shape[-2:])
        )
        return made[..., 0] if vector else made
    dtype = _floating(x1, x2)
    across = Map((1, x1.comm.size), comm=x1.comm)
    right = (x2[:, None] if vector else x2).remap(across)
    mine = np.array(right.local, dtype, order="F")
    done = eliminate(x1, dtype, mine)
    if (done.diagonal == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")
    substitute(done, mine)
    solution = Array(right.shape, across, mine)
    return (solution[:, 0] if vector else solution).remap(Map.default(x2.ndim, x2.comm))


def inv(x: Array, /) -> Array:
    """Return the inverse of a matrix: `solve` with the unit matrix."""
    _square(x, "inv")
    if x.ndim > 2:
        return _each(np.linalg.inv, x)
    return solve(x, asarray(np.eye(x.shape[0], dtype=_floating(x)), map=x.map.without_overlap()))


def slogdet(x: Array, /) -> SlogdetResult:
    """Return sign and logarithm of the determinant, by elimination on all ranks."""
    _square(x, "slogdet")
    if x.ndim > 2:
        return SlogdetResult(*_each_of(np.linalg.slogdet, x))
    done = eliminate(x, _floating(x))
    size = np.abs(done.diagonal)
    if (size == 0).any():
        sign, logarithm = np.zeros((), done.diagonal.dtype), np.asarray(-np.inf, size.dtype)
    else:
        sign, logarithm = np.asarray(done.sign * np.prod(done.diagonal / size)), np.sum(np.log(size))
    return SlogdetResult(_everywhere(x, sign.astype(done.diagonal.dtype)), _everywhere(x, logarithm))


def det(x: Array, /) -> Array:
    """Return the determinant, by elimination on all ranks."""
    _square(x, "det")
    if x.ndim > 2:
        return _each(np.linalg.det, x)
    done = eliminate(x, _floating(x))
    return _everywhere(x, (done.sign * np.prod(done.diagonal)).astype(done.diagonal.dtype))


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Return the triangular factor `L` of a positive matrix ``L @ L.T`` (`upper`: ``U.T @ U``), on all ranks.

    Raises
    ------
    numpy.linalg.LinAlgError
        On all ranks: the matrix is not positive definite.

    """
    _square(x, "cholesky")
    if upper:
        factor = cholesky(conj(matrix_transpose(x)))
        made: Array = conj(matrix_transpose(factor))
        return made
    if x.ndim > 2:
        return _each(np.linalg.cholesky, x)
    lower = lower_factor(x, _floating(x))
    if lower is None:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return lower.remap(Map.default(2, x.comm))


def matrix_power(x: Array, n: int, /) -> Array:
    """Return the product of `n` times the same matrix, of its inverse if `n` is negative."""
    _square(x, "matrix_power")
    if n < 0:
        return matrix_power(inv(x), -n)
    made = asarray(np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape), map=x.map.without_overlap())
    while n:
        made = matmul(made, x) if n % 2 else made
        n //= 2
        x = matmul(x, x) if n else x
    return made


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult:
    """Return an orthogonal matrix and an upper triangle, whose product is the matrix.

    With more rows than columns each rank decomposes its block of rows; ``"complete"`` is for small matrices.
    """
    rows, columns = _matrix(x, "qr")
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: the mode is {mode!r}; hint: 'reduced' or 'complete'")
    if x.ndim > 2:
        return QRResult(*_each_of(lambda part: np.linalg.qr(part, mode), x))  # type: ignore[call-overload]
    if mode == "complete" and rows > columns:
        return QRResult(*_whole("qr", x, lambda whole: np.linalg.qr(whole, "complete")))
    q, r = _tall(x, np.linalg.qr)
    return QRResult(q, asarray(r, map=Map.default(2, x.comm)))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Return singular vectors and values: ``U * S @ Vh`` is the matrix.

    Without `full_matrices` each rank decomposes its block of rows; of a matrix that is wider than high, of columns.
    """
    rows, columns = _matrix(x, "svd")
    if x.ndim > 2:
        return SVDResult(*_each_of(lambda part: np.linalg.svd(part, full_matrices=full_matrices), x))
    if full_matrices and rows != columns:
        return SVDResult(*_whole("svd", x, lambda whole: np.linalg.svd(whole, full_matrices=True)))
    if rows < columns:
        v, s, uh = svd(conj(matrix_transpose(x)), full_matrices=False)
        return SVDResult(conj(matrix_transpose(uh)), s, conj(matrix_transpose(v)))
    u, s, vh = _tall(x, lambda part: np.linalg.svd(part, full_matrices=False))
    default = [Map.default(ndim, x.comm) for ndim in (1, 2)]
    return SVDResult(u, asarray(s, map=default[0]), asarray(vh, map=default[1]))


def svdvals(x: Array, /) -> Array:
    """Return the singular values, the largest first."""
    _matrix(x, "svdvals")
    return svd(x, full_matrices=False).S


def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    """Return the pseudo-inverse. Singular values up to `rtol` times the largest count as zero."""
    rows, columns = _matrix(x, "pinv")
    if x.ndim > 2:
        return _each(lambda part: np.linalg.pinv(part, rcond=_tolerance(rtol, part)), x)
    if 0 in x.shape:
        return asarray(np.empty((columns, rows), _floating(x)), map=Map.default(2, x.comm))
    u, s, vh = svd(x, full_matrices=False)
    values = s.agg_all()
    kept = values > _tolerance(rtol, x) * values[0]
    inverse = np.where(kept, 1 / np.where(kept, values, 1), 0).astype(values.dtype)
    return matmul(conj(matrix_transpose(vh)) * inverse[None, :], conj(matrix_transpose(u)))


def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """Return how many singular values are larger than `rtol` times the largest."""
    _matrix(x, "matrix_rank")
    if x.ndim > 2:
        return _each(lambda part: _rank(np.linalg.svd(part, compute_uv=False), _tolerance(rtol, part)), x)
    return _everywhere(x, _rank(svdvals(x).agg_all(), _tolerance(rtol, x)))


def eigh(x: Array, /) -> EigResult:
    """Return eigenvalues, the smallest first, and eigenvectors of a Hermitian matrix, computed on one rank."""
    _square(x, "eigh")
    return EigResult(*_whole("eigh", x, np.linalg.eigh))


def eigvalsh(x: Array, /) -> Array:
    """Return the eigenvalues of a Hermitian matrix, the smallest first, computed on one rank."""
    _square(x, "eigvalsh")
    return _whole("eigvalsh", x, lambda whole: (np.linalg.eigvalsh(whole),))[0]


def eig(x: Array, /) -> EigResult:
    """Return complex eigenvalues and eigenvectors of a matrix, computed on one rank."""
    _square(x, "eig")
    return EigResult(*_whole("eig", x, lambda whole: tuple(_complex(each) for each in np.linalg.eig(whole))))


def eigvals(x: Array, /) -> Array:
    """Return the complex eigenvalues of a matrix, computed on one rank."""
    _square(x, "eigvals")
    return _whole("eigvals", x, lambda whole: (_complex(np.linalg.eigvals(whole)),))[0]


# --- how it is done --------------------------------------------------------------------------------------------------


def _matrix(x: Array, name: str) -> tuple[int, int]:
    if x.ndim < 2:
        raise ValueError(f"{name} takes a matrix, which has two axes; this array has the shape {x.shape}")
    return x.shape[-2], x.shape[-1]


def _square(x: Array, name: str) -> None:
    rows, columns = _matrix(x, name)
    if rows != columns:
        raise ValueError(f"{name} takes a square matrix; this array has the shape {x.shape}")


def _floating(*arrays: Array) -> np.dtype[Any]:
    """Return the type in which NumPy decomposes such arrays."""
    made = np.result_type(*(each.dtype for each in arrays))
    return made if made.kind in "fc" else np.dtype(float)


def _complex(values: NDArray[Any]) -> NDArray[Any]:
    made: NDArray[Any] = values.astype(np.result_type(values.dtype, np.complex64), copy=False)
    return made


def _everywhere(x: Array, value: Any) -> Array:
    return asarray(np.asarray(value), map=Map.replicated(0, x.comm))


def _tolerance(rtol: Any, x: Any) -> Any:
    """Return a tolerance, by default that of the array API standard."""
    if rtol is not None:
        return rtol.agg_all() if isinstance(rtol, Array) else rtol
    kind = x.dtype if x.dtype.kind in "fc" else np.dtype(float)
    return max(x.shape[-2:]) * np.finfo(kind).eps


def _rank(values: NDArray[Any], rtol: Any) -> NDArray[Any]:
    largest = np.max(values, axis=-1, keepdims=True, initial=0)
    made: NDArray[Any] = np.asarray(np.sum(values > np.asarray(rtol)[..., None] * largest, axis=-1, dtype=np.intp))
    return made


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """Call a function of NumPy with this rank's matrices, of arrays of more than two axes."""
    return _each_of(lambda *parts: (function(*parts),), *arrays)[0]


def _each_of(function: Callable[..., tuple[Any, ...]], *arrays: Array) -> tuple[Array, ...]:
    """Call a function of NumPy that gives several results with this rank's matrices."""
    parts = [each.remap(Map.default(each.ndim, each.comm)) for each in arrays]
    comm, failed = parts[0].comm, ""
    made: tuple[Any, ...] = ()
    try:
        made = function(*(part.local for part in parts))
    except np.linalg.LinAlgError as error:
        failed = str(error)
    _raise_for_all(next((each for each in comm.allgather(failed) if each), ""))

    def array(local: Any) -> Array:
        local = np.asarray(local)
        return Array((parts[0].shape[0], *local.shape[1:]), Map.default(local.ndim, comm), local)

    return tuple(array(each) for each in made)


def _whole(name: str, x: Array, function: Callable[[Any], tuple[NDArray[Any], ...]]) -> tuple[Array, ...]:
    """Call a function of NumPy with the whole matrix on one rank; the results are dealt in blocks of the first axis."""
    if x.ndim > 2:
        return _each_of(function, x)
    if x.nbytes > LARGEST:
        raise ValueError(
            f"{name} of a matrix of the shape {x.shape}: it is computed on one rank, up to {LARGEST >> 20} MiB only; "
            f"hint: numpy.linalg.{name}(x.agg_all()), if the ranks have the memory"
        )
    whole = x.agg()
    results = _on_one(x, lambda: tuple(function(whole)))
    return tuple(asarray(each, map=Map.default(each.ndim, x.comm)) for each in results)


def _tall(x: Array, decompose: Callable[[Any], tuple[NDArray[Any], ...]]) -> tuple[Any, ...]:
    """Decompose a matrix by TSQR: return its first factor, dealt by rows, and the others, whole on all ranks."""
    rows = x.remap(Map.default(2, x.comm))
    q, r = np.linalg.qr(rows.local)
    parts = x.comm.gather(r, 0)
    first, *others = _on_one(x, lambda: tuple(decompose(np.concatenate(parts))))
    counts = x.comm.allgather(len(r))
    start = sum(counts[: x.comm.rank])
    local = q @ first[start : start + len(r)]
    return (Array((x.shape[0], first.shape[1]), rows.map, local), *others)


def _on_one(x: Array, compute: Callable[[], tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    """Compute on rank 0, so that all ranks have the same bits; an error is raised on all."""
    made: tuple[tuple[NDArray[Any], ...], str] | None = None
    if x.comm.rank == 0:
        try:
            made = compute(), ""
        except np.linalg.LinAlgError as error:
            made = (), str(error)
    results, failed = x.comm.bcast(made, 0)
    _raise_for_all(failed)
    return tuple(results)


def _raise_for_all(failed: str) -> None:
    if failed:
        raise np.linalg.LinAlgError(failed)
