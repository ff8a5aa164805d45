"""For gdb: how taiyen's heaps, transactions and values print. `source taiyen_printers.py`, or a line in ~/.gdbinit.

    (gdb) print heap
    $1 = SnapshotHeap at 0x233a00000000, 72 KiB of 64 GiB in use, 2 names = {["parts"] = std::map with 3 elements = {…}, ["revision"] = 5}
    (gdb) taiyen-objects heap             names, types and addresses
    (gdb) print *$taiyen_object(heap, "parts")
    (gdb) taiyen-show heap parts          what one holds, by the shape that the heap keeps of its type
    (gdb) print $taiyen_offset(pointer)   where in its heap something lies

Most containers in heaps are the standard library's, so its own printers print them. What is shown of a heap is read from its bytes (src/heap/FORMAT.md), so it works without debug
information of the library, and in core files that hold its pages. With it there is more: path, saves, transactions.
Nothing here calls a function of the program. Types of which the program has no debug information print by their shapes (src/shape/FORMAT.md),
if Python has xxhash (Debian: python3-xxhash).
"""
import re
import struct

import gdb
import gdb.printing

try:
    import xxhash
except ImportError:
    xxhash = None

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

    def entries(self):
        """(name, text beside it, offset, bytes, count) of each entry of the directory: names with their fingerprints, shapes, blocks on loan."""
        if self.directory == 0 or self.directory >= self.extent:
            return
        run = self.base + self.directory
        head = read(run, 64)
        slots = word(head, 8, 4)
        if word(head, 0) != DIRECTORY_MAGIC or slots > NAMES_MAX * 2:
            raise Unreadable("the directory of names")
        table = read(run + 64, slots * 8)
        for at in range(0, slots * 8, 8):
            entry = word(table, at, 4)
            if entry == 0:
                continue
            fixed = read(run + entry, 32)
            name_bytes, text_bytes = word(fixed, 24, 4), word(fixed, 28, 4)
            if name_bytes > 1024 or text_bytes > 4096:
                raise Unreadable("an entry of the directory of names")
            texts = read(run + entry + 32, name_bytes + text_bytes)
            yield texts[:name_bytes].decode(errors="replace"), texts[name_bytes:], word(fixed, 0), word(fixed, 8), word(fixed, 16)

    def objects(self):
        """(name, fingerprint, address, bytes, count) of each named object, by name."""
        found = []
        for name, text, offset, size, count in self.entries():
            fingerprint = text.decode(errors="replace")
            if fingerprint != HELD and not (name.startswith(SHAPE) and offset == 0):
                found.append((name, fingerprint, self.base + offset, size, count))
        return sorted(found)

    def names(self):
        """(name, mangled type, address, bytes) of each named object, by name."""
        return [(name, fingerprint.split(" ")[0], address, size) for name, fingerprint, address, size, _ in self.objects()]

    def shape_of(self, fingerprint):
        """The nodes of the type's shape. Raises Unreadable: the heap has none, or xxhash is not there."""
        if xxhash is None:
            raise Unreadable("no debug information of the type, and Python has no xxhash (Debian: python3-xxhash), by which its shape is found")
        parts = {}
        begin = f"{SHAPE}{xxhash.xxh3_64_intdigest(fingerprint.encode(), seed=7):016x} "
        for name, text, offset, _, count in self.entries():
            if offset == 0 and name.startswith(begin) and name[len(begin):].isdecimal():
                parts[int(name[len(begin):])] = (text, count)
        if 0 not in parts or parts[0][1] > 32 or sorted(parts) != list(range(parts[0][1])):
            raise Unreadable("no debug information of the type, and the heap doesn't keep its shape")
        return shape_nodes(b"".join(parts[i][0] for i in sorted(parts)))


class Node:
    """One type within a shape."""

    def __init__(self, reader):
        self.kind, flags = reader.byte(), reader.byte()
        self.distances, self.keeps_hashes = flags & 1 != 0, flags & 2 != 0
        self.bytes = reader.number()
        self.alignment = 1 << reader.byte()
        self.count = reader.number()
        self.name = reader.name()
        self.parts = [(reader.name(), reader.number(), reader.number()) for _ in range(reader.number())]


class ShapeReader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            piece = self.byte()
            value |= (piece & 0x7f) << shift
            shift += 7
            if piece < 0x80:
                return value

    def name(self):
        length = self.number()
        self.at += length
        return self.data[self.at - length:self.at].decode(errors="replace")


