"""For gdb: how taiyen's heaps, transactions and values print. `source taiyen_printers.py`, or a line in ~/.gdbinit.

    (gdb) print heap
    $1 = SnapshotHeap at 0x233a00000000, 72 KiB of 64 GiB in use, 2 names = {["parts"] = std::map with 3 elements = {…}, ["revision"] = 5}
    (gdb) taiyen-objects heap             names, types and addresses
    (gdb) print *$taiyen_object(heap, "parts")
    (gdb) print $taiyen_offset(pointer)   where in its heap something lies

Most containers in heaps are the standard library's, so its own printers print them. What is shown of a heap is read from its bytes (src/heap/FORMAT.md), so it works without debug
information of the library, and in core files that hold its pages. With it there is more: path, saves, transactions.
Nothing here calls a function of the program.
"""
import re

import gdb
import gdb.printing

SLOTS = 1 << 15
SLOT_SHIFT = 32
SUPER_BLOCK = b"TAIYENE1"
DIRECTORY_MAGIC = 0x3152_4944_4E59_4154
NAMES_MAX = 10000
SHAPE = "\0shape "  # begins what stands among names for the shape of a type; it has no object
HELD = "\1held"  # of entries that are no names: blocks that objects outside have


class Unreadable(Exception):
    """The bytes are not what they should be: a heap that is closed, damaged, or not in the core file."""


def read(address, size):
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except gdb.MemoryError as error:
        raise Unreadable(str(error)) from error


def word(data, at, size=8):
    return int.from_bytes(data[at:at + size], "little")


def text_of_bytes(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:g} {unit}" if count == int(count) else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:g} TiB" if count == int(count) else f"{count:.1f} TiB"


def slot_table():
    """The cores of the open heaps by their 4 GiB slots. The symbol is there in programs without any debug information, too."""
    try:
        address = int(gdb.parse_and_eval("(unsigned long)&'taiyen::heap::slot_table'"))
    except gdb.error as error:
        raise Unreadable("there is no taiyen::heap::slot_table in this program") from error
    return memoryview(read(address, SLOTS * 8)).cast("Q")


def base_in(slot):
    """Where the span begins of the heap whose first slot it is: in the middle, or, as older ones and as was asked for, at its beginning."""
    begin = slot << SLOT_SHIFT
    for base in (begin + (1 << SLOT_SHIFT - 1), begin):
        try:
            if read(base, 8) == SUPER_BLOCK:
                return base
        except Unreadable:
            pass
    raise Unreadable(f"no heap begins at {begin:#x} or behind it")


def base_of(core):
    """Where the span of a heap begins: in the first slot that is its own."""
    for slot, owner in enumerate(slot_table()):
        if owner == core:
            return base_in(slot)
    raise Unreadable("closed")


def base_around(address):
    """Where the span begins that the address lies in."""
    table = slot_table()
    slot = address >> SLOT_SHIFT
    if slot >= SLOTS or table[slot] == 0:
        raise Unreadable("not in an open heap")
    while slot > 0 and table[slot - 1] == table[address >> SLOT_SHIFT]:
        slot -= 1
    return base_in(slot)


class Span:
    """What the bytes of a heap say about it."""

    def __init__(self, base):
        self.base = base
        head = read(base, 64)
        if head[:8] != SUPER_BLOCK:
            raise Unreadable(f"there is no heap at {base:#x}")
        self.capacity, self.extent, self.directory = (word(head, at) for at in (16, 24, 32))

    def names(self):
        """(name, mangled type, address, bytes) of each named object, by name."""
        if self.directory == 0 or self.directory >= self.extent:
            return []
        run = self.base + self.directory
        head = read(run, 64)
        slots = word(head, 8, 4)
        if word(head, 0) != DIRECTORY_MAGIC or slots > NAMES_MAX * 2:
            raise Unreadable("the directory of names")
        found = []
        table = read(run + 64, slots * 8)
        for at in range(0, slots * 8, 8):
            entry = word(table, at, 4)
            if entry == 0:
                continue
            fixed = read(run + entry, 32)
            name_bytes, type_bytes = word(fixed, 24, 4), word(fixed, 28, 4)
            if name_bytes > 1024 or type_bytes > 4096:
                raise Unreadable("an entry of the directory of names")
            texts = read(run + entry + 32, name_bytes + type_bytes)
            name, fingerprint = (text.decode(errors="replace") for text in (texts[:name_bytes], texts[name_bytes:]))
            is_shape = name.startswith(SHAPE) and word(fixed, 0) == 0
            if fingerprint != HELD and not is_shape:
                found.append((name, fingerprint.split(" ")[0], self.base + word(fixed, 0), word(fixed, 8)))
        return sorted(found)


