// A warp without a block: runs single PTX instructions on registers that a test fills and reads.
// Memory is an array, and the handlers' accesses are recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/address_map.h"
#include "sim/execution/warp.h"
#include "sim/operations/instruction_set.h"
#include "sim/ptx/parser.h"

namespace assay::sim::fake {

// One access of a handler.
struct Recorded {
  bool store = false;
  ptx::Space space{};
  std::uint32_t mask = 0, bytes = 0;
  std::vector<std::uint64_t> address;  // of 32 lanes
};

// Thrown by fail().
class Failed : public std::runtime_error {
 public:
  Failed(FindingKind k, std::uint32_t l, const std::string& text)
      : std::runtime_error(text), kind(k), lane(l) {}
  FindingKind kind;
  std::uint32_t lane;
};

// All memory of the fake. Addresses are offsets in it, except that global ones begin at
// kGlobalRange.begin.
struct FakeMemory {
  std::vector<std::byte> bytes = std::vector<std::byte>(1 << 16);
  std::vector<Recorded> recorded;

  std::byte* at(ptx::Space space, std::uint64_t address, std::uint32_t size) {
    if (space != ptx::Space::shared && kGlobalRange.contains(address))
      address -= kGlobalRange.begin;
    if (address + size > bytes.size()) throw std::out_of_range("an access outside the fake memory");
    if (address % size != 0) throw std::runtime_error("a misaligned access");
    return bytes.data() + address;
  }
};

inline FakeMemory& fake_memory() {
  static FakeMemory memory;
  return memory;
}

// Parses one instruction. Registers by name: %p, %r, %rd, %f, %fd and a number.
inline ptx::Instruction instruction(std::string_view text) {
  const std::string module =
      ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .pred %p<64>;\n.reg .b32 %r<256>;\n.reg .b64 %rd<64>;\n"
      ".reg .f32 %f<64>;\n.reg .f64 %fd<64>;\n" +
      std::string(text) + "\nret;\n}\n";
  return ptx::parse(module).functions.at(0).body.at(0);
}

inline Selection select_for_test(const ptx::Instruction& i) {
  auto s = select_warp_op(i);
  if (!s) s = select_tensor(i);
  if (!s) throw std::runtime_error(i.full_name() + " is of neither family");
  return *s;
}

class FakeWarp {
 public:
  FakeWarp() : file_(512), preds_(64) {
    warp.regs = reinterpret_cast<std::byte*>(file_.data());
    warp.preds = preds_.data();
    warp.live = 0xffffffffu;
    activate(0xffffffffu);
  }

  Warp warp;

  void activate(std::uint32_t lanes) {
    warp.active = lanes;
    for (std::uint32_t l = 0; l < 32; ++l) warp.lane_mask.v[l] = (lanes >> l & 1u) != 0 ? ~0u : 0;
  }

  Lanes32& r32(const std::string& name) { return warp.r32(slot_of(name)); }
  Lanes64& r64(const std::string& name) { return warp.r64(slot_of(name)); }
  std::uint32_t& pred(const std::string& name) {
    return preds_.at(static_cast<std::size_t>(std::stoi(name.substr(2))));
  }
  template <class Value>
  void fill32(const std::string& name, Value value) {  // value(lane)
    for (std::uint32_t l = 0; l < 32; ++l) r32(name).v[l] = static_cast<std::uint32_t>(value(l));
  }

  void run(std::string_view text) {
    const ptx::Instruction i = instruction(text);
    const Selection s = select_for_test(i);
    Instr in;
    in.run = s.run;
    in.imm = s.imm;
    extra_.assign(1, 0xdeadbeefu);  // aux is not 0
    in.aux = 1;
    std::vector<std::uint32_t> destinations, sources;
    for (std::size_t o = 0; o < i.operands.size(); ++o)
      bind(i.operands[o], s.operands.at(o), in, destinations, sources);
    if (!s.uses_extra) {
      destinations.resize(2);
      sources.resize(4);
      in.d = destinations[0];
      in.a = sources[0];
      in.b = sources[1];
      in.c = sources[2];
      in.e = destinations[1] != 0 ? destinations[1] : sources[3];
    }
    warp.extra = extra_.data();
    in.run(warp, in);
  }

