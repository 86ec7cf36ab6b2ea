## -*- texinfo -*-
## @deftypefn  {} {[@var{b}, @var{source}, @var{tag}] =} spmdReceive ()
## @deftypefnx {} {[@var{b}, @var{source}, @var{tag}] =} spmdReceive (@var{source})
## @deftypefnx {} {[@var{b}, @var{source}, @var{tag}] =} spmdReceive (@var{source}, @var{tag})
## Wait for a value from the worker with the index @var{source} with the tag @var{tag}, and return it. The source
## @qcode{"any"}, and a tag that is left out, match every message.
##
## @example
## if (spmdIndex () == 1)
##   spmdSend ("hello", 2:spmdSize ());
## else
##   [text, source] = spmdReceive ("any");    # source is 1
## end
## @end example
## @seealso{spmdSend, spmdProbe, limosa_recv}
## @end deftypefn

function [b, source, tag] = spmdReceive (source = "any", tag = [])
  if (! ischar (source))
    source = __limosa_index__ (source, "spmdReceive");
  endif
  [b, status] = limosa_recv (source, tag);
  source = double (status.source) + 1;
  tag = double (status.tag);
endfunction
