// Functions of the C and C++ libraries that write through a pointer or reference of the caller.
#include <fcntl.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>
#include <sstream>
#include <string>

#include "instrumented/captured_scopes.hpp"

namespace taiyen::change {
namespace {

using test::Stage;

template <class T>
T opaque(T value) {
    asm volatile("" : "+m"(value));
    return value;
}

/// Memory full of a pattern; each text begins at the end of a line, so that a byte too few is a line too few.
struct Memory : Stage {
    Memory() : text(static_cast<char*>(core().engine().allocate(64U << 10U))) {
        std::memset(text, 0x55, 64U << 10U);
        text += 60;
    }
    char* text;
    template <class T>
    T& at(std::size_t offset) {
        return *reinterpret_cast<T*>(text + 4 + offset);
    }
};

int format_into(char* to, std::size_t room, const char* format, ...) {
    std::va_list list;
    va_start(list, format);
    const int result = std::vsnprintf(to, room, format, list);
    va_end(list);
    return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(libraries)

BOOST_AUTO_TEST_CASE(text_functions) {
    Memory memory;
    char* const to = memory.text;
    const std::string from(opaque<std::size_t>(100), 'x');
    memory.scope("strcpy", [&] { std::strcpy(to, from.c_str()); });
    memory.scope("strcat", [&] { std::strcat(to, from.c_str()); });
    memory.scope("strncat", [&] { std::strncat(to, from.c_str(), opaque<std::size_t>(30)); });
    memory.scope("strncpy", [&] { std::strncpy(to + 1000, from.c_str(), opaque<std::size_t>(300)); });
    memory.scope("stpcpy", [&] { stpcpy(to + 2000, from.c_str()); });
    memory.scope("mempcpy", [&] { mempcpy(to + 3000, from.c_str(), opaque<std::size_t>(77)); });
    memory.scope("wmemset", [&] { std::wmemset(&memory.at<wchar_t>(4000), L'w', opaque<std::size_t>(50)); });
    memory.scope("snprintf", [&] { std::snprintf(to, opaque<std::size_t>(500), "%s-%d", from.c_str(), 42); });
    memory.scope("snprintf cut short", [&] { std::snprintf(to, opaque<std::size_t>(20), "%d %s", 43, from.c_str()); });
    memory.scope("sprintf", [&] { std::sprintf(to + 1000, "%d and %s", opaque(5), from.c_str()); });
    memory.scope("vsnprintf", [&] { format_into(to + 2000, 500, "%s %f", from.c_str(), 1.5); });
    std::tm time{};
    memory.scope("strftime", [&] { std::strftime(to + 5000, 100, "%Y-%m-%d", &time); });
}

BOOST_AUTO_TEST_CASE(numbers_and_times) {
    Memory memory;
    memory.scope("modf", [&] { std::modf(opaque(3.25), &memory.at<double>(0)); });
    memory.scope("frexp", [&] { std::frexp(opaque(3.25), &memory.at<int>(64)); });
    memory.scope("time", [&] { std::time(&memory.at<std::time_t>(128)); });
    memory.scope("clock_gettime", [&] { clock_gettime(CLOCK_REALTIME, &memory.at<timespec>(192)); });
    const std::time_t now = 1;
    memory.scope("gmtime_r", [&] { gmtime_r(&now, &memory.at<std::tm>(256)); });
    memory.scope("to_chars", [&] { std::to_chars(memory.text + 1000, memory.text + 1100, opaque(1.0 / 3)); });
    memory.scope("to_chars of a float",
                 [&] { std::to_chars(memory.text + 2000, memory.text + 2100, opaque(1.0F / 3), std::chars_format::fixed, 30); });
    memory.scope("to_chars of an integer", [&] { std::to_chars(memory.text + 3000, memory.text + 3100, opaque(123456789L)); });
    const std::string digits = "2.718281828";
    memory.scope("from_chars", [&] { std::from_chars(digits.data(), digits.data() + digits.size(), memory.at<double>(4096)); });
    std::istringstream in("1 2 3.5 4.5 x 1");
    memory.scope("extraction of an int", [&] { in >> memory.at<int>(5000); });
    memory.scope("extraction of a long", [&] { in >> memory.at<long>(5064); });
    memory.scope("extraction of a double", [&] { in >> memory.at<double>(5128); });
    memory.scope("extraction of a float", [&] { in >> memory.at<float>(5192); });
    memory.scope("extraction of a character", [&] { in >> memory.at<char>(5256); });
    memory.scope("extraction of a bool", [&] { in >> memory.at<bool>(5320); });
}

BOOST_AUTO_TEST_CASE(sorting) {
    Memory memory;
    auto* const numbers = &memory.at<int>(0);
    for (int i = 0; i < 2000; ++i) numbers[i] = (i * 7919) % 2003;
    memory.scope("qsort", [&] {
        std::qsort(numbers, 2000, sizeof(int),
                   [](const void* a, const void* b) { return *static_cast<const int*>(a) - *static_cast<const int*>(b); });
    });
    BOOST_TEST(std::is_sorted(numbers, numbers + 2000));
}

BOOST_AUTO_TEST_CASE(input) {
    Memory memory;
    std::FILE* const file = std::tmpfile();
    BOOST_REQUIRE(file != nullptr);
    const std::string content(20000, 'c');
    BOOST_REQUIRE(std::fwrite(content.data(), 1, content.size(), file) == content.size());
    std::rewind(file);
    memory.scope("fread", [&] { BOOST_TEST(std::fread(memory.text, 1, 9000, file) == 9000U); });
    memory.scope("fgets", [&] { std::fgets(memory.text + 10000, 100, file); });
    std::fflush(file);
    memory.scope("pread", [&] { BOOST_TEST(pread(fileno(file), memory.text + 20000, 5000, 0) == 5000); });
    lseek(fileno(file), 0, SEEK_SET);
    memory.scope("read", [&] { BOOST_TEST(read(fileno(file), memory.text + 30000, 5000) == 5000); });
    memory.scope("readv", [&] {
        const iovec parts[] = {{memory.text + 40000, 100}, {memory.text + 41000, 200}};
        BOOST_TEST(readv(fileno(file), parts, 2) == 300);
    });
    std::fclose(file);
    std::istringstream in(content);
    memory.scope("istream read", [&] { in.read(memory.text + 50000, 1000); });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
