# Doxygen reads the public headers without a warning, and each public class has a description. -D doxygen=… -D doxyfile=… -D folder=…
cmake_minimum_required(VERSION 3.22)

if(NOT doxygen)
  message("skipped: doxygen is not installed")
  return()
endif()
file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder})
file(READ ${doxyfile} settings)
file(WRITE ${folder}/Doxyfile "${settings}
OUTPUT_DIRECTORY = \"${folder}\"
WARN_AS_ERROR = NO
WARN_IF_UNDOCUMENTED = YES
CASE_SENSE_NAMES = YES
WARN_LOGFILE = \"${folder}/warnings\"
")
execute_process(COMMAND ${doxygen} ${folder}/Doxyfile RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result)
  message(FATAL_ERROR "doxygen failed (${result}):\n${output}")
endif()
# Members whose names say it all need no words.
file(STRINGS ${folder}/warnings warnings)
list(FILTER warnings EXCLUDE REGEX "warning: Member .* is not documented[.]$")
if(warnings)
  list(JOIN warnings "\n" warnings)
  message(FATAL_ERROR "${warnings}")
endif()
foreach(class ArchiveHeap SnapshotHeap TransactionalHeap VolatileHeap Transaction ReadLock UndoScope Error object__id__set)
  if(NOT EXISTS ${folder}/html/classtaiyen_1_1${class}.html)
    message(FATAL_ERROR "the reference has no page about ${class}: ${folder}/html/classtaiyen_1_1${class}.html")
  endif()
endforeach()
file(READ ${folder}/html/classtaiyen_1_1Transaction.html page)
if(NOT page MATCHES "durable as a whole, or never happened")
  message(FATAL_ERROR "the page about Transaction lacks what its header says first")
endif()
