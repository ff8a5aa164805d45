#pragma once
/// TAIYEN_THREAD_SANITIZER: defined where the thread sanitizer instruments what is being compiled, by either compiler.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TAIYEN_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TAIYEN_THREAD_SANITIZER 1
#endif
