#include "sim/execution/describe.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "sim/address_map.h"

namespace assay::sim {
namespace {

std::string dims(const std::uint32_t (&v)[3]) {
  return fmt::format("({},{},{})", v[0], v[1], v[2]);
}

void split(std::uint64_t linear, const Dim3& size, std::uint32_t (&out)[3]) {
  out[0] = static_cast<std::uint32_t>(linear % size.x);
  out[1] = static_cast<std::uint32_t>(linear / size.x % size.y);
  out[2] = static_cast<std::uint32_t>(linear / size.x / size.y);
}

ThreadId thread_id(const GridRun& grid, std::uint64_t block, std::uint32_t thread) {
  ThreadId id;
  split(block, grid.config.grid, id.block);
  split(thread, grid.config.block, id.thread);
  return id;
}

const char* verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::load:
    case AccessKind::atomic_load: return "reads";
    case AccessKind::store:
    case AccessKind::atomic_store: return "writes";
    default: return "updates";
  }
}

std::string bytes_text(std::uint64_t n) { return fmt::format("{} byte{}", n, n == 1 ? "" : "s"); }

bool is_local(const GridRun& grid, const RawFinding& f) {
  const std::string& text = grid.program->info_of(f.pc).text;
  return !f.shared && text.find(".local") != std::string::npos;
}

std::string target(const GridRun& grid, const RawFinding& f) {
  if (f.shared && f.owner != f.block) {
    return fmt::format("offset {} of block {}'s shared memory", f.address,
                       dims(thread_id(grid, f.owner, 0).block));
  }
  if (f.shared) return fmt::format("offset {} of shared memory", f.address);
  if (is_local(grid, f)) return fmt::format("offset {} of local memory", f.address);
  return fmt::format("{:#x}", f.address);
}

std::string allocation_text(const Allocation& a) {
  return a.name.empty() ? fmt::format("the {}-byte allocation at {:#x}", a.bytes, a.address)
                        : fmt::format("the variable {} ({} bytes)", demangled(a.name), a.bytes);
}

// Where an address outside all allocations lies.
std::string position(const GridRun& grid, const RawFinding& f) {
  if (f.shared) {
    return fmt::format("of which the block has {}", bytes_text(grid.shared_bytes()));
  }
  if (is_local(grid, f)) return "outside of the thread's variables";
  if (f.address < 0x10000) return "a null pointer or nearly so";
  if (!kGlobalRange.contains(f.address)) return "where there is no memory";
  const Allocation* a = grid.memory->nearest(f.address);
  if (a == nullptr) return "where nothing is allocated";
  const std::uint64_t end = a->address + a->bytes;
  if (f.address >= end) {
    return fmt::format("{} past the end of {}", bytes_text(f.address - end), allocation_text(*a));
  }
  if (f.address < a->address) {
    return fmt::format("{} before {}", bytes_text(a->address - f.address), allocation_text(*a));
  }
  return fmt::format("of which the last {} lie past the end of {}",
                     bytes_text(f.address + f.bytes - end), allocation_text(*a));
}

std::string lanes_text(std::uint64_t lanes) {
  std::string out;
  for (unsigned l = 0; l < kWarpSize; ++l) {
    if (((lanes >> l) & 1u) != 0) out += (out.empty() ? "" : ", ") + std::to_string(l);
  }
  return out;
}

// Worded so that a value follows.
const char* deciding(UndefinedUse use) {
  switch (use) {
    case UndefinedUse::branch: return "decides where to go on by";
    case UndefinedUse::address: return "accesses memory at an address made of";
    case UndefinedUse::operand: return "updates memory by";
    case UndefinedUse::barrier: return "waits at a barrier with";
    case UndefinedUse::printed: return "prints";
    default: return "uses";
  }
}

std::string sentence(const GridRun& grid, const RawFinding& f) {
  const Program& program = *grid.program;
  std::string access =
      fmt::format("{} {} at {}", verb(f.access), bytes_text(f.bytes), target(grid, f));
  switch (f.kind) {
    case FindingKind::out_of_bounds: return access + ", " + position(grid, f);
    case FindingKind::misaligned:
      return fmt::format("{}, which is not a multiple of {}", access, f.bytes);
    case FindingKind::use_after_free: {
      const Allocation* a = grid.memory->find(f.address);
      return access + (a == nullptr ? ", in memory that was freed"
                                    : fmt::format(", in {}, which was freed", allocation_text(*a)));
    }
    case FindingKind::uninitialised:
      if (f.use == UndefinedUse::read) return access + ", which nothing has written";
      if (f.use == UndefinedUse::stored) {
        return access + " from memory that nothing has written, and the host reads them";
      }
      return fmt::format("{} a value that nothing has written", deciding(f.use));
    case FindingKind::read_only: {
      const Allocation* a = grid.memory->find(f.address);
      return access + (a == nullptr ? ", in constant memory"
                                    : ", in " + allocation_text(*a) + ", a constant");
    }
    case FindingKind::shared_race:
      if (f.cluster == ClusterRaces::Fault::ended) {
        return fmt::format("{} the shared memory of block {}, which may have ended by then",
                           verb(f.access), dims(thread_id(grid, f.owner, 0).block));
      }
      return access;
    case FindingKind::global_race:
    case FindingKind::equal_stores: return access;
    case FindingKind::barrier_divergence:
      return "waits at a barrier that not all threads of its warp reach together";
    case FindingKind::warp_sync:
      if (f.address != 0) {
        return fmt::format("waits at {} for lanes {} of its warp, which never come",
                           program.info_of(f.pc).text, lanes_text(f.address));
      }
      return fmt::format("executes {} without being in its member mask",
                         program.info_of(f.pc).text);
    default: return to_string(f.kind);
  }
}

