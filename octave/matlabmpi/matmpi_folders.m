## matmpi_folders (): the folders that were added to this interpreter's path, as arguments of addpath. Ranks in the
## background find the same functions: this toolbox, and what else the program uses.

function text = matmpi_folders ()
  folders = strsplit (path (), pathsep ());
  of_octave = ['^' regexptranslate("escape", OCTAVE_HOME ()) '/(share|lib[^/]*)(/[^/]+)?/octave(/|$)'];
  is_given = cellfun (@isempty, regexp (folders, of_octave, "once")) & ! strcmp (folders, ".");
  folders = cellfun (@make_absolute_filename, folders(is_given), "UniformOutput", false);
  text = strjoin (strcat ("'", strrep (folders, "'", "''"), "'"), ", ");
end
