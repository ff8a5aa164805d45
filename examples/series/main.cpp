/// taiyen_series FILE append NAME < lines of "time value" | range NAME FROM TO | downsample NAME FROM TO STEP | forget NAME BEFORE | names

#include <cstdlib>
#include <exception>
#include <iostream>

#include "series.hpp"

namespace {

int act(series::SeriesStore& store, const std::string& action, const std::vector<std::string>& words) {
    const auto time = [&](std::size_t i) { return static_cast<series::Time>(std::stoll(words[i])); };
    if (action == "names" && words.empty()) {
        for (const std::string& name : store.names()) std::cout << name << '\n';
    } else if (action == "append" && words.size() == 1) {
        std::vector<series::Point> points;
        for (series::Point point; std::cin >> point.time >> point.value;) points.push_back(point);
        store.append(words[0], points);
        std::cout << points.size() << " points are durable\n";
    } else if (action == "range" && words.size() == 3) {
        for (const series::Point& point : store.range(words[0], time(1), time(2))) std::cout << point.time << ' ' << point.value << '\n';
    } else if (action == "downsample" && words.size() == 4 && time(3) > 0) {
        for (const series::Bucket& bucket : store.downsample(words[0], time(1), time(2), time(3))) {
            std::cout << bucket.from << ' ' << bucket.points << ' ' << bucket.least << ' ' << bucket.sum / static_cast<double>(bucket.points) << ' '
                      << bucket.greatest << '\n';
        }
    } else if (action == "forget" && words.size() == 2) {
        std::cout << store.forget(words[0], time(1)) << " points are gone\n";
    } else {
        std::cerr << "taiyen_series FILE append NAME | range NAME FROM TO | downsample NAME FROM TO STEP | forget NAME BEFORE | names\n";
        return 2;
    }
    return 0;
}

}  // namespace

int main(int count, char** words) {
    try {
        if (count < 3) {
            std::cerr << "taiyen_series FILE ACTION …\n";
            return 2;
        }
        series::SeriesStore store(words[1]);
        return act(store, words[2], std::vector<std::string>(words + 3, words + count));
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
