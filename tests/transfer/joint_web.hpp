#pragma once
/// A web of objects in a heap in which every kind of declared pointer may lead anywhere, with the model that it should agree with: it grows, shrinks and is compared whatever moved beneath it.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "containers/declared_shapes.hpp"

namespace taiyen::transfer::test {

using taiyen::test::Wide;

/// A part of a web in which everything may lead anywhere.
struct Joint {
    std::uint64_t number = 0;
    Joint* peer = nullptr;
    std::uint64_t* inside = nullptr;  ///< in somebody's array
    std::uint64_t* first = nullptr;
    std::uint64_t* last = nullptr;
    unsigned char* blob = nullptr;  ///< with the address of a Joint in it, at a place that nobody declares
    taiyen::string text;
    taiyen::deque<std::uint16_t> queue;
    Wide* wide = nullptr;
};

}  // namespace taiyen::transfer::test

template <>
struct taiyen::pointers_of<taiyen::transfer::test::Joint> {
    template <class Visit>
    static void describe(taiyen::transfer::test::Joint& joint, Visit visit) {
        visit(joint.peer, joint.inside, taiyen::range(joint.first, joint.last), joint.blob, joint.text, joint.queue, joint.wide);
    }
};

namespace taiyen::transfer::test {

/// The web, and what it should be.
class Web {
public:
    using Index = taiyen::map<std::uint64_t, Joint*>;
    explicit Web(std::mt19937_64& random) : random_(random) {}

    void change(ArchiveHeap& heap, int count) {
        auto& index = heap.find_or_construct<Index>("index");
        for (int i = 0; i < count; ++i) {
            const auto choice = random_() % 10;
            if (choice < 5 || model_.size() < 20)
                add(heap, index);
            else if (choice < 8)
                remove(heap, index, any());
            else
                lead(index, any());
            if (random_() % 4 == 0) spare_.push_back(heap.allocate(random_() % 12 == 0 ? random_() % 9000 : random_() % 200));
        }
        std::shuffle(spare_.begin(), spare_.end(), random_);
        for (; spare_.size() > 40; spare_.pop_back()) heap.deallocate(spare_.back());
    }

    void expect(const ArchiveHeap& heap) const {
        const auto& index = *heap.find<Index>("index");
        BOOST_TEST_REQUIRE(index.size() == model_.size());
        for (const auto& [number, should] : model_) {
            const Joint& joint = *index.at(number);
            BOOST_TEST_REQUIRE(joint.number == number);
            BOOST_TEST_REQUIRE(joint.peer == index.at(should.peer));
            BOOST_TEST_REQUIRE(joint.last - joint.first == static_cast<std::ptrdiff_t>(should.count));
            for (std::size_t i = 0; i < should.count; ++i) BOOST_TEST_REQUIRE(joint.first[i] == number * 1000 + i);
            BOOST_TEST_REQUIRE(joint.inside == index.at(should.inside)->first + should.inside_at);
            const Joint* hidden = nullptr;
            std::memcpy(&hidden, joint.blob + should.hidden_at, sizeof hidden);
            BOOST_TEST_REQUIRE(hidden == (should.hidden == 0 ? nullptr : index.at(should.hidden)));
            BOOST_TEST_REQUIRE(std::string(joint.text.data(), joint.text.size()) == should.text);
            BOOST_TEST_REQUIRE(joint.queue.size() == should.queued);
            for (std::size_t i = 0; i < should.queued; ++i) BOOST_TEST_REQUIRE(joint.queue[i] == static_cast<std::uint16_t>(number + i));
            BOOST_TEST_REQUIRE((joint.wide->number == number));
            BOOST_TEST_REQUIRE(joint.wide->next == index.at(should.peer)->wide);
            BOOST_TEST_REQUIRE(reinterpret_cast<std::uintptr_t>(joint.wide) % alignof(Wide) == 0U);
        }
    }
    std::size_t spare() const { return spare_.size(); }

private:
    struct Should {
        std::uint64_t peer = 0;
        std::size_t count = 0;
        std::uint64_t inside = 0;
        std::size_t inside_at = 0;
        std::uint64_t hidden = 0;  ///< 0: none
        std::size_t hidden_at = 0;
        std::string text;
        std::size_t queued = 0;
    };

    std::uint64_t any() { return std::next(model_.begin(), static_cast<std::ptrdiff_t>(random_() % model_.size()))->first; }

    void add(ArchiveHeap& heap, Index& index) {
        const std::uint64_t number = ++last_;
        Should should;
        auto* const joint = heap.make<Joint>();
        joint->number = number;
        should.count = random_() % 20 == 0 ? 512 * (1 + random_() % 3) : 1 + random_() % 60;
        joint->first = static_cast<std::uint64_t*>(heap.allocate(should.count * 8, 8));
        joint->last = joint->first + should.count;
        for (std::size_t i = 0; i < should.count; ++i) joint->first[i] = number * 1000 + i;
        joint->blob = static_cast<unsigned char*>(heap.allocate(40 + random_() % 60));
        std::memset(joint->blob, 0x77, 40);
        should.text = std::string(random_() % 70, static_cast<char>('a' + number % 26));
        joint->text = should.text.c_str();
        should.queued = random_() % 600;
        for (std::size_t i = 0; i < should.queued; ++i) joint->queue.push_back(static_cast<std::uint16_t>(number + i));
        joint->wide = heap.make<Wide>();
        joint->wide->number = static_cast<unsigned>(number) & 0x7fff'ffffU;
        index[number] = joint;
        model_[number] = should;
        lead(index, number);
    }
    void lead(Index& index, std::uint64_t number) {
        Should& should = model_.at(number);
        Joint& joint = *index.at(number);
        should.peer = any();
        should.inside = any();
        should.inside_at = random_() % model_.at(should.inside).count;
        std::memset(joint.blob + should.hidden_at, 0x77, sizeof(Joint*));
        should.hidden = random_() % 8 == 0 ? any() : 0;  // who is known so can't move
        should.hidden_at = random_() % 30;
        joint.peer = index.at(should.peer);
        joint.wide->next = joint.peer->wide;
        joint.inside = index.at(should.inside)->first + should.inside_at;
        const Joint* const hidden = should.hidden == 0 ? nullptr : index.at(should.hidden);
        std::memcpy(joint.blob + should.hidden_at, &hidden, sizeof hidden);
    }
    void remove(ArchiveHeap& heap, Index& index, std::uint64_t number) {
        for (const auto& [other, should] : model_)
            if (other != number && (should.peer == number || should.inside == number || should.hidden == number)) return;
        Joint* const joint = index.at(number);
        heap.deallocate(joint->first);
        heap.deallocate(joint->blob);
        heap.destroy_object(joint->wide);
        heap.destroy_object(joint);
        index.erase(number);
        model_.erase(number);
    }

    std::mt19937_64& random_;
    std::map<std::uint64_t, Should> model_;
    std::vector<void*> spare_;
    std::uint64_t last_ = 0;
};

}  // namespace taiyen::transfer::test
