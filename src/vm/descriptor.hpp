#pragma once
/// A file descriptor that is closed at the end of its scope.

#include <unistd.h>

namespace taiyen::vm {

struct Descriptor {
    int value;

    explicit Descriptor(int of) : value(of) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (value >= 0) {
            ::close(value);
        }
    }
};

}  // namespace taiyen::vm
