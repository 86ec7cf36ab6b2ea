## T = CFARNoiseEst (C, Ncfar, G): the noise around each element of a row, for detection at a constant rate of false
## alarms: the sum of the squares of the Ncfar elements on either side, beyond G guard elements, divided by 2 Ncfar.
function T = CFARNoiseEst (C, Ncfar, G)
  window = zeros (1, 2 * (Ncfar + G) + 1);
  window([1:Ncfar, end-Ncfar+1:end]) = 1 / (2 * Ncfar);
  T = pm_whole (times (C, C), 2, "CFARNoiseEst", @(part, d) conv2 (part, window, "same"));
endfunction
