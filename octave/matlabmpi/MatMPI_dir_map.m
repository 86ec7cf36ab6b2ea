## -*- texinfo -*-
## @deftypefn {} {[@var{pc}, @var{unix}] =} MatMPI_dir_map (@var{machine_db}, @var{folder})
## Return the names that a folder has on Windows and on Unix, by @code{machine_db.pc_unix_dir_map}.
## @end deftypefn

function [pc, unix] = MatMPI_dir_map (machine_db, folder)
  map = machine_db.pc_unix_dir_map;
  if (strncmp (folder, map{1}, numel (map{1})))
    pc = folder;
    unix = strrep ([map{2}, folder(numel (map{1}) + 1:end)], "\\", "/");
  elseif (strncmp (folder, map{2}, numel (map{2})))
    unix = folder;
    pc = strrep ([map{1}, folder(numel (map{2}) + 1:end)], "/", "\\");
  else
    pc = unix = folder;
  end
end
