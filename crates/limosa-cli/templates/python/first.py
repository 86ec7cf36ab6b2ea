"""A first program with Limosa: the ranks compute the area of the unit circle together.

    limosa run -n 4 first.py

Limosa starts this file 4 times. The 4 processes are the ranks of the job. They share no variables: what one rank
computes reaches the other ranks by messages. The guide is docs/python.md of Limosa.
"""

import limosa


def circle_area(steps: int) -> float:
    """Return the area of the unit circle on every rank, from strips of width 1/steps under the quarter circle."""
    world = limosa.world  # all ranks of the job
    # The ranks deal out the strips: with 4 ranks, rank 1 computes the strips 1, 5, 9, ...
    own_part = 0.0
    for strip in range(world.rank, steps, world.size):
        x = (strip + 0.5) / steps
        own_part += 4 / steps * (1 - x * x) ** 0.5
    # Adds up the parts of all ranks; each rank gets the sum. All ranks must make this call, otherwise it waits.
    return world.allreduce(own_part)


if __name__ == "__main__":
    area = circle_area(100_000)
    # All ranks have come here. If each printed the result, it would appear once for each rank.
    if limosa.world.rank == 0:
        print(f"the area of the unit circle, by {limosa.world.size} ranks, is {area:.5f}")
