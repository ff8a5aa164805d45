// Libraries of one header: plf::colony, nlohmann::basic_json.
#if __has_include(<plf_colony.h>)
#include <taiyen/other_containers/plf_colony.hpp>
#endif
#if __has_include(<nlohmann/json.hpp>)
#include <taiyen/other_containers/nlohmann_json.hpp>
#endif

#include "table.hpp"

namespace other_containers {

using Text = taiyen::string;

namespace {

#if __has_include(<plf_colony.h>)
using Colony = taiyen::plf_colony<Text>;
struct InColony : InSequence<Colony> {
    static void put(Colony& c, int i) { c.insert(text(i)); }
    static void take(Colony& c, int) { c.erase(c.begin()); }
};
#endif

#if __has_include(<nlohmann/json.hpp>)
using Json = taiyen::json;
struct InJson {
    static std::string key(int i) { return "the member with the number " + std::to_string(i); }
    static Json& make(taiyen::SnapshotHeap& heap) { return heap.construct<Json>("container"); }
    static void put(Json& c, int i) { c[key(i).c_str()] = Json::array({i, text(i).c_str()}); }
    static void take(Json& c, int i) { c.erase(key(i).c_str()); }
    static bool has(const Json& c, int i) {
        const auto at = c.find(key(i).c_str());
        return at != c.end() && at->at(0) == i && at->at(1).get_ref<const taiyen::json_string&>() == text(i).c_str();
    }
    static std::size_t count(const Json& c) { return c.size(); }
    static void clear(Json& c) { c.clear(); }
};
#endif

}  // namespace

void add_small_libraries() {
#if __has_include(<plf_colony.h>)
    add_good<Colony, InColony>("plf::colony");
#endif
#if __has_include(<nlohmann/json.hpp>)
    add_good<Json, InJson>("nlohmann::basic_json");
#endif
}

}  // namespace other_containers
