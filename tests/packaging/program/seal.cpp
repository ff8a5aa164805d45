// What a program outside the project does with taiyen::seal.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <taiyen/seal/sealed_target.hpp>
#include <taiyen/taiyen.hpp>

int main(int, char** arguments) {
    const std::filesystem::path folder = std::string(arguments[1]) + ".sealed";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    const std::vector<taiyen::SealingKey> keys(1);
    taiyen::SealedTarget target(std::make_shared<taiyen::DirectoryTarget>(folder), keys);
    const std::vector<std::byte> frame(100);
    const bool is_kept = target.append(1, frame) && target.read(1) == frame && taiyen::DirectoryTarget(folder).read(1).size() == 164;
    std::puts(is_kept ? "ok" : "another frame came back");
}
