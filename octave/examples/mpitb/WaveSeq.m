## w = WaveSeq ([n])
##
## The wavelet transform of a picture, columns first, then rows, in one process.

function w = WaveSeq (n = 128)
  w = wave_columns (wave_columns (wave_image (n)).').';
end
