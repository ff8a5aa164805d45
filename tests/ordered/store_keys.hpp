#pragma once
/// Random keys and values for tests of ordered stores: short and long ones, zeros within, shared beginnings, the empty one.

#include <cstdint>
#include <random>
#include <string>

namespace taiyen::test {

class StoreKeys {
public:
    explicit StoreKeys(std::uint64_t seed) : random_(seed) {}

    std::uint64_t number(std::uint64_t below) { return random_() % below; }
    std::string key() {
        switch (number(12)) {
            case 0: return {};
            case 1: return std::string(number(9), '\0');
            case 2: return bytes(number(5));
            case 3: return std::string(number(300), 'p') + bytes(number(3));                         // around what a node takes inside
            case 4: return std::string(number(20) == 0 ? 65'530 : 1'000, 'q') + digits(number(50));  // a long shared beginning
            case 5: return "a shared beginning of some length/" + digits(number(400));
            case 6: return "a shared beginning of some length/" + digits(number(40)) + std::string(number(300), '\xff');
            case 7: return digits(number(3'000)) + std::string(250, 'x') + digits(number(3));
            default: return "key" + digits(number(5'000));
        }
    }
    std::string value() {
        switch (number(10)) {
            case 0: return {};
            case 1: return bytes(120 + number(16));  // around what a node takes inside
            case 2: return bytes(number(100) == 0 ? number(100'000) : number(1'000));
            default: return digits(random_());
        }
    }
    static std::string digits(std::uint64_t number) { return std::to_string(number); }
    std::string bytes(std::size_t count) {
        std::string made(count, ' ');
        for (char& one : made) one = "\0\1az\x7f\x80\xff"[number(7)];
        return made;
    }

private:
    std::mt19937_64 random_;
};

}  // namespace taiyen::test
