// The functions of the CUDA device runtime that nvcc's PTX calls: vprintf, __assertfail. Operands
// are .param rows of the caller, whose offsets are in Code::extra.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "sim/execution/definedness.h"
#include "sim/execution/memory_path.h"
#include "sim/operations/flow_selection.h"
#include "sim/operations/printf_format.h"

namespace assay::sim {
namespace {

constexpr std::size_t kMaxString = 1 << 16;

std::uint64_t row64(Warp& w, std::uint32_t rows, unsigned lane) {
  return w.r32(rows).v[lane] | (std::uint64_t{w.r32(rows + sizeof(Lanes32)).v[lane]} << 32);
}

// Reads one byte at a generic address, without any checks; false if nothing is there.
bool peek(WarpRun& w, unsigned lane, std::uint64_t address, std::byte& out) {
  const std::byte* from = nullptr;
  if (kLocalRange.contains(address)) {
    const std::uint64_t offset = address - kLocalRange.begin;
    if (offset < w.local_bytes) from = local_word(w, offset, lane);
  } else if (kSharedRange.contains(address)) {
    const std::uint64_t offset = address - kSharedRange.begin;
    if (offset < w.block->shared.size()) from = w.block->shared.data() + offset;
  } else {
    from = w.block->grid->memory->data(address, 1);
  }
  if (from == nullptr) return false;
  out = *from;
  return true;
}

std::string read_string(WarpRun& w, unsigned lane, std::uint64_t address) {
  if (address == 0) return "(null)";
  std::string text;
  for (std::byte c{}; text.size() < kMaxString; ++address) {
    if (!peek(w, lane, address, c)) {
      fail(w, FindingKind::out_of_bounds, lane,
           fmt::format("reads a string at {:#x}, outside of all memory", address));
    }
    if (c == std::byte{0}) break;
    text += static_cast<char>(c);
  }
  return text;
}

std::uint64_t read_argument(WarpRun& w, unsigned lane, std::uint64_t address, unsigned bytes) {
  std::uint64_t value = 0;
  const bool local = kLocalRange.contains(address);
  if (local && local_undefined_bytes(w, address - kLocalRange.begin, lane, bytes) != 0) {
    report_undefined(w, UndefinedUse::printed, 1u << lane);
  }
  for (unsigned b = 0; b < bytes; ++b) {
    std::byte byte{};
    if (!peek(w, lane, address + b, byte)) {
      fail(w, FindingKind::out_of_bounds, lane, "printf's format asks for more than its arguments");
    }
    value |= static_cast<std::uint64_t>(byte) << (8 * b);
  }
  return value;
}

}  // namespace

// extra: rows of the format, of a pointer to the arguments, of the result
void call_vprintf(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const std::uint32_t* rows = w.extra + in.aux;
  std::string& output = w.block->output;
  for (std::uint32_t rest = w.active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::string format = read_string(w, lane, row64(w, rows[0], lane));
    const std::uint64_t arguments = row64(w, rows[1], lane);
    const PrintfResult result = format_printf(
        format, {[&](std::uint64_t offset, unsigned bytes) {
                   return read_argument(w, lane, arguments + offset, bytes);
                 },
                 [&](std::uint64_t address) { return read_string(w, lane, address); }});
    w.r32(rows[2]).v[lane] = result.arguments;
    // The format's address and the arguments go to a buffer in global memory.
    const std::uint64_t bytes = 8 + 8 * std::uint64_t{result.arguments};
    w.block->counters->global_store_bytes += bytes;
    w.block->counters->global_store_sectors += (bytes + kSectorBytes - 1) / kSectorBytes;
    const std::size_t room = w.block->grid->max_output_bytes - output.size();
    output.append(result.text, 0, room);
  }
}

// extra: rows of the message, the file, the line and the function
void call_assertfail(Warp& warp, const Instr& in) {
  auto& w = run_of(warp);
  const std::uint32_t* rows = w.extra + in.aux;
  const auto lane = static_cast<unsigned>(std::countr_zero(w.active));
  const auto string = [&](unsigned i) { return read_string(w, lane, row64(w, rows[i], lane)); };
  fail(w, FindingKind::assertion, lane,
       fmt::format("assertion `{}` failed in {} ({}:{})", string(0), string(3), string(1),
                   w.r32(rows[2]).v[lane]));
}

}  // namespace assay::sim
