#pragma once
/// What the document of the container tests holds, for moves by declared types.

#include <taiyen/stl/declared.hpp>

#include "containers/document.hpp"

template <class In>
struct taiyen::pointers_of<taiyen::test::Part<In>> {
    template <class Visit>
    static void describe(taiyen::test::Part<In>& part, Visit visit) {
        visit(part.name, part.tags, part.note, part.shape, part.neighbour);
    }
};

template <class In>
struct taiyen::pointers_of<taiyen::test::Document<In>> {
    template <class Visit>
    static void describe(taiyen::test::Document<In>& d, Visit visit) {
        visit(d.numbers, d.lines, d.queue, d.names, d.stack, d.index, d.events, d.words, d.counts, d.table, d.links, d.seen, d.bag, d.parts, d.ledger,
              d.calendar, d.terms, d.scores, d.glossary);
    }
};
