#pragma once
/// `TAIYEN_EXPORT` marks what the shared library shows; everything else is hidden.

#define TAIYEN_EXPORT __attribute__((visibility("default")))
