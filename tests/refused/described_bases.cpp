// Not one of these may compile, and each must say why:
// says: taiyen: TAIYEN_DESCRIBE can't name members of virtual bases, whose places only an object knows, nor of private ones

#include <taiyen/stl/shape_of.hpp>

struct Base {
    int number = 0;
};
#if defined(TAIYEN_REFUSED)
struct Derived : virtual Base {
#else
struct Derived : Base {
#endif
    Derived() {}
    int other = 0;
    TAIYEN_DESCRIBE(Derived, number, other)
};

taiyen::Shape shape() { return taiyen::shape_of<Derived>(); }
