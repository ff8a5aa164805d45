#pragma once
/// Which sanitizers instrument what is being compiled, by either compiler: TAIYEN_ADDRESS_SANITIZER and TAIYEN_THREAD_SANITIZER, each defined or not.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAIYEN_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define TAIYEN_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TAIYEN_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define TAIYEN_THREAD_SANITIZER 1
#endif
