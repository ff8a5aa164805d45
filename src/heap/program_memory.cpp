#include "heap/program_memory.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "base/demangle.hpp"
#include "heap/core.hpp"
#include "vm/address_space.hpp"

namespace taiyen::heap {

ProgramMemory::ProgramMemory() {
    const auto add_image = [](dl_phdr_info* info, std::size_t, void* images) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
            const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
            static_cast<std::vector<Area>*>(images)->push_back({begin, begin + segment.p_memsz, info->dlpi_name, true});
        }
        return 0;
    };
    ::dl_iterate_phdr(add_image, &images_);
    for (vm::Mapping& mapping : vm::mappings()) {
        const bool is_anonymous = mapping.name.empty() || mapping.name.starts_with("[anon");
        const bool is_ours = slot_table[mapping.begin >> slot_shift & (slot_count - 1)].load(std::memory_order_relaxed) != nullptr;
        if (mapping.is_readable && !is_ours && (is_anonymous || mapping.name == "[heap]" || mapping.name.starts_with("[stack")))
            others_.push_back({mapping.begin, mapping.end, is_anonymous ? std::string() : std::move(mapping.name), false});
    }
}

const ProgramMemory::Area* ProgramMemory::find(std::uintptr_t address) const {
    const auto holds = [&](const Area& area) { return address - area.begin < area.end - area.begin; };
    const auto image = std::find_if(images_.begin(), images_.end(), holds);
    if (image != images_.end()) return &*image;
    const auto next = std::upper_bound(others_.begin(), others_.end(), address, [](std::uintptr_t at, const Area& area) { return at < area.begin; });
    return next != others_.begin() && holds(*std::prev(next)) ? &*std::prev(next) : nullptr;
}

bool ProgramMemory::holds(std::uintptr_t address) const { return may_hold(address) && find(address) != nullptr; }

std::string ProgramMemory::describe(std::uintptr_t address) const {
    const Area& area = *find(address);
    if (!area.is_image) {
        const char here = 0;
        const bool is_stack = area.name.starts_with("[stack") || find(reinterpret_cast<std::uintptr_t>(&here)) == &area;
        return is_stack                ? "a stack of the program"
               : area.name == "[heap]" ? "malloc's memory"
                                       : "memory of the program, malloc's or a thread's stack";
    }
    std::string text = area.name.empty() ? "the program" : area.name;
    Dl_info info;
    if (::dladdr(reinterpret_cast<const void*>(address), &info) != 0 && info.dli_sname != nullptr)
        text += ", " + demangled(info.dli_sname).value_or(info.dli_sname);
    return text;
}

}  // namespace taiyen::heap
