// A parsed PTX module: names are resolved within scopes, nothing is interpreted. Follows NVIDIA,
// "Parallel Thread Execution ISA", version 9.0, as far as nvcc 13 emits it for compute_80 and
// compute_90.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/source_line.h"

namespace assay::sim::ptx {

// clang-format off
enum class Type : std::uint8_t {
  none,
  pred,
  b8, b16, b32, b64, b128,
  u8, u16, u32, u64,
  s8, s16, s32, s64,
  f16, f16x2, bf16, bf16x2, f32, f64,
};
// clang-format on

// Bytes of a value; 0 for none and pred.
std::size_t size_of(Type);
const char* to_string(Type);                       // without the dot
std::optional<Type> type_named(std::string_view);  // likewise

enum class Space : std::uint8_t { generic, reg, sreg, constant, global, local, param, shared };
const char* to_string(Space);

// A place in the PTX text, and in the CUDA source if a .loc directive covers it.
struct Location {
  std::uint32_t line = 0;         // of the PTX, from 1
  std::uint32_t file = 0;         // index of a .file directive, 0: unknown
  std::uint32_t source_line = 0;  // line in that file
  std::uint32_t inlined_at = 0;   // 1 + index in Module::call_sites, 0: not in an inlined function
};

struct Operand {
  enum class Kind : std::uint8_t {
    reg,      // name (unique within the function)
    special,  // name with its component: "%tid.x", "%laneid", "%clock64"
    integer,  // value
    real32,   // bits, 0f...; value holds the 32 bits
    real64,   // bits, 0d... or a decimal literal; value holds the 64 bits
    symbol,   // name + offset: a variable, function or label
    address,  // [base + offset]; base is elements[0] (reg or symbol), or absent for [imm]. What
              // follows a comma, as in [map, {x, y}], is in elements[1] and after
    vector,   // {a, b, ...} in elements
    sink,     // _
    list,     // (a, b, ...): the arguments and results of call
  };
  Kind kind = Kind::integer;
  bool negated = false;   // !p
  char selector[3] = "";  // of a reg: "b2" or "h1", the part that video instructions take
  std::string name;
  std::uint64_t value = 0;  // literal bits; integers two's complement
  std::int64_t offset = 0;  // of symbol and address
  std::vector<Operand> elements;
};

struct Instruction {
  std::string opcode;                  // "ld"
  std::vector<std::string> modifiers;  // "global", "nc", "v4", "f32": in order, without dots
  bool guarded = false, guard_negated = false;
  std::string guard;              // register name
  std::vector<Operand> operands;  // destination first; "d|p" gives two operands, then the rest
  bool paired = false;            // the first two operands were written d|p
  Location where;

  // "ld.global.nc.v4.f32"
  std::string full_name() const;
};

// Whether modules that are linked mean the same by a name: see link.h.
enum class Linkage : std::uint8_t {
  internal,  // no: it belongs to its module
  weak,      // .weak, .common: yes, and several may define it
  external,  // .visible, .extern: yes
};

// A part of a variable's initial value that is an address.
struct Relocation {
  std::size_t at = 0;       // byte offset in the variable
  std::size_t bytes = 8;    // of (address >> shift), little endian
  std::uint32_t shift = 0;  // in bits; nonzero only if 0xff00(symbol) selects a byte
  std::string symbol;
  std::int64_t addend = 0;
  bool generic = false;  // generic(symbol)
};

struct Variable {
  std::string name;
  Space space = Space::global;  // reg: of a .func, passed in a register
  Type type = Type::none;       // of an element
  std::uint32_t align = 1;      // bytes, explicit or natural
  std::uint64_t bytes = 0;      // 0: extern array without a size (dynamic shared memory)
  bool is_extern = false;
  Linkage linkage = Linkage::internal;
  bool managed = false;            // .attribute(.managed)
  std::vector<std::byte> initial;  // empty (zero) or exactly `bytes` long
  std::vector<Relocation> relocations;
  Location where;
};

struct Register {
  std::string name;
  Type type = Type::none;
};

struct Function {
  std::string name;
  bool entry = false;    // .entry
  bool defined = false;  // has a body
  Linkage linkage = Linkage::internal;
  bool noreturn = false;
  std::vector<Variable> results, parameters;
  // Those that the body declares; for `%r<N>` only those that it mentions.
  std::vector<Register> registers;
  std::vector<Variable> locals;  // .local, .shared and .param variables of the body, unique names
  std::vector<Instruction> body;
  // Index of the next instruction: body.size() for a label at the end.
  std::map<std::string, std::size_t> labels;
  std::map<std::string, std::vector<std::string>> branch_targets;  // .branchtargets by label
  std::map<std::string, std::vector<std::string>> call_targets;    // .calltargets by label
  std::map<std::string, Function> prototypes;                      // .callprototype by label
  std::uint32_t max_threads = 0;                  // product of .maxntid, 0: none given
  std::uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
  std::uint32_t min_blocks = 0;                   // .minnctapersm
  std::uint32_t required_cluster[3] = {0, 0, 0};  // .reqnctapercluster
  bool blocks_are_clusters = false;               // the grid of a launch counts clusters
  Location where;
};

struct Module {
  std::uint32_t version_major = 0, version_minor = 0;
  std::string target;  // "sm_80"
  std::uint32_t address_bytes = 8;
  std::vector<Variable> variables;
  std::vector<Function> functions;             // definitions and declarations, in order
  std::map<std::uint32_t, std::string> files;  // .file
  // For inlined functions. `line` is unused; inlined_at leads further out, never in a circle.
  std::vector<Location> call_sites;

  // "kernel.cu:42", or "PTX line 17" if the source is unknown. For inlined code the calls follow,
  // innermost first: "reduce.h:12, inlined at kernel.cu:42".
  std::string describe(const Location&) const;
  // Likewise, with whole paths: the place, then the calls.
  std::vector<SourceLine> places(const Location&) const;
};

// Calls visit(symbol) for each use of a function or variable, which may change it: in operands,
// initial values and .calltargets. Labels and a function's own variables are symbols too; their
// names differ from those of the module.
void for_each_use(Module&, const std::function<void(std::string&)>& visit);

}  // namespace assay::sim::ptx
