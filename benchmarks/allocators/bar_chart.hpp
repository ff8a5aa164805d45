#pragma once
/// A bar chart as SVG: one bar for each contender, its median, and a whisker from the smallest to the largest value.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace bench {

struct Bar {
    std::string name;
    double median;
    double min;
    double max;
};

inline std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '&')
            out += "&amp;";
        else
            out += c;
    return out;
}

/// Three digits, and never an exponent.
inline std::string short_number(double value) {
    char text[32];
    const double size = value < 0 ? -value : value;
    std::snprintf(text, sizeof text, "%.*f", size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0, value);
    return text;
}

inline std::string bar_chart(const std::string& title, const std::string& unit, const std::vector<Bar>& bars) {
    constexpr int left = 110;
    constexpr int width = 460;
    constexpr int right = 90;
    constexpr int top = 62;
    constexpr int row = 34;
    constexpr int bar = 20;
    const int height = top + row * static_cast<int>(bars.size()) + 14;
    double largest = 0;
    for (const Bar& one : bars) largest = std::max(largest, one.max);
    if (largest <= 0) largest = 1;
    const auto at = [&](double value) { return left + width * std::max(0.0, value) / largest; };
    std::string svg;
    char line[512];
    const auto add = [&](const char* format, auto... values) {
        std::snprintf(line, sizeof line, format, values...);
        svg += line;
    };
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n", left + width + right,
        height);
    svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    svg += "<text x=\"12\" y=\"24\" font-size=\"15\" font-weight=\"bold\">" + escaped(title) + "</text>\n";
    svg += "<text x=\"12\" y=\"44\" fill=\"#555\">" + escaped(unit) + "; median, line from smallest to largest</text>\n";
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const Bar& one = bars[i];
        const int y = top + row * static_cast<int>(i);
        const int middle = y + bar / 2;
        svg += "<text x=\"" + std::to_string(left - 10) + "\" y=\"" + std::to_string(middle + 5) + "\" text-anchor=\"end\">" + escaped(one.name) +
               "</text>\n";
        add("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", left, y, at(one.median) - left, bar,
            i == 0 ? "#c8553d" : "#8fa6b8");
        add("<path d=\"M%.1f %d H%.1f M%.1f %d v8 M%.1f %d v8\" stroke=\"#222\" fill=\"none\"/>\n", at(one.min), middle, at(one.max), at(one.min),
            middle - 4, at(one.max), middle - 4);
        add("<text x=\"%.1f\" y=\"%d\">%s</text>\n", at(one.max) + 8, middle + 5, short_number(one.median).c_str());
    }
    svg += "</svg>\n";
    return svg;
}

}  // namespace bench
