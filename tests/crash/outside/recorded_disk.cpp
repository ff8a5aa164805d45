#include "recorded_disk.hpp"

#include <thread>

#include "campaign.hpp"
#include "served_file.hpp"

namespace outside {

class RecordedDisk::Server final : private ServedFile {
public:
    Server(int image, std::filesystem::path folder) : ServedFile(image, name, for_ever), folder_(std::move(folder)) {
        std::filesystem::create_directories(folder_);
        if (const std::string why = mount(folder_); !why.empty()) throw Unavailable(why);
        thread_ = std::thread([this] { serve(); });
    }
    ~Server() { stop(); }

    void stop() {
        if (!thread_.joinable()) return;
        leave();
        thread_.join();
        forget();
    }

    std::filesystem::path file() const { return folder_ / name; }

    std::vector<DiskOperation> kept;
    std::atomic<std::size_t> position = 0;

private:
    static constexpr const char* name = "disk";
    static constexpr double for_ever = 1e6;

    void keep(DiskOperation operation) {
        kept.push_back(std::move(operation));
        position.store(kept.size());
    }
    void written(std::uint64_t offset, std::span<const std::byte> bytes) override { keep({offset, {bytes.begin(), bytes.end()}}); }
    void synced() override { keep({}); }

    std::filesystem::path folder_;
    std::thread thread_;
};

RecordedDisk::RecordedDisk(int image, const std::filesystem::path& folder) : server_(std::make_unique<Server>(image, folder)) {}
RecordedDisk::~RecordedDisk() = default;
std::filesystem::path RecordedDisk::file() const { return server_->file(); }
std::size_t RecordedDisk::position() const { return server_->position.load(); }
void RecordedDisk::stop() { server_->stop(); }
const std::vector<DiskOperation>& RecordedDisk::operations() const { return server_->kept; }

}  // namespace outside