def shape_nodes(data):
    if word(data, 0, 4) != 0x48535954 or word(data, 4, 2) != 1:
        raise Unreadable("the shape of the type is damaged, or newer than these printers")
    try:
        reader = ShapeReader(data[24:])
        return [Node(reader) for _ in range(word(data, 12, 4))]
    except IndexError as error:
        raise Unreadable("the shape of the type is damaged") from error


# Kinds of nodes, as include/taiyen/shape/shape_kind.hpp numbers them.
(OPAQUE, BOOLEAN, SIGNED, UNSIGNED, FLOATING, CHARACTER, ENUMERATION, STRUCTURE, ARRAY, POINTER, PAIR, TUPLE, OPTIONAL, VARIANT, STRING, VECTOR, BIT_VECTOR, DEQUE, LIST,
 FORWARD_LIST) = range(20)
MAPS = (20, 21, 24, 25, 28, 29, 32, 33, 36)
TREES, HASHES, BTREES, FLAT = range(20, 24), range(24, 28), range(28, 36), range(36, 38)
BARE_BYTES = {STRING: 32, VECTOR: 24, BIT_VECTOR: 40, DEQUE: 80, LIST: 24, FORWARD_LIST: 8, **dict.fromkeys(TREES, 48), **dict.fromkeys(HASHES, 56),
              **dict.fromkeys(BTREES, 40), **dict.fromkeys(FLAT, 32)}
DEPTH_MAX = 20
VALUES_MAX = 20000  # of one text
STEPS_MAX = 192  # from one element of a tree to the next


