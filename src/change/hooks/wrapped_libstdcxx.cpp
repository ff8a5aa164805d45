// Functions within the shared standard library that write into containers or through references: announced, then called. See wrapped_libc.cpp.
#include <bits/stl_tree.h>

#include <charconv>
#include <cstddef>
#include <list>
#include <unordered_map>

#include "change/hooks/announce.hpp"

namespace {

using taiyen::change::hooks::announce;
using Node = std::_Rb_tree_node_base;
using ListNode = std::__detail::_List_node_base;

void announce_node(const Node* node) {
    if (node != nullptr) announce(node, sizeof *node);
}
void announce_children(const Node* node) {
    announce_node(node->_M_left);
    announce_node(node->_M_right);
}
bool is_red(const Node* node) { return node != nullptr && node->_M_color == std::_S_red; }

/// Goes the way that rebalancing will go, without changing anything: recolouring climbs two levels at a time, a rotation ends it. `added` is not linked yet.
void announce_insert(const Node* added, const Node* parent, const Node& header) {
    announce_node(added);
    announce_node(parent);
    announce_node(&header);
    announce_node(header._M_parent);  // the root ends black
    const Node* node = added;
    while (parent != &header && is_red(parent)) {
        const Node* const grandparent = parent->_M_parent;
        announce_node(grandparent);
        const Node* const uncle = grandparent->_M_left == parent ? grandparent->_M_right : grandparent->_M_left;
        if (!is_red(uncle)) {
            announce_node(node);
            announce_node(grandparent->_M_parent);
            announce_children(parent);
            if (node != added) announce_children(node);
            return;
        }
        announce_node(uncle);
        node = grandparent;
        parent = node->_M_parent;
        announce_node(parent);
    }
}

void announce_neighbours(const Node* node) {
    announce_node(node);
    announce_node(node->_M_parent);
    announce_children(node);
}

/// One level of repairing below `parent`, at the side of `sibling`.
void announce_repair(const Node* parent, const Node* sibling) {
    announce_node(parent->_M_parent);
    announce_node(parent);
    announce_node(sibling);
    if (sibling == nullptr) return;
    announce_children(sibling);
    for (const Node* const nephew : {sibling->_M_left, sibling->_M_right})
        if (nephew != nullptr && is_red(nephew)) announce_children(nephew);  // a rotation around it hangs them elsewhere
}

/// Repairs below `parent` until the tree is balanced again. `sibling`: of what became one black node shorter.
void announce_climb(const Node* node, const Node* parent, const Node* sibling, const Node& header) {
    while (parent != &header && !is_red(node)) {
        announce_repair(parent, sibling);
        if (sibling == nullptr) return;
        if (is_red(sibling)) {
            // Rotated up; its child on the near side becomes the sibling, below a parent that is red now: whatever happens there ends the climb.
            const Node* const near = parent->_M_left == sibling ? sibling->_M_right : sibling->_M_left;
            if (near != nullptr) announce_repair(sibling, near);
            return;
        }
        if (is_red(sibling->_M_left) || is_red(sibling->_M_right)) return;
        node = parent;
        parent = node->_M_parent;
        if (parent == &header) return;
        sibling = parent->_M_left == node ? parent->_M_right : parent->_M_left;
    }
    announce_node(node);
}

void announce_erase(const Node* erased, const Node& header) {
    announce_node(&header);
    announce_neighbours(erased);
    // The node that takes the place of `erased`, or `erased` itself if it has at most one child.
    const Node* leaving = erased;
    if (erased->_M_left != nullptr && erased->_M_right != nullptr) {
        leaving = erased->_M_right;
        while (leaving->_M_left != nullptr) leaving = leaving->_M_left;
        announce_neighbours(leaving);
    }
    if (is_red(leaving)) return;
    const Node* const child = leaving->_M_left != nullptr ? leaving->_M_left : leaving->_M_right;
    const Node* const parent = leaving->_M_parent;
    if (parent == &header) return;
    announce_climb(child, parent, parent->_M_left == leaving ? parent->_M_right : parent->_M_left, header);
}

void announce_link(const ListNode* node) { announce(node, sizeof *node); }

/// The three links that swapping changes on one side.
void announce_ends(const ListNode& list) {
    announce_link(&list);
    announce_link(list._M_next);
    announce_link(list._M_prev);
}

void announce_list(const ListNode* list) {
    const ListNode* node = list;
    do {
        announce_link(node);
        node = node->_M_next;
    } while (node != list);
}

void announce_range(char* first, const char* last) {
    if (first < last) announce(first, static_cast<std::size_t>(last - first));
}

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-macro-usage, bugprone-macro-parentheses)
#define TAIYEN_WRAP_BY(name, Result, parameters, arguments, statement)                 \
    extern "C" Result __real_##name parameters;                                        \
    extern "C" __attribute__((visibility("hidden"))) Result __wrap_##name parameters { \
        statement;                                                                     \
        return __real_##name arguments;                                                \
    }
/// istream >> number.
#define TAIYEN_WRAP_EXTRACTION(name, T) TAIYEN_WRAP_BY(name, void*, (void* stream, T* to), (stream, to), announce(to, sizeof(T)))
// NOLINTEND(cppcoreguidelines-macro-usage, bugprone-macro-parentheses)

TAIYEN_WRAP_BY(_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_, void, (bool left, Node* added, Node* parent, Node& header),
               (left, added, parent, header), announce_insert(added, parent, header))
TAIYEN_WRAP_BY(_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_, Node*, (Node * erased, Node& header), (erased, header),
               announce_erase(erased, header))

