// Runs single instructions on a warp whose register file is an array.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "sim/execution/warp.h"
#include "sim/math/reference.h"
#include "sim/operations/alu_values.h"
#include "sim/operations/instruction_set.h"

namespace assay::sim {

// Parses "setp.lt.and.f32 p|q, a, b, !c" as a parser would give it. A number is a literal;
// everything else is a register.
inline ptx::Instruction instruction(const std::string& text) {
  ptx::Instruction out;
  std::istringstream in(text);
  std::string name, operand;
  in >> name;
  std::istringstream words(name);
  for (std::string word; std::getline(words, word, '.');) {
    if (out.opcode.empty()) {
      out.opcode = word;
    } else {
      out.modifiers.push_back(word);
    }
  }
  const auto add = [&](std::string s) {
    std::erase(s, ' ');
    ptx::Operand o;
    o.kind = ptx::Operand::Kind::reg;
    if (s[0] == '!') {
      o.negated = true;
      s.erase(0, 1);
    }
    if (s == "_") {
      o.kind = ptx::Operand::Kind::sink;
    } else if (std::isdigit(static_cast<unsigned char>(s[0]))) {
      o.kind = ptx::Operand::Kind::integer;
      o.value = std::stoull(s, nullptr, 0);
    } else {
      o.name = "%" + s;
    }
    out.operands.push_back(o);
  };
  while (std::getline(in, operand, ',')) {
    const std::size_t bar = operand.find('|');
    if (bar != std::string::npos) {
      out.paired = true;
      add(operand.substr(0, bar));
      operand.erase(0, bar + 1);
    }
    add(operand);
  }
  return out;
}

// One instruction with its operands in separate slots.
class Alu {
 public:
  static constexpr std::size_t kSlotBytes = sizeof(Lanes64);

  explicit Alu(const std::string& text) : text_(text) {
    const ptx::Instruction parsed = instruction(text);
    const std::optional<Selection> found = select_alu(parsed);
    if (!found) throw std::logic_error("no arithmetic: " + text);
    selection_ = *found;
    instr_.run = selection_.run;
    instr_.imm = selection_.imm;
    std::size_t sources = 0;
    for (std::size_t i = 0; i < selection_.operands.size(); ++i) {
      const auto slot = static_cast<std::uint32_t>(i);
      switch (selection_.operands[i]) {
        case OperandForm::dst32:
        case OperandForm::dst64: instr_.d = slot * kSlotBytes; break;
        case OperandForm::dst_pred: (i == 0 ? instr_.d : instr_.e) = slot; break;
        case OperandForm::immediate: instr_.imm = parsed.operands[i].value; break;
        default: {
          std::uint32_t* const places[] = {&instr_.a, &instr_.b, &instr_.c, &instr_.e};
          const bool pred = selection_.operands[i] == OperandForm::src_pred;
          *places[sources] = pred ? slot : static_cast<std::uint32_t>(slot * kSlotBytes);
          ++sources;
          first_source_ = first_source_ == 0 ? slot : first_source_;
        }
      }
    }
    regs_ = std::make_unique<Slots>();
    warp_.regs = reinterpret_cast<std::byte*>(regs_->data());
    warp_.preds = preds_.data();
    warp_.live = ~0u;
    activate(~0u);
  }

  const Selection& selection() const { return selection_; }
  const std::string& text() const { return text_; }
  Warp& warp() { return warp_; }

  // Operands by index in the instruction's text.
  Lanes32& r32(std::size_t operand) {
    return warp_.r32(static_cast<std::uint32_t>(operand * kSlotBytes));
  }
  Lanes64& r64(std::size_t operand) {
    return warp_.r64(static_cast<std::uint32_t>(operand * kSlotBytes));
  }
  std::uint32_t& pred(std::size_t operand) { return preds_[operand]; }
  std::size_t first_source() const { return first_source_; }

  // Lets a source share the destination's slot.
  void alias(std::uint32_t offset_bytes = 0) { instr_.d = instr_.a + offset_bytes; }
  std::uint32_t destination() const { return instr_.d; }

  template <class T>
  void set(std::size_t operand, int lane, T value) {
    if constexpr (std::is_same_v<T, bool>) {
      pred(operand) = (pred(operand) & ~(1u << lane)) | (value ? 1u << lane : 0);
    } else if constexpr (sizeof(LaneWord<T>) == 8) {
      r64(operand).v[lane] = to_lane(value);
    } else {
      r32(operand).v[lane] = to_lane(value);
    }
  }
  template <class T>
  LaneWord<T> get(std::size_t operand, int lane) {
    if constexpr (sizeof(LaneWord<T>) == 8) {
      return r64(operand).v[lane];
    } else {
      return r32(operand).v[lane];
    }
  }

  void activate(std::uint32_t mask) {
    warp_.active = mask;
    for (int l = 0; l < 32; ++l) warp_.lane_mask.v[l] = (mask >> l & 1) != 0 ? ~0u : 0;
  }
  void run() { instr_.run(warp_, instr_); }
  const Instr& instr() const { return instr_; }

