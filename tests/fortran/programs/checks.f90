! What the programs assert: the first statement that is false ends the job.
module checks
  implicit none
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (.not. holds) then
      print *, "wrong: ", what
      error stop 1
    end if
  end subroutine
end module