class ShapeText:
    """Values of a heap as text, by the shape of their type alone. Whatever is read there, the text ends: behind VALUES_MAX values, or DEPTH_MAX within each other."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.left = VALUES_MAX
        self.elements_max = gdb.parameter("print elements") or 1 << 20

    def of(self, number, at, depth=0):
        try:
            return self.known(number, at, depth)
        except (LookupError, ArithmeticError, ValueError, AttributeError, TypeError, MemoryError, Unreadable, gdb.error):
            return "<damaged>"

    def known(self, number, at, depth):
        node = self.nodes[number]
        self.left -= 1
        if depth > DEPTH_MAX or self.left < 0:
            return "…"
        inner = [(name, at + offset, part) for name, offset, part in node.parts]
        if node.kind == ENUMERATION:
            return self.of(node.parts[0][2], at, depth + 1)
        if node.kind in (BOOLEAN, SIGNED, UNSIGNED, FLOATING, CHARACTER):
            if node.bytes > 16:
                raise ValueError
            return self.number(node, read(at, node.bytes))
        if node.kind == POINTER:
            to = self.target(node, at)
            return f"({self.name(node.parts[0][2])} *) {to:#x}"
        if node.kind == OPTIONAL:
            has = read(at + self.nodes[node.parts[0][2]].bytes, 1)[0]
            return self.of(node.parts[0][2], at, depth + 1) if has else "nothing"
        if node.kind == VARIANT:
            return self.alternative(node, at, depth)
        if node.kind == ARRAY:
            return self.row(node, at, node.count, depth)
        if node.kind in (STRUCTURE, PAIR, TUPLE):
            return "{" + ", ".join((f"{name} = " if name else "") + self.of(part, place, depth + 1) for name, place, part in inner) + "}"
        bare = BARE_BYTES.get(node.kind)
        if bare is None or node.bytes not in (bare, bare + 8) or (node.parts and self.nodes[node.parts[0][2]].bytes == 0):
            return f"<{node.bytes} bytes of {type_name(node.name) if node.name else 'an unknown type'}>"
        return self.container(node, at + node.bytes, depth)

    def name(self, number):
        node = self.nodes[number]
        if node.name:
            return type_name(node.name)
        begin = {SIGNED: "int", UNSIGNED: "uint"}.get(node.kind)
        return f"{begin}{node.bytes * 8}_t" if begin else {BOOLEAN: "bool", CHARACTER: "char", FLOATING: "float" if node.bytes == 4 else "double", STRING: "string"}.get(node.kind, "void")

    def number(self, node, data):
        if node.kind == BOOLEAN:
            return "true" if data[0] else "false"
        if node.kind == FLOATING:
            return {4: lambda: f"{struct.unpack('<f', data)[0]:.9g}", 8: lambda: repr(struct.unpack("<d", data)[0])}.get(node.bytes, lambda: f"0x{data[::-1].hex()}")()
        value = int.from_bytes(data, "little", signed=node.kind == SIGNED)
        return f"{value} '{chr(value)}'" if node.kind == CHARACTER and 32 <= value < 127 else str(value)

    def target(self, node, at):
        """Where the word leads there, 0: nowhere."""
        value = word(read(at, 8), 0)
        if node.distances:
            return 0 if value == 1 else (at + value) & (1 << 64) - 1
        return value

    def alternative(self, node, at, depth):
        alternatives = [self.nodes[part] for _, _, part in node.parts]
        place = aligned(max(a.bytes for a in alternatives), max(a.alignment for a in alternatives))
        index = word(read(at + place, 2 if len(alternatives) >= 256 else 1), 0, 2)
        return self.of(node.parts[index][2], at, depth + 1) if index < len(alternatives) else "valueless"

    def row(self, node, begin, count, depth):
        element = self.nodes[node.parts[0][2]]
        if element.kind == CHARACTER:
            shown = min(count, self.elements_max)
            data = read(begin, min(shown * element.bytes, 1 << 24)) if shown else b""
            text = data.decode({1: "utf-8", 2: "utf-16-le", 4: "utf-32-le"}[element.bytes], errors="replace")
            text = text.split("\0")[0] if node.kind == ARRAY else text
            escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\{c}" if c in '"\\' else f"\\{ord(c):03o}" for c in text)
            return f'"{escaped}"' + ("..." if shown < count else "")
        return self.listed(node, (begin + i * element.bytes for i in range(count)), depth)

    def listed(self, node, places, depth):
        """The elements that lie there; of split pairs {key, value}."""
        element, shown = node.parts[0][2], []
        for place in places:
            if len(shown) == self.elements_max or self.left < 0:
                shown.append("...")
                break
            pair = self.nodes[element].parts if node.kind in MAPS else None
            if pair is None:
                shown.append(self.of(element, place, depth + 1))
                continue
            key, value = place if isinstance(place, tuple) else (place + pair[0][1], place + pair[1][1])
            shown.append(f"[{self.of(pair[0][2], key, depth + 1)}] = {self.of(pair[1][2], value, depth + 1)}")
        return "{" + ", ".join(shown) + "}"

    def container(self, node, end, depth):
        """`end`: of its bytes. Its own words stand there, as libstdc++ 12 and taiyen lay them out."""
        def at(before_end):
            return word(read(end - before_end, 8), 0)
        element = self.nodes[node.parts[0][2]] if node.parts else None
        to = lambda place: self.target(node, place)
        if node.kind == STRING:
            return self.row(node, to(end - 32), at(24), depth)
        if node.kind == VECTOR:
            return self.row(node, to(end - 24), (to(end - 16) - to(end - 24)) // element.bytes, depth)
        if node.kind == BIT_VECTOR:
            count = (at(24) - at(40)) * 8 + word(read(end - 16, 4), 0, 4)
            shown = min(count, self.elements_max)
            data = read(at(40), (shown + 7) // 8) if shown else b""
            return "{" + ", ".join(["true" if data[i // 8] >> i % 8 & 1 else "false" for i in range(shown)] + ["..."] * (shown < count)) + "}"
        if node.kind == DEQUE:
            return self.listed(node, self.in_deque(to, end, element), depth)
        if node.kind == LIST:
            return self.listed(node, self.linked(to, to(end - 24), end - 24, aligned(16, element.alignment)), depth)
        if node.kind == FORWARD_LIST or node.kind in HASHES:
            first = end - 8 if node.kind == FORWARD_LIST else end - 40
            return self.listed(node, self.linked(to, to(first), 0, aligned(8, element.alignment)), depth)
        if node.kind in TREES:
            return self.listed(node, self.in_tree(to, end, at(8), aligned(32, element.alignment)), depth)
        if node.kind in FLAT:
            return self.listed(node, self.in_table(to(end - 32), at(24), element), depth)
        return self.listed(node, self.in_btree(node, to, end, at(16)), depth)

    @staticmethod
    def in_deque(to, end, element):
        each = max(1, 512 // element.bytes)
        here, row, last, block_end = to(end - 64), end - 40, to(end - 32), to(end - 48)
        row = to(row)
        while here != last:
            if here == block_end:
                row += 8
                here = to(row)
                block_end = here + each * element.bytes
                continue
            yield here
            here += element.bytes

    @staticmethod
    def linked(to, node, end, before_element):
        while node != end:
            yield node + before_element
            node = to(node)

    @staticmethod
    def in_tree(to, end, count, before_element):
        node = to(end - 24)
        for _ in range(count):
            yield node + before_element
            if to(node + 24) != 0:
                node = to(node + 24)
                for _ in range(STEPS_MAX):
                    if to(node + 16) == 0:
                        break
                    node = to(node + 16)
            else:
                above = to(node + 8)
                for _ in range(STEPS_MAX):
                    if to(above + 24) != node:
                        break
                    node, above = above, to(above + 8)
                node = above

    @staticmethod
    def in_table(block, slots, element):
        first = block + aligned(max(slots, 16), max(16, element.alignment))
        for begin in range(0, slots, 4096):
            for slot, control in enumerate(read(block + begin, min(4096, slots - begin)), begin):
                if control < 0x80:
                    yield first + slot * element.bytes

    def in_btree(self, node, to, end, count):
        form = node.count - 256
        is_apart, keys_are_digests, digest_bytes = form & 1, form & 2, form >> 2
        element = self.nodes[node.parts[0][2]]
        is_map = node.kind in MAPS
        key = self.nodes[element.parts[0][2]] if is_map else element
        key_bytes, key_alignment = (8, 8) if is_apart else (key.bytes, key.alignment)
        value = self.nodes[element.parts[1][2]] if is_map and not is_apart else None
        leaf = to(end - 32)
        while count > 0 and leaf != 0:
            head = read(leaf, 24)
            here, slots = word(head, 16, 2), word(head, 18, 2)
            if here == 0 or here > slots or slots > 255:
                raise ValueError
            order = 24 + slots * digest_bytes
            keys = 24 if keys_are_digests else aligned(order + slots, key_alignment)
            behind = order + slots if keys_are_digests else keys + slots * key_bytes
            for slot in read(leaf + order, here):
                place = leaf + keys + slot * key_bytes
                if is_apart:
                    yield to(place)
                elif value is None:
                    yield place
                else:
                    yield place, leaf + aligned(behind, value.alignment) + slot * value.bytes
            count -= here
            leaf = to(leaf + 8)


def text_by_shape(span, fingerprint, address, size, count):
    """What the object holds. Raises Unreadable."""
    nodes = span.shape_of(fingerprint)
    if nodes[0].bytes != size:
        raise Unreadable("the shape that the heap keeps of the type is another type's")
    shown = ShapeText(nodes)
    if count == 1:
        return shown.of(0, address)
    texts = [shown.of(0, address + i * size) for i in range(min(count, shown.elements_max))]
    return "{" + ", ".join(texts + ["..."] * (count > len(texts))) + "}"


def type_name(mangled):
    """As a program would write it, nearly; the mangled name where gdb can't read it."""
    if not re.fullmatch(r"[\w]+", mangled):
        return mangled
    said = gdb.execute(f"demangle _ZTI{mangled}", to_string=True).strip()
    return said.removeprefix("typeinfo for ") if said.startswith("typeinfo for ") else mangled


