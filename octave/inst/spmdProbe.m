## -*- texinfo -*-
## @deftypefn  {} {[@var{found}, @var{source}, @var{tag}] =} spmdProbe ()
## @deftypefnx {} {[@var{found}, @var{source}, @var{tag}] =} spmdProbe (@var{source})
## @deftypefnx {} {[@var{found}, @var{source}, @var{tag}] =} spmdProbe (@var{source}, @var{tag})
## Tell whether @code{spmdReceive} with these arguments would find a value now, and from which worker and with which
## tag. Without a value, @var{source} and @var{tag} are [].
##
## @example
## while (spmdProbe ())
##   b = spmdReceive ();
## end
## @end example
## @seealso{spmdReceive, limosa_iprobe}
## @end deftypefn

function [found, source, tag] = spmdProbe (source = "any", tag = [])
  if (! ischar (source))
    source = __limosa_index__ (source, "spmdProbe");
  endif
  [found, status] = limosa_iprobe (source, tag);
  source = tag = [];
  if (found)
    source = double (status.source) + 1;
    tag = double (status.tag);
  endif
endfunction