def type_name(mangled):
    """As a program would write it, nearly; the mangled name where gdb can't read it."""
    if not re.fullmatch(r"[\w]+", mangled):
        return mangled
    said = gdb.execute(f"demangle _ZTI{mangled}", to_string=True).strip()
    return said.removeprefix("typeinfo for ") if said.startswith("typeinfo for ") else mangled


def object_at(mangled, address):
    """The named object with its type; without debug information of the type its address."""
    name = type_name(mangled)
    try:
        return gdb.Value(address).cast(gdb.lookup_type(name).pointer()).dereference()
    except gdb.error:
        return gdb.Value(address).cast(gdb.lookup_type("void").pointer())


def innermost(value):
    """What a std::atomic, std::shared_ptr or std::unique_ptr holds: its largest member, and of that the largest, and so on."""
    while value.type.strip_typedefs().code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        members = [field for field in value.type.strip_typedefs().fields() if hasattr(field, "bitpos")]
        value = value[max(members, key=lambda field: field.type.sizeof)]
    return value


def with_debug_information(pointer, name):
    """The object behind the pointer, None where the library was compiled without debug information."""
    try:
        return pointer.cast(gdb.lookup_type(name).pointer()).dereference()
    except gdb.error:
        return None


def std_string(value):
    return value["_M_dataplus"]["_M_p"].string(length=int(value["_M_string_length"]))


def core_of(heap):
    """The address of the compiled side of a heap object, 0: there is none."""
    member = "core_" if heap.type.strip_typedefs().unqualified().name == "taiyen::VolatileHeap" else "file_"
    return int(innermost(heap[member]))


def aligned(at, alignment):
    return (at + alignment - 1) // alignment * alignment


def object_of(kind, address):
    return gdb.Value(address).cast(kind.pointer()).dereference()


def pointed(pointer):
    """Where a raw pointer or an offset_ptr leads to, as a number; 0: nowhere."""
    if pointer.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
        return int(pointer)
    distance = int(pointer["internal"]["m_offset"])
    return 0 if distance == 1 else (int(pointer.address) + distance) & (1 << 64) - 1


def span_of(heap):
    core = core_of(heap)
    if core == 0:
        raise Unreadable("closed")
    return Span(base_of(core))


class HeapPrinter:
    def __init__(self, value):
        self.value = value

    def of_the_file(self):
        """What only the library's debug information tells."""
        try:
            file = with_debug_information(innermost(self.value["file_"]), "taiyen::store::HeapFile")
            if file is None:
                return ""
            files, condition = file["files_"], file["condition_"]
            text = f' "{std_string(files["paths_"]["backing"]["_M_pathname"])}"'
            text += f', save {int(files["point_"]["generation"]["value"])}'
            if int(files["point_"]["serial"]["value"]) != 0:
                text += f' up to transaction {int(files["point_"]["serial"]["value"])}'
            if bool(condition["read_only_"]):
                text += ", read-only"
            if int(innermost(condition["poisoned_"])) != 0:
                text += ", poisoned"
            return text
        except gdb.error:
            return ""

    def to_string(self):
        kind = self.value.type.strip_typedefs().unqualified().name.removeprefix("taiyen::")
        try:
            span = span_of(self.value)
            names = span.names()
        except Unreadable as reason:
            return f"{kind}, {reason}"
        return (f"{kind} at {span.base:#x}{self.of_the_file()}, {text_of_bytes(span.extent)} of {text_of_bytes(span.capacity)} in use, "
                f"{len(names)} name{'' if len(names) == 1 else 's'}")

    def children(self):
        try:
            names = span_of(self.value).names()
        except Unreadable:
            return
        for name, mangled, address, _ in names:
            yield f'["{name}"]', object_at(mangled, address)


