#pragma once
/// Everything public, in one include.

#include <taiyen/base/capture.hpp>
#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/export.hpp>
#include <taiyen/base/instrumented.hpp>
#include <taiyen/base/report.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/change/read_from.hpp>
#include <taiyen/heap/access.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/stats.hpp>
#include <taiyen/stl/allocator.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/fingerprint.hpp>
#include <taiyen/stl/hash.hpp>
#include <taiyen/stl/named.hpp>
#include <taiyen/stl/storable.hpp>
#include <taiyen/store/archive_heap.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/store/parameters.hpp>
#include <taiyen/store/snapshot_heap.hpp>
#include <taiyen/undo/history.hpp>
#include <taiyen/undo/procedure.hpp>
#include <taiyen/undo/scope.hpp>