TAIYEN_WRAP_BY(_ZNSt8__detail15_List_node_base7_M_hookEPS0_, void, (ListNode * node, ListNode* behind), (node, behind), announce_link(node);
               announce_link(behind); announce_link(behind->_M_prev))
TAIYEN_WRAP_BY(_ZNSt8__detail15_List_node_base9_M_unhookEv, void, (ListNode * node), (node), announce_link(node->_M_next);
               announce_link(node->_M_prev))
TAIYEN_WRAP_BY(_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_, void, (ListNode * behind, ListNode* first, ListNode* last),
               (behind, first, last), announce_link(behind);
               announce_link(behind->_M_prev); announce_link(first); announce_link(first->_M_prev); announce_link(last); announce_link(last->_M_prev))
TAIYEN_WRAP_BY(_ZNSt8__detail15_List_node_base10_M_reverseEv, void, (ListNode * list), (list), announce_list(list))
TAIYEN_WRAP_BY(_ZNSt8__detail15_List_node_base4swapERS0_S1_, void, (ListNode & a, ListNode& b), (a, b), announce_ends(a); announce_ends(b))

// Both are const and write a member all the same.
TAIYEN_WRAP_BY(_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm, std::size_t, (const std::__detail::_Prime_rehash_policy* policy, std::size_t n),
               (policy, n), announce(policy, sizeof *policy))
struct NeedRehash {
    bool needed;
    std::size_t buckets;
};
static_assert(sizeof(NeedRehash) == sizeof(std::pair<bool, std::size_t>));
TAIYEN_WRAP_BY(_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm, NeedRehash,
               (const std::__detail::_Prime_rehash_policy* policy, std::size_t buckets, std::size_t elements, std::size_t added),
               (policy, buckets, elements, added), announce(policy, sizeof *policy))

struct ToChars {
    char* end;
    int error;
};
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_f, ToChars, (char* first, char* last, float value), (first, last, value), announce_range(first, last))
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_d, ToChars, (char* first, char* last, double value), (first, last, value), announce_range(first, last))
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_e, ToChars, (char* first, char* last, long double value), (first, last, value), announce_range(first, last))
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_fSt12chars_format, ToChars, (char* first, char* last, float value, int format), (first, last, value, format),
               announce_range(first, last))
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_dSt12chars_format, ToChars, (char* first, char* last, double value, int format), (first, last, value, format),
               announce_range(first, last))
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_eSt12chars_format, ToChars, (char* first, char* last, long double value, int format), (first, last, value, format),
               announce_range(first, last))
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_fSt12chars_formati, ToChars, (char* first, char* last, float value, int format, int digits),
               (first, last, value, format, digits), announce_range(first, last))
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_dSt12chars_formati, ToChars, (char* first, char* last, double value, int format, int digits),
               (first, last, value, format, digits), announce_range(first, last))
TAIYEN_WRAP_BY(_ZSt8to_charsPcS_eSt12chars_formati, ToChars, (char* first, char* last, long double value, int format, int digits),
               (first, last, value, format, digits), announce_range(first, last))

struct FromChars {
    const char* end;
    int error;
};
TAIYEN_WRAP_BY(_ZSt10from_charsPKcS0_RfSt12chars_format, FromChars, (const char* first, const char* last, float& to, int format),
               (first, last, to, format), announce(&to, sizeof to))
TAIYEN_WRAP_BY(_ZSt10from_charsPKcS0_RdSt12chars_format, FromChars, (const char* first, const char* last, double& to, int format),
               (first, last, to, format), announce(&to, sizeof to))
TAIYEN_WRAP_BY(_ZSt10from_charsPKcS0_ReSt12chars_format, FromChars, (const char* first, const char* last, long double& to, int format),
               (first, last, to, format), announce(&to, sizeof to))

TAIYEN_WRAP_EXTRACTION(_ZNSirsERb, bool)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERs, short)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERt, unsigned short)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERi, int)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERj, unsigned)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERl, long)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERm, unsigned long)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERx, long long)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERy, unsigned long long)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERf, float)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERd, double)
TAIYEN_WRAP_EXTRACTION(_ZNSirsERe, long double)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractIbEERSiRT_, bool)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractItEERSiRT_, unsigned short)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractIjEERSiRT_, unsigned)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractIlEERSiRT_, long)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractImEERSiRT_, unsigned long)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractIxEERSiRT_, long long)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractIyEERSiRT_, unsigned long long)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractIfEERSiRT_, float)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractIdEERSiRT_, double)
TAIYEN_WRAP_EXTRACTION(_ZNSi10_M_extractIeEERSiRT_, long double)
TAIYEN_WRAP_EXTRACTION(_ZStrsIcSt11char_traitsIcEERSt13basic_istreamIT_T0_ES6_RS3_, char)
TAIYEN_WRAP_EXTRACTION(_ZNSi3getERc, char)
TAIYEN_WRAP_BY(_ZNSi4readEPcl, void*, (void* stream, char* to, std::ptrdiff_t n), (stream, to, n), announce_range(to, to + n))
TAIYEN_WRAP_BY(_ZNSi7getlineEPclc, void*, (void* stream, char* to, std::ptrdiff_t n, char end), (stream, to, n, end), announce_range(to, to + n))
TAIYEN_WRAP_BY(_ZNSi7getlineEPcl, void*, (void* stream, char* to, std::ptrdiff_t n), (stream, to, n), announce_range(to, to + n))
