## LAM_Clean
##
## The same script as MPITB_Clean.

MPITB_Clean
