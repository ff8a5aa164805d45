// Gives a program the debug information of the library's own classes, as a library that is compiled with it does.
#include "store/heap_file.hpp"
#include "txn/transaction_service.hpp"

const taiyen::store::HeapFile* file_of_the_library = nullptr;
const taiyen::txn::TransactionService* service_of_the_library = nullptr;