def object_at(mangled, address):
    """The named object with its type; without debug information of the type its address."""
    found = known_object_at(mangled, address)
    return gdb.Value(address).cast(gdb.lookup_type("void").pointer()) if found is None else found


def known_object_at(mangled, address):
    """None: there is no debug information of the type."""
    try:
        return gdb.Value(address).cast(gdb.lookup_type(type_name(mangled)).pointer()).dereference()
    except gdb.error:
        return None


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
            span = span_of(self.value)
            objects = span.objects()
        except Unreadable:
            return
        for name, fingerprint, address, size, count in objects:
            mangled = fingerprint.split(" ")[0]
            shown = known_object_at(mangled, address)
            if shown is None:
                try:
                    shown = text_by_shape(span, fingerprint, address, size, count)
                except Unreadable:
                    shown = object_at(mangled, address)
            yield f'["{name}"]', shown


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


class Show(gdb.Command):
    """taiyen-show HEAP NAME: what a named object holds, by the shape that the heap keeps of its type. No debug information of the type is needed. `set print elements` says how much is shown."""

    def __init__(self):
        super().__init__("taiyen-show", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        heap, _, wanted = argument.strip().rpartition(" ")
        if not heap:
            raise gdb.GdbError("usage: taiyen-show HEAP NAME")
        try:
            span = span_of(referenced(gdb.parse_and_eval(heap)))
            for name, fingerprint, address, size, count in span.objects():
                if name == wanted.strip('"'):
                    print(f"{name} = {text_by_shape(span, fingerprint, address, size, count)}")
                    return
        except Unreadable as reason:
            raise gdb.GdbError(str(reason)) from reason
        raise gdb.GdbError(f"no object has the name {wanted}")


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
Show()