 private:
  using Slots = std::array<Lanes64, 8>;
  std::string text_;
  Selection selection_;
  Instr instr_;
  Warp warp_;
  std::unique_ptr<Slots> regs_;
  std::array<std::uint32_t, 16> preds_{};
  std::size_t first_source_ = 0;
};

namespace detail {

template <class F>
struct Function : Function<decltype(&F::operator())> {};
template <class F, class R, class... A>
struct Function<R (F::*)(A...) const> {
  template <std::size_t... I>
  static void check(const std::string& text, const F& reference, int batches,
                    std::index_sequence<I...>) {
    SCOPED_TRACE(text);
    Alu alu(text);
    ASSERT_EQ(alu.selection().operands.size(), 1 + sizeof...(A) + immediates(alu));
    constexpr bool kPredicate = std::is_same_v<R, bool>;
    ASSERT_EQ(alu.selection().operands[0], kPredicate                 ? OperandForm::dst_pred
                                           : sizeof(LaneWord<R>) == 8 ? OperandForm::dst64
                                                                      : OperandForm::dst32);
    reference::Operands operands(0x5eed);
    std::array<std::tuple<A...>, 32> lanes;
    for (int batch = 0; batch < batches; ++batch) {
      // All lanes and some lanes, in turn.
      const std::uint32_t mask =
          batch % 2 == 0 ? ~0u : static_cast<std::uint32_t>(operands.bits()) | 1u << batch % 32;
      alu.activate(mask);
      const std::uint32_t before = 0xdeadbeef;
      alu.pred(0) = before;
      for (int l = 0; l < 32; ++l) {
        lanes[l] = {operands.next<A>()...};
        (alu.set(1 + I, l, std::get<I>(lanes[l])), ...);
        // Registers of 8- and 16-bit values hold garbage above, which reading must cut off.
        if constexpr (sizeof...(A) > 0) soil<A...>(alu, l, operands);
        if constexpr (!kPredicate) alu.r64(0).v[l] = kBefore + static_cast<unsigned>(l);
        if constexpr (!kPredicate && sizeof(LaneWord<R>) == 4) alu.r32(0).v[l] = 0xabcd0000u + l;
      }
      const Lanes64 untouched = alu.r64(0);
      alu.run();
      for (int l = 0; l < 32; ++l) {
        const bool active = (mask >> l & 1) != 0;
        if constexpr (kPredicate) {
          const bool want = active ? static_cast<bool>(reference(std::get<I>(lanes[l])...))
                                   : (before >> l & 1) != 0;
          ASSERT_EQ((alu.pred(0) >> l & 1) != 0, want)
              << describe(lanes[l], std::index_sequence<I...>()) << (active ? "" : ", inactive");
        } else {
          LaneWord<R> old;
          std::memcpy(&old, reinterpret_cast<const std::byte*>(&untouched) + l * sizeof old,
                      sizeof old);
          const LaneWord<R> want = active ? to_lane<R>(reference(std::get<I>(lanes[l])...)) : old;
          ASSERT_EQ(alu.template get<R>(0, l), want)
              << std::hex << "got 0x" << alu.template get<R>(0, l) << ", want 0x" << want << " of "
              << describe(lanes[l], std::index_sequence<I...>()) << (active ? "" : ", inactive");
        }
      }
    }
  }

  static std::size_t immediates(const Alu& alu) {
    std::size_t n = 0;
    for (const OperandForm form : alu.selection().operands) n += form == OperandForm::immediate;
    return n;
  }

  template <class... Types>
  static void soil(Alu& alu, int lane, reference::Operands& operands) {
    std::size_t operand = 1;
    const auto one = [&]<class T>(T) {
      constexpr bool kNarrow = (std::is_integral_v<T> && sizeof(T) < 4) || is_half<T>;
      if constexpr (kNarrow && !std::is_same_v<T, bool>) {
        constexpr int kBits = is_half<T> ? 16 : sizeof(T) * 8;
        if (operands.coin()) {
          alu.r32(operand).v[lane] |= static_cast<std::uint32_t>(operands.bits()) << kBits;
        }
      }
      ++operand;
    };
    (one(Types{}), ...);
  }

  template <std::size_t... I>
  static std::string describe(const std::tuple<A...>& values, std::index_sequence<I...>) {
    std::ostringstream out;
    const auto one = [&](auto v) {
      if constexpr (std::is_same_v<decltype(v), bool>) {
        out << v << ' ';
      } else {
        out << "0x" << std::hex << +to_lane(v) << ' ';
      }
    };
    (one(std::get<I>(values)), ...);
    return out.str();
  }

  static constexpr std::uint64_t kBefore = 0xabcd'ef01'2345'0000;
};

}  // namespace detail

// Compares an instruction of one destination with a function of its register operands, with full
// and partial masks. Floats and doubles are compared by their bits.
template <class F>
void check(const std::string& text, const F& reference, int batches = 400) {
  using Function = detail::Function<F>;
  []<class R, class... A>(R (F::*)(A...) const, const std::string& t, const F& f, int n) {
    Function::check(t, f, n, std::index_sequence_for<A...>());
  }(&F::operator(), text, reference, batches);
}

inline void expect_unsupported(const std::string& text) {
  SCOPED_TRACE(text);
  try {
    select_alu(instruction(text));
    FAIL() << "is supported";
  } catch (const Unsupported& e) {
    const std::string name = text.substr(0, text.find(' '));
    EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
  }
}

}  // namespace assay::sim
