// says: taiyen: a procedure returns nothing
// errors: 1

#include <taiyen/change/procedure.hpp>

void registers() {
    const auto inverse = [](taiyen::ProcedureHeap&, int) {};
#if defined(TAIYEN_REFUSED)
    taiyen::register_procedure("sum", [](taiyen::ProcedureHeap&, int number) { return number; }, inverse);
#else
    taiyen::register_procedure("sum", [](taiyen::ProcedureHeap&, int) {}, inverse);
#endif
}
