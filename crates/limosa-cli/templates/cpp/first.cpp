// A first program with MPI: the ranks compute the area of the unit circle together.
//
//     make && limosa run -n 4 ./first
//
// Limosa starts the program 4 times. The 4 processes are the ranks of the job. They share no variables: what one rank
// computes reaches the other ranks by messages. C++ calls the functions of MPI's C interface.

#include <mpi.h>

#include <cmath>
#include <cstdio>

namespace
{

// MPI as long as this object lives: its destructor ends MPI also where an exception leaves `main`'s block.
struct Mpi {
    Mpi(int *argc, char ***argv)
    {
        MPI_Init(argc, argv);
    }
    ~Mpi()
    {
        MPI_Finalize();
    }
    Mpi(const Mpi &) = delete;
    Mpi &operator=(const Mpi &) = delete;

    // The number of this rank, from 0.
    int rank() const
    {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return rank;
    }

    // The number of ranks.
    int size() const
    {
        int size;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        return size;
    }
};

// Returns the area of the unit circle on every rank, from strips of width 1/steps under the quarter circle.
double circle_area(const Mpi &mpi, int steps)
{
    // The ranks deal out the strips: with 4 ranks, rank 1 computes the strips 1, 5, 9, ...
    double area = 0;
    for (int strip = mpi.rank(); strip < steps; strip += mpi.size()) {
        const double x = (strip + 0.5) / steps;
        area += 4.0 / steps * std::sqrt(1 - x * x);
    }
    // Adds up the parts of all ranks, in place; each rank gets the sum. All ranks must make this call, otherwise it
    // waits.
    MPI_Allreduce(MPI_IN_PLACE, &area, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return area;
}

} // namespace

int main(int argc, char **argv)
{
    const Mpi mpi(&argc, &argv);
    const double area = circle_area(mpi, 100000);
    // All ranks have come here. If each printed the result, it would appear once for each rank.
    if (mpi.rank() == 0)
        std::printf("the area of the unit circle, by %d ranks, is %.5f\n", mpi.size(), area);
}
