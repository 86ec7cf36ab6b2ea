## pMatlab_ver: the version of pMatlab whose functions these are.
function text = pMatlab_ver ()
  text = "2.0.15";
endfunction