class ScopePrinter:
    """Transaction, UndoScope: whose, how deep."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        kind = self.value.type.strip_typedefs().unqualified().name.removeprefix("taiyen::")
        service = innermost(self.value["service_"])
        if int(service) == 0:
            return f"{kind}, ended"
        depth = int(self.value["depth_"])
        text = f"{kind}, open" if depth == 1 else f"{kind}, open, part of an outer one (depth {depth})"
        behind = with_debug_information(service, "taiyen::txn::TransactionService") if kind == "Transaction" else None
        try:
            if behind is not None:
                text += f', behind transaction {int(innermost(behind["last_"]))}'
                if bool(behind["doomed_"]):
                    text += ", doomed"
        except gdb.error:
            pass
        return text


class ReadLockPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return f'ReadLock, sees transaction {int(self.value["serial_"]["value"])}'


class NumberPrinter:
    """Serial 7, HeapOffset 0x2000: quantities with a type of their own."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        kind = self.value.type.strip_typedefs().unqualified().name.removeprefix("taiyen::")
        number = int(self.value["value"])
        return f"{kind} {number:#x}" if kind in ("HeapOffset", "Epoch") else f"{kind} {number}"


class AllocatorPrinter:
    """What an allocator's word says; of one in a heap the address decides."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        said = int(self.value["home_"]["word_"])
        try:
            if self.value.address is not None:
                base = base_around(int(self.value.address))
                if int(self.value.address) < base + Span(base).capacity:
                    return f"allocator in the heap at {base:#x}"
        except (Unreadable, gdb.error):
            pass
        if said == 0:
            return "allocator of scratch memory"
        try:
            heap = f"the heap at {base_in((said >> 16) & 0xffff):#x}"
        except Unreadable:
            heap = "a heap that is closed"
        return f"allocator with memory on loan from {heap}" if said & 3 == 2 else f"allocator that was given {heap}"


class IdSetPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        count = int(self.value["tree_"]["size_"])
        return f"set of {count} id{'' if count == 1 else 's'}"


class BTreePrinter:
    """btree_map, ordered_map and their like: leaf by leaf, as include/taiyen/ordered/detail/btree.hpp lays them out."""

    def __init__(self, value):
        self.tree = value["tree_"]
        container = self.tree.type.strip_typedefs()
        self.key, mapped = (container.template_argument(i).strip_typedefs() for i in (0, 1))
        self.mapped = None if mapped.name == "taiyen::ordered::Nothing" else mapped
        nodes = container.fields()[0].type.fields()[0].type  # the bases: BTreeSearch, and of that BTreeNodes
        self.leaf = gdb.lookup_type(f"{nodes.name}::Leaf")
        self.apart = None
        head_bytes = 8
        if (self.key.name or "").startswith("taiyen::ordered::Apart<"):
            key, self.apart = (self.key.template_argument(i).strip_typedefs() for i in (0, 1))
            self.mapped = None if key == self.apart else self.apart
            if key.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_FLT):
                head_bytes = key.sizeof
        self.digest_bytes = {"none": 0, "heads": head_bytes, "keys": self.key.sizeof}[str(self.tree["digests"]).rpartition("::")[2]]
        self.keys_are_digests = str(self.tree["digests"]).endswith("::keys")

    def to_string(self):
        kind = "set" if self.mapped is None else "map"
        count = int(self.tree["size_"])
        return f"B-tree {kind} with {count} element{'' if count == 1 else 's'}"

    def display_hint(self):
        return "array" if self.mapped is None else "map"

    def children(self):
        try:
            yield from self.elements()
        except (Unreadable, gdb.error):
            return

    def elements(self):
        number = 0
        at = pointed(self.tree["first_"])
        while at != 0:
            leaf = gdb.Value(at).cast(self.leaf.pointer()).dereference()
            slots = int(leaf["slots"])
            order = self.leaf.sizeof + self.digest_bytes * slots
            keys = self.leaf.sizeof if self.keys_are_digests else aligned(order + slots, self.key.alignof)
            behind = order + slots if self.keys_are_digests else keys + slots * self.key.sizeof
            for slot in read(at + order, int(leaf["count"])):
                if self.apart is not None:
                    element = object_of(self.apart, pointed(object_of(self.key, at + keys + slot * self.key.sizeof)["element"]))
                    for part in [element] if self.mapped is None else [element["first"], element["second"]]:
                        yield str(number), part
                        number += 1
                    continue
                yield str(number), object_of(self.key, at + keys + slot * self.key.sizeof)
                number += 1
                if self.mapped is not None:
                    values = at + aligned(behind, self.mapped.alignof)
                    yield str(number), object_of(self.mapped, values + slot * self.mapped.sizeof)
                    number += 1
            at = pointed(leaf["next"])


class FlatHashPrinter:
    """flat_hash_map, flat_hash_set: slot by slot, as include/taiyen/stl/detail/flat_hash_table.hpp lays them out."""

    def __init__(self, value):
        self.table = value["table_"]
        table = self.table.type.strip_typedefs()
        self.is_map = table.template_argument(1).strip_typedefs().code != gdb.TYPE_CODE_VOID
        self.element = gdb.lookup_type(f"{table.name}::Element").strip_typedefs()
        self.unit = max(16, self.element.alignof)

    def to_string(self):
        count = int(self.table["size_"])
        return f"flat hash {'map' if self.is_map else 'set'} with {count} element{'' if count == 1 else 's'}"

    def display_hint(self):
        return "map" if self.is_map else "array"

    def children(self):
        try:
            yield from self.elements()
        except (Unreadable, gdb.error):
            return

    def elements(self):
        number = 0
        at = pointed(self.table["block_"])
        slots = int(self.table["slots_"])
        for slot, control in enumerate(read(at, slots) if slots != 0 else b""):
            if control >= 0x80:
                continue
            element = object_of(self.element, at + aligned(max(slots, 16), self.unit) + slot * self.element.sizeof)
            for part in (element["first"], element["second"]) if self.is_map else (element,):
                yield str(number), part
                number += 1


class OffsetPointerPrinter:
    """The pointer that a distance means; needs to know where it lies itself."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        distance = int(self.value["internal"]["m_offset"])
        target = self.value.type.strip_typedefs().template_argument(0)
        if distance == 1:
            return "offset_ptr to nothing"
        if self.value.address is None:
            return f"offset_ptr to what lies {distance:#x} bytes from it"
        return f"({target} *) {pointed(self.value):#x}"


