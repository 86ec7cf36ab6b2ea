% basic_app2: pieces of work that are dealt to all ranks in turn, rank 0 too. Each piece is a row of a product of
% matrices; the results go back one by one under the piece's number as tag. For 2 ranks or more.

MPI_Init;
comm = MPI_COMM_WORLD;
comm_size = MPI_Comm_size(comm);
my_rank = MPI_Comm_rank(comm);
if comm_size < 2
    error('basic_app2: start it on 2 ranks or more');
end
n_pieces = 20;

if my_rank == 0
    A = mod((1:n_pieces)' * (1:30), 7);
    B = mod((1:30)' * (1:12), 5);
    MPI_Bcast(0, 'matrices', comm, A, B);
else
    [A, B] = MPI_Recv(0, 'matrices', comm);
end
owner = mod(0:n_pieces - 1, comm_size);

C = zeros(n_pieces, size(B, 2));
for piece = find(owner == my_rank)
    C(piece, :) = A(piece, :) * B;
    if my_rank > 0
        MPI_Send(0, piece, comm, C(piece, :));
    end
end
if my_rank == 0
    for piece = find(owner > 0)
        C(piece, :) = MPI_Recv(owner(piece), piece, comm);
    end
    if ~isequal(C, A * B)
        error('basic_app2: the product is wrong');
    end
end

disp('SUCCESS');
MPI_Finalize;
