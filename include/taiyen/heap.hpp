#pragma once
/// Heaps, transactions, steps, named objects and the allocator, without the containers: for the many files of a program that pass heaps around. Compiles in less than half the time of <taiyen/taiyen.hpp>.
/// The containers: <taiyen/stl/containers.hpp>.

#include <taiyen/base/detail/language.hpp>

#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/heap/volatile_heap.hpp>
#include <taiyen/stl/allocator.hpp>
#include <taiyen/stl/durable_allocator.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/store/archive_heap.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/store/snapshot_heap.hpp>
#include <taiyen/txn/read_lock.hpp>
#include <taiyen/txn/relaxed_loading.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>
#include <taiyen/undo/scope.hpp>
