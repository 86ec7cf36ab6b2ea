## TestAll: all the other programs of this folder in turn.
pTestAll_names = {"pAddOne", "pMandelbrot", "pZoomImage", "pIO", "pBeamformer", "pBlurimage", "pStream", ...
                  "pRandomAccess", "pFFT", "pHPL", "pSpeedtest", "pCornerTurn", "pPipeline", "pFFTTest", "pClutter"};
for pTestAll_k = 1:numel (pTestAll_names)
  clear ("-x", "pMATLAB", "pTestAll_names", "pTestAll_k");
  eval (pTestAll_names{pTestAll_k});
end
if (Pid == 0)
  disp ("TestAll: SUCCESS");
end