 private:
  std::uint32_t slot_of(const std::string& name) {
    const auto [at, is_new] = slots_.try_emplace(name, next_);
    if (is_new) next_ += sizeof(Lanes64);
    if (next_ > file_.size() * sizeof(Lanes64)) throw std::length_error("too many registers");
    return at->second;
  }

  std::uint32_t constant(std::uint64_t value, bool wide) {
    const std::uint32_t slot = slot_of(std::to_string(value) + (wide ? "#64" : "#32"));
    for (int l = 0; l < 32; ++l) {
      if (wide) {
        warp.r64(slot).v[l] = value;
      } else {
        warp.r32(slot).v[l] = static_cast<std::uint32_t>(value);
      }
    }
    return slot;
  }

  void bind(const ptx::Operand& o, OperandForm form, Instr& in,
            std::vector<std::uint32_t>& destinations, std::vector<std::uint32_t>& sources) {
    using Form = OperandForm;
    const bool destination = form == Form::dst32 || form == Form::dst64 || form == Form::dst_pred ||
                             form == Form::dst32_list || form == Form::dst64_list;
    const bool wide = form == Form::src64 || form == Form::address64 || form == Form::src64_list;
    std::vector<ptx::Operand> all{o};
    if (o.kind == ptx::Operand::Kind::vector) all = o.elements;
    if (o.kind == ptx::Operand::Kind::address) {
      all = {o.elements.at(0)};
      in.imm = static_cast<std::uint64_t>(o.offset);
    }
    for (const ptx::Operand& one : all) {
      std::uint32_t slot = 0;
      switch (one.kind) {
        case ptx::Operand::Kind::integer: slot = constant(one.value, wide); break;
        case ptx::Operand::Kind::sink:
          slot = form == Form::dst_pred ? 63 : slot_of("scratch");
          break;
        default:
          slot = form == Form::dst_pred || form == Form::src_pred
                     ? static_cast<std::uint32_t>(std::stoi(one.name.substr(2)))
                     : slot_of(one.name);
          if (form == Form::src_pred && one.negated) {
            preds_.at(62) = ~preds_.at(slot);  // as the decoder does
            slot = 62;
          }
      }
      (destination ? destinations : sources).push_back(slot);
      extra_.push_back(slot);
    }
  }

  std::vector<Lanes64> file_;
  std::vector<std::uint32_t> preds_;
  std::vector<std::uint32_t> extra_;
  std::map<std::string, std::uint32_t> slots_;
  std::uint32_t next_ = sizeof(Lanes64);  // 0 is not a valid slot
};

}  // namespace assay::sim::fake

namespace assay::sim {

// Replace those of the interpreter.
void note_absent_sources(Warp&, std::uint32_t) {}
void fail(Warp&, FindingKind kind, std::uint32_t lane, const std::string& text) {
  throw fake::Failed(kind, lane, text);
}

void read_lanes(Warp&, ptx::Space space, const std::uint64_t* address, std::uint32_t mask,
                std::uint32_t bytes, void* data) {
  auto& memory = fake::fake_memory();
  memory.recorded.push_back({false, space, mask, bytes, {address, address + 32}});
  for (std::uint32_t l = 0; l < 32; ++l) {
    if ((mask >> l & 1u) == 0) continue;
    std::memcpy(static_cast<std::byte*>(data) + l * bytes, memory.at(space, address[l], bytes),
                bytes);
  }
}

void write_lanes(Warp&, ptx::Space space, const std::uint64_t* address, std::uint32_t mask,
                 std::uint32_t bytes, const void* data) {
  auto& memory = fake::fake_memory();
  memory.recorded.push_back({true, space, mask, bytes, {address, address + 32}});
  for (std::uint32_t l = 0; l < 32; ++l) {
    if ((mask >> l & 1u) == 0) continue;
    std::memcpy(memory.at(space, address[l], bytes),
                static_cast<const std::byte*>(data) + l * bytes, bytes);
  }
}

}  // namespace assay::sim
