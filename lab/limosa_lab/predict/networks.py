"""Costs of messages: LogGP parameters of networks, as data, and of this machine, from fitted models.

The parameters of networks are those of common hardware as makers and users publish them, rounded: assumptions, by which
orders of magnitude are predicted. A file may give others (`read`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from limosa_lab.errors import LabError
from limosa_lab.model.models import Model


@dataclass(frozen=True)
class Costs:
    """LogGP: microseconds, and microseconds per byte.

    Attributes
    ----------
    latency
        L: from the sender's network card to the receiver's.
    overhead
        o: time of a processor to send, or to receive, a message.
    gap
        g: least time between two messages of a host.
    gap_per_byte
        G: time of a byte of a long message.
    source
        Where the numbers are from, in words.
    curve
        Sizes and the transfer times of their bytes, where these are not proportional: for messages inside a host.

    """

    latency: float
    overhead: float
    gap: float
    gap_per_byte: float
    source: str = ""
    curve: tuple[tuple[float, float], ...] = ()

    def time(self, n: float) -> float:
        """Give the time of one message, from the call of the sender to the return of the receiver."""
        return self.latency + 2 * self.overhead + float(self.transfer(np.array(n)))

    def transfer(self, n: np.ndarray) -> np.ndarray:
        """Give the times of the bytes of messages: of all but the first, or by the curve."""
        linear: np.ndarray = np.maximum(n - 1, 0) * self.gap_per_byte
        if not self.curve:
            return linear
        sizes, times = zip(*self.curve, strict=True)
        by_curve: np.ndarray = np.where(n > sizes[-1], linear, np.interp(n, sizes, times))
        return by_curve


def known() -> dict[str, Costs]:
    """Give the networks that come with the laboratory."""
    text = resources.files("limosa_lab.predict").joinpath("networks.json").read_text()
    return _parse(json.loads(text), "networks.json")


def read(file: Path) -> dict[str, Costs]:
    """Read networks from a file of the same form.

    Raises
    ------
    LabError
        If the file cannot be read or is not of that form.

    """
    try:
        return _parse(json.loads(file.read_text()), str(file))
    except OSError as error:
        raise LabError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise LabError(f"{file} is not JSON: {error}") from None


def from_model(model: Model, times: str = "median") -> Costs:
    """Take the costs of messages inside a host from a fitted model of MPI_Send.

    A ping-pong cannot tell latency from overhead: a third of its time without bytes is taken for each of L, o and o.
    The bytes of a message up to 1 MB take what the model says, those of a longer one as long each as those of 1 MB.
    """
    empty, long = model.time(0, 2), float(1 << 20)
    sizes = [0.0, *(2.0 ** (k / 4) for k in range(81))]
    curve = tuple((n, max(model.time(n, 2) - empty, 0.0)) for n in sizes)
    return Costs(empty / 3, empty / 3, empty / 3, curve[-1][1] / long, f"the fitted model of MPI_Send ({times})", curve)


def _parse(content: Any, name: str) -> dict[str, Costs]:
    try:
        found = {network: Costs(**numbers) for network, numbers in content.items()}
        for network, costs in found.items():
            numbers = (costs.latency, costs.overhead, costs.gap, costs.gap_per_byte)
            if any(not isinstance(number, (int, float)) or number < 0 for number in numbers):
                raise ValueError(f"{network} has a number below 0, or something that is no number")
    except (TypeError, AttributeError, ValueError) as error:
        raise LabError(
            f"{name} does not describe networks: {error}",
            hint='write {"name": {"latency": 2, "overhead": 0.5, "gap": 0.3, "gap_per_byte": 8e-5}}, in us',
        ) from None
    return found