bool is_volatile(const GridRun& grid, std::uint32_t pc) {
  return pc < kLastPlace && grid.program->info_of(pc).text.find(".volatile") != std::string::npos;
}

bool in_one_warp(const RawFinding& f) { return f.thread / kWarpSize == f.other_thread / kWarpSize; }

// The other party to a race or a divergent barrier.
std::string other_party(const GridRun& grid, const RawFinding& f) {
  if (f.kind == FindingKind::uninitialised && f.use == UndefinedUse::stored) return {};
  if (f.cluster == ClusterRaces::Fault::unborn)
    return "nothing says that that block has begun: a barrier of the cluster must come first";
  if (f.cluster == ClusterRaces::Fault::ended)
    return "a barrier of the cluster must lie between the access and the block's end";
  const ThreadId id = thread_id(grid, f.other_block, f.other_thread);
  const std::string place = grid.program->place(f.other_pc);
  switch (f.kind) {
    case FindingKind::shared_race:
      if (f.cluster) {
        return fmt::format(
            "block {} (thread {}) {} it at {}, and no barrier of the cluster lies "
            "between",
            dims(id.block), dims(id.thread), verb(f.other_access), place);
      }
      if (in_one_warp(f) && is_volatile(grid, f.pc) && is_volatile(grid, f.other_pc)) {
        return fmt::format(
            "thread {} of the same warp {} it at {}, and nothing orders the two: since sm_70 the "
            "lanes of a warp do not run in step, volatile or not, and need __syncwarp()",
            dims(id.thread), verb(f.other_access), place);
      }
      return fmt::format("thread {} of the block {} it at {}, and no barrier lies between",
                         dims(id.thread), verb(f.other_access), place);
    case FindingKind::global_race:
      return fmt::format("block {} (thread {}) {} it at {}, and nothing orders the two",
                         dims(id.block), dims(id.thread), verb(f.other_access), place);
    case FindingKind::equal_stores: {
      const std::string block =
          f.shared && !f.cluster ? "" : fmt::format("block {}, ", dims(id.block));
      return fmt::format("{}thread {} writes the same there at {}, in no order", block,
                         dims(id.thread), place);
    }
    case FindingKind::uninitialised: {
      if (f.use == UndefinedUse::read) return {};
      if (f.bytes == 0) {
        return fmt::format("such a value came last from a lane that takes no part, by {} at {}",
                           grid.program->info_of(f.other_pc).text, place);
      }
      RawFinding read = f;
      read.pc = f.other_pc;
      return fmt::format("such a value was read last at {}: {} at {}", place, bytes_text(f.bytes),
                         target(grid, read));
    }
    case FindingKind::barrier_divergence:
      return fmt::format("thread {} waits at {}", dims(id.thread), place);
    default: return {};
  }
}

}  // namespace

bool is_excused(const GridRun& grid, const RawFinding& f) {
  return f.kind == FindingKind::shared_race && !f.cluster && !in_one_warp(f) &&
         is_volatile(grid, f.pc) && is_volatile(grid, f.other_pc);
}

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;  // "c" would be demangled as the type char
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || !text) return name;
  std::string readable = text.get();
  constexpr std::string_view kNobody = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = readable.find(kNobody, at)) != std::string::npos;) {
    readable.erase(at, kNobody.size());
  }
  return readable;
}

Finding describe(const GridRun& grid, const RawFinding& f) {
  Finding out;
  out.kind = f.kind;
  out.kernel = demangled(grid.program->info.name);
  out.thread = thread_id(grid, f.block, f.thread);
  out.where = grid.program->place(f.pc);
  out.text = sentence(grid, f);
  out.other = other_party(grid, f);
  out.count = f.count;
  return out;
}

Finding describe(const GridRun& grid, const LaunchFailure& f) {
  Finding out;
  out.kind = f.kind;
  out.kernel = demangled(grid.program->info.name);
  out.thread = thread_id(grid, f.block, f.thread);
  out.where = grid.program->place(f.pc);
  out.text = f.text;
  return out;
}

}  // namespace assay::sim
