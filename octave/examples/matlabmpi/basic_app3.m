% basic_app3: pieces of work that rank 0 sends in turn to the other ranks, which it does not work with itself. All is
% sent before the first result is received. For 2 ranks or more.

MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
if comm_size < 2
    error('basic_app3: start it on 2 ranks or more');
end
n_pieces = 13;
input_tag = 100000;
output_tag = 200000;
worker = 1 + mod(0:n_pieces - 1, comm_size - 1);

if my_rank == 0
    for piece = 1:n_pieces
        MPI_Send(worker(piece), input_tag + piece, comm, magic(piece + 2), piece);
    end
    for piece = 1:n_pieces
        total = MPI_Recv(worker(piece), output_tag + piece, comm);
        n = piece + 2;
        if abs(total - n * (n^2 + 1) / 2) > 1e-9
            error('basic_app3: piece %d gave %g', piece, total);
        end
    end
else
    for piece = find(worker == my_rank)
        [square, number] = MPI_Recv(0, input_tag + piece, comm);
        if number ~= piece
            error('basic_app3: rank %d got piece %d instead of %d', my_rank, number, piece);
        end
        MPI_Send(0, output_tag + piece, comm, sum(square(:, 1)));
    end
end

disp('SUCCESS');
MPI_Finalize;
