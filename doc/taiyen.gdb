# For gdb and heaps with Capture::pages: `source taiyen.gdb`, or `gdb -x taiyen.gdb program`, before the program runs.
#
# The first store to a page of a heap is a SIGSEGV that the heap's handler takes; gdb is to hand it over without a word. One that no heap takes is a crash. gdb must then stop where it
# happened, before anything else handles it: the heap's handler tells by calling taiyen::heap::unclaimed_fault, and what comes after that is the same fault once more, at the same instruction.

handle SIGSEGV nostop noprint pass
set breakpoint pending on
break taiyen::heap::unclaimed_fault
commands
  silent
  handle SIGSEGV stop print
  continue
end
