#include "transfer/live_chunks.hpp"

#include <cstring>

#include <taiyen/base/check.hpp>

namespace taiyen::transfer {

bool LivePages::next(ChunkPages& chunk) {
    chunk.pages.clear();
    chunk.checksums.clear();
    const heap::Survey& survey = source_.survey();
    while (at_ < survey.extent() && chunk.pages.size() < layout::chunk_pages_max) {
        if (at_ >= live_end_) {
            const heap::PagesInUse found = survey.from(static_cast<heap::Page>(at_));
            if (found.use == heap::PageUse::available || found.use == heap::PageUse::released || found.use == heap::PageUse::growth) {
                at_ += found.count;
                continue;
            }
            live_end_ = at_ + found.count;
        }
        if (!chunk.pages.empty() && at_ - chunk.pages.front() >= layout::chunk_reach_max) break;
        if (const std::uint64_t checksum = source_.checksum_of({at_}); checksum != 0) {
            chunk.pages.push_back(at_);
            chunk.checksums.push_back(checksum);
        }
        ++at_;
    }
    return !chunk.pages.empty();
}

ChunkBody::ChunkBody() : body_(body_bytes_max) { runs_.reserve(layout::chunk_runs_max); }

void ChunkBody::gather(const PageSource& source, const ChunkPages& chunk) {
    const std::size_t count = chunk.pages.size();
    const std::span<std::byte> pages = body_.span().subspan(content_at);
    for (std::size_t i = 0; i < count;) {
        std::size_t together = 1;
        while (i + together < count && chunk.pages[i + together] == chunk.pages[i] + together) ++together;
        source.read({chunk.pages[i]}, pages.subspan(i * page_bytes, together * page_bytes), std::span(chunk.checksums).subspan(i, together));
        i += together;
    }
    runs_.clear();
    content_ = 0;
    end_ = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t begin = (chunk.pages[i] - chunk.pages.front()) * page_bytes;
        const std::byte* const bytes = pages.data() + i * page_bytes;
        source.survey().for_each_live_range(static_cast<heap::Page>(chunk.pages[i]),
                                            [&](unsigned from, unsigned to) { add(begin + from, begin + to, bytes + from); });
    }
    std::memcpy(body_.data() + content_at - bytes_of_runs(), runs_.data(), bytes_of_runs());
}

void ChunkBody::add(std::uint64_t begin, std::uint64_t end, const std::byte* bytes) {
    std::byte* const content = body_.data() + content_at;  // as much as there is of it never reaches beyond `bytes`
    if (const std::uint64_t gap = begin - end_; runs_.empty() || gap >= layout::gap_bytes_min) {
        runs_.push_back({static_cast<std::uint32_t>(gap / layout::unit_bytes), 0});
    } else {
        std::memset(content + content_, 0, gap);
        content_ += gap;
        runs_.back().length += static_cast<std::uint32_t>(gap / layout::unit_bytes);
    }
    if (content + content_ != bytes) std::memmove(content + content_, bytes, end - begin);
    content_ += end - begin;
    runs_.back().length += static_cast<std::uint32_t>((end - begin) / layout::unit_bytes);
    end_ = end;
    TAIYEN_CHECK(content_ <= layout::content_bytes_max && runs_.size() <= layout::chunk_runs_max);
}

}  // namespace taiyen::transfer
