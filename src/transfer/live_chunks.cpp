#include "transfer/live_chunks.hpp"

#include <cstring>

#include <taiyen/base/check.hpp>

namespace taiyen::transfer {

bool LivePages::next(ChunkPages& chunk) {
    chunk.pages.clear();
    chunk.checksums.clear();
    const heap::Survey& survey = source_.survey();
    while (at_ < survey.extent() && chunk.pages.size() < chunk_pages_) {
        if (const heap::Page free = survey.free_from(static_cast<heap::Page>(at_)); free != 0) {
            at_ += free;
            continue;
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

ChunkBody::ChunkBody(std::uint64_t gap_bytes) : gap_bytes_(gap_bytes), body_(body_bytes_max) { runs_.reserve(layout::chunk_runs_max); }

void ChunkBody::gather(const PageSource& source, const ChunkPages& chunk) {
    runs_.clear();
    content_ = 0;
    end_ = 0;
    const std::size_t count = chunk.pages.size();
    for (std::size_t i = 0; i < count;) {
        std::size_t together = 1;
        while (i + together < count && together < near_pages && chunk.pages[i + together] == chunk.pages[i] + together) ++together;
        const std::span<std::byte> pages = body_.span().subspan(content_at + i * page_bytes, together * page_bytes);
        source.read({chunk.pages[i]}, pages, std::span(chunk.checksums).subspan(i, together));
        for (std::size_t n = 0; n < together; ++n) {
            const std::uint64_t page = chunk.pages[i + n];
            const std::uint64_t begin = (page - chunk.pages.front()) * page_bytes;
            std::byte* const bytes = pages.data() + n * page_bytes;
            source.survey().for_each_live_range(static_cast<heap::Page>(page),
                                                [&](unsigned from, unsigned to) { add(begin + from, begin + to, bytes + from); });
        }
        close_up();
        i += together;
    }
    std::memcpy(body_.data() + content_at - bytes_of_runs(), runs_.data(), bytes_of_runs());
    TAIYEN_CHECK(content_ <= layout::content_bytes_max && runs_.size() <= layout::chunk_runs_max);
}

void ChunkBody::add(std::uint64_t begin, std::uint64_t end, std::byte* bytes) {
    std::uint64_t gap = begin - end_;
    if (runs_.empty() && gap < gap_bytes_) runs_.push_back({0, 0});  // with its page: whoever expands it need not move it then
    if (runs_.empty() || gap >= gap_bytes_) {
        close_up();
        runs_.push_back({static_cast<std::uint32_t>(gap / layout::unit_bytes), 0});
        gap = 0;
    } else if (open_.empty()) {
        std::memset(body_.data() + content_at + content_, 0, gap);  // as much as there is of the content never reaches beyond `bytes`
        content_ += gap;
    } else {
        std::memset(bytes - gap, 0, gap);
    }
    if (open_.empty())
        open_ = {bytes, end - begin};
    else
        open_ = {open_.data(), open_.size() + gap + (end - begin)};
    runs_.back().length += static_cast<std::uint32_t>((gap + end - begin) / layout::unit_bytes);
    end_ = end;
}

void ChunkBody::close_up() {
    std::byte* const behind = body_.data() + content_at + content_;
    if (behind != open_.data() && !open_.empty()) std::memmove(behind, open_.data(), open_.size());
    content_ += open_.size();
    open_ = {};
}

}  // namespace taiyen::transfer