class Offset(gdb.Function):
    """$taiyen_offset(pointer): where in its heap an address lies."""

    def __init__(self):
        super().__init__("taiyen_offset")

    def invoke(self, pointer):
        try:
            return int(pointer) - base_around(int(pointer))
        except Unreadable as reason:
            raise gdb.GdbError(str(reason)) from reason


class Object(gdb.Function):
    """$taiyen_object(heap, "name"): a pointer to that named object, with its type."""

    def __init__(self):
        super().__init__("taiyen_object")

    def invoke(self, heap, name):
        wanted = name.string()
        try:
            for found, mangled, address, _ in span_of(referenced(heap)).names():
                if found == wanted:
                    value = object_at(mangled, address)
                    return value if value.type.code == gdb.TYPE_CODE_PTR and value.address is None else value.address
        except Unreadable as reason:
            raise gdb.GdbError(str(reason)) from reason
        raise gdb.GdbError(f"no object has the name {wanted}")


def referenced(value):
    return value.referenced_value() if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF, gdb.TYPE_CODE_PTR) else value


class Objects(gdb.Command):
    """taiyen-objects HEAP: the named objects of a heap with their types, addresses and sizes."""

    def __init__(self):
        super().__init__("taiyen-objects", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        try:
            for name, mangled, address, size in span_of(referenced(gdb.parse_and_eval(argument))).names():
                print(f"{name}  {address:#x}  {size} B  {type_name(mangled)}")
        except Unreadable as reason:
            raise gdb.GdbError(str(reason)) from reason


def printers():
    made = gdb.printing.RegexpCollectionPrettyPrinter("taiyen")
    made.add_printer("heap", r"^taiyen::(Archive|Snapshot|Transactional|Volatile)Heap$", HeapPrinter)
    made.add_printer("scope", r"^taiyen::(Transaction|UndoScope)$", ScopePrinter)
    made.add_printer("read lock", r"^taiyen::ReadLock$", ReadLockPrinter)
    made.add_printer("number", r"^taiyen::(Serial|Generation|Epoch|HeapOffset|PageNumber)$", NumberPrinter)
    made.add_printer("allocator", r"^taiyen::(persistent|offset)_allocator<.*>$", AllocatorPrinter)
    made.add_printer("set of ids", r"^taiyen::object_id_set<.*>$", IdSetPrinter)
    made.add_printer("B-tree", r"^taiyen::(btree|ordered)_(multi)?(map|set)<.*>$", BTreePrinter)
    made.add_printer("flat hash table", r"^taiyen::flat_hash_(map|set)<.*>$", FlatHashPrinter)
    made.add_printer("offset pointer", r"^boost::interprocess::offset_ptr<.*>$", OffsetPointerPrinter)
    return made


gdb.printing.register_pretty_printer(None, printers(), replace=True)
Offset()
Object()
Objects()
