#pragma once
/// A file descriptor that is closed at the end of its scope.
///
/// (I1) None is a standard one (0, 1, 2). A program that was started without them would print into the file that got the number.
/// Thread rule: one thread.

#include <utility>

namespace taiyen {

class Descriptor {
public:
    Descriptor() = default;
    /// Takes what a system call returned, and moves it above the standard descriptors. Where that fails it is closed, and errno says why: EMFILE.
    explicit Descriptor(int number) noexcept;
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) {
            reset();
            number_ = std::exchange(other.number_, -1);
        }
        return *this;
    }
    ~Descriptor() { reset(); }

    int get() const noexcept { return number_; }
    bool is_open() const noexcept { return number_ >= 0; }
    void reset() noexcept;

private:
    int number_ = -1;
};

}  // namespace taiyen
