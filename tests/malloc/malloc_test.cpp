// Real programs run with libtaiyen-malloc.so as without it, and it is really in use then.

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "scratch_directory.hpp"

namespace {

namespace fs = std::filesystem;

struct Outcome {
    int status;
    std::string text;
};

Outcome run(const std::string& command) {
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    std::string text;
    char buffer[4096];
    for (std::size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe)) != 0;) text.append(buffer, count);
    const int status = ::pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status, text};
}

std::string content(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

/// A folder, and commands in it with the library before all others.
class Preloaded {
public:
    std::string operator/(const char* name) const { return (folder_ / name).string(); }
    /// The same command without and with the library prints the same and ends alike; the library tells that it was in use.
    void compare(const std::string& command) const {
        const Outcome without = run("cd " + folder_.path().string() + " && " + command);
        BOOST_TEST(without.status == 0);
        const Outcome with = run(preloading(command));
        BOOST_TEST(with.status == without.status);
        BOOST_TEST(with.text == without.text);
        BOOST_TEST(content(*this / "stats").find("taiyen-malloc: pid ") != std::string::npos);
        BOOST_TEST(content(*this / "errors") == "");
    }
    std::string preloading(const std::string& command) const {
        return "cd " + folder_.path().string() + " && export TAIYEN_MALLOC_STATS=" + *this / "stats" + " LD_PRELOAD=" TAIYEN_MALLOC_LIBRARY " && { " +
               command + "; } 2>>" + *this / "errors";
    }

private:
    ScratchDirectory folder_;
};

bool is_here(const char* program) { return run(std::string("command -v ") + program).status == 0; }

BOOST_AUTO_TEST_SUITE(preloaded)

BOOST_AUTO_TEST_CASE(every_function_does_what_its_manual_page_says) {
    const Preloaded preloaded;
    preloaded.compare(TAIYEN_MALLOC_INTERFACE);
}

BOOST_AUTO_TEST_CASE(bad_pointers_are_told_and_not_followed) {
    const Preloaded preloaded;
    const Outcome with = run(preloaded.preloading(TAIYEN_MALLOC_INTERFACE " bad-pointers"));
    BOOST_TEST(with.status == 0);
    BOOST_TEST(with.text == "all as the manual says\n");
    const std::string told = content(preloaded / "errors");
    BOOST_TEST(std::count(told.begin(), told.end(), '\n') == 4);
    BOOST_TEST(told.find("a pointer that is no block of the heap was freed") != std::string::npos);
    BOOST_TEST(told.find("freed twice") != std::string::npos);
    BOOST_TEST(told.find("realloc of a pointer that is no live block") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_program_of_threads_that_forks_runs_as_without) {
    const Preloaded preloaded;
    preloaded.compare(TAIYEN_MALLOC_THREADS);
}

BOOST_AUTO_TEST_CASE(the_compiler_makes_the_same_object_file) {
    const Preloaded preloaded;
    preloaded.compare(TAIYEN_COMPILER " -std=c++20 -O1 -c -I" TAIYEN_SOURCES "/include -I" TAIYEN_SOURCES "/src " TAIYEN_SOURCES
                                      "/src/heap/line.cpp -o line.o && cksum < line.o");
}

BOOST_AUTO_TEST_CASE(python_prints_the_same) {
    if (!is_here("python3")) return;
    const Preloaded preloaded;
    std::ofstream(preloaded / "program.py")
        << "import json, threading\n"
           "found = []\n"
           "def work(n):\n"
           "    rows = [{'id': i, 'text': str(i * n) * (i % 50)} for i in range(5000)]\n"
           "    found.append((n, len(json.dumps(rows)), sum(len(r['text']) for r in json.loads(json.dumps(rows)))))\n"
           "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
           "[t.start() for t in threads]\n"
           "[t.join() for t in threads]\n"
           "print(sorted(found))\n";
    preloaded.compare("PYTHONMALLOC=malloc python3 program.py");
}

BOOST_AUTO_TEST_CASE(sqlite_answers_the_same) {
    if (!is_here("python3")) return;
    const Preloaded preloaded;
    std::ofstream(preloaded / "program.py")
        << "import os, sqlite3\n"
           "if os.path.exists('data.db'): os.remove('data.db')\n"
           "db = sqlite3.connect('data.db')\n"
           "db.execute('create table part (id integer primary key, name text, weight real)')\n"
           "db.executemany('insert into part values (?, ?, ?)', ((i, 'part %d' % (i * 7919 % 10007), i * 0.5) for i in range(20000)))\n"
           "db.execute('create index by_name on part (name)')\n"
           "db.commit()\n"
           "print(db.execute('select count(*), sum(weight), min(name), max(name) from part').fetchall())\n"
           "print(db.execute('select a.name, count(*) from part a join part b on a.name = b.name group by a.name order by 2 desc, 1 limit "
           "5').fetchall())\n"
           "print(db.execute('pragma integrity_check').fetchall())\n";
    preloaded.compare("python3 program.py");
}

BOOST_AUTO_TEST_CASE(a_limit_on_the_address_space_leaves_programs_running) {
    const Preloaded preloaded;
    const Outcome with = run(preloaded.preloading("ulimit -v 3000000; " TAIYEN_MALLOC_THREADS " >/dev/null && echo fine"));
    BOOST_TEST(with.text == "fine\n");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
