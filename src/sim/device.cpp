#include "sim/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "sim/decode/decode.h"
#include "sim/decode/placement.h"
#include "sim/execution/calls.h"
#include "sim/execution/describe.h"
#include "sim/execution/grid.h"
#include "sim/execution/launch_order.h"
#include "sim/memory/footprint.h"
#include "sim/memory/global_memory.h"
#include "sim/memory/stream_races.h"
#include "sim/occupancy.h"
#include "sim/ptx/link.h"
#include "sim/ptx/parser.h"

namespace assay::sim {
namespace {

constexpr std::uint64_t kMaxGridX = 0x7fffffff, kMaxGridYZ = 65535;
constexpr std::uint32_t kMaxBlockXY = 1024, kMaxBlockZ = 64;
// Cooperative groups keep a grid's barrier here; %envreg1 and 2 hold the address.
constexpr std::uint64_t kWorkspaceBytes = 256;
// Total over all requested kernels; functions count again for each.
constexpr std::uint64_t kMaxDecoded = 4'000'000;
// Runs of bytes accessed by a launch, each with its place; beyond that, neighbours share the place
// of the first.
constexpr std::size_t kMaxPlacedRuns = std::size_t{1} << 16;
constexpr std::size_t kMaxUndefinedStores = 1000;      // places remembered until a read
constexpr std::uint64_t kMaxConstantBytes = 64 << 10;  // per module, as in ptxas

struct LoadedModule {
  ptx::Module ptx;
  VariableTable variables;
};

struct Kernel {
  const LoadedModule* module = nullptr;
  const ptx::Function* entry = nullptr;
  std::unique_ptr<Program> program;  // decoded when first needed
  std::string unsupported;           // why it is only an outline
};

bool valid(const Program& p, const LaunchConfig& c) {
  const Dim3 &g = c.grid, &b = c.block;
  if (g.x == 0 || g.y == 0 || g.z == 0 || b.x == 0 || b.y == 0 || b.z == 0) return false;
  if (g.x > kMaxGridX || g.y > kMaxGridYZ || g.z > kMaxGridYZ) return false;
  if (b.x > kMaxBlockXY || b.y > kMaxBlockXY || b.z > kMaxBlockZ) return false;
  if (b.count() > p.info.max_threads) return false;
  const std::uint32_t(&required)[3] = p.required_threads;
  if (required[0] != 0 && (b.x != required[0] || b.y != std::max(required[1], 1u) ||
                           b.z != std::max(required[2], 1u))) {
    return false;
  }
  return is_cluster(p.info, g, c.cluster) && c.dynamic_shared_bytes <= kMaxSharedOptin &&
         p.shared_bytes(c.dynamic_shared_bytes) <= kMaxSharedOptin;
}

LaunchStatus status_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::misaligned: return LaunchStatus::misaligned_address;
    case FindingKind::trap: return LaunchStatus::illegal_instruction;
    case FindingKind::assertion: return LaunchStatus::assertion;
    case FindingKind::deadlock:
    case FindingKind::warp_sync:
    case FindingKind::instruction_limit: return LaunchStatus::timeout;
    default: return LaunchStatus::illegal_address;
  }
}

// How many blocks may have to be in progress at a time because they wait for one another: for a
// cooperative grid all of them, otherwise as many as memory allows.
std::uint64_t waiting_blocks(const Program& p, const LaunchConfig& c, std::uint64_t resident) {
  if (c.cooperative) return std::max<std::uint64_t>(resident, c.cluster.count());
  constexpr std::uint64_t kMaxBlocks = 256, kMaxBytes = std::uint64_t{1} << 30;
  const Code& entry = p.entry();
  const std::uint64_t warp =
      entry.frame_bytes + std::uint64_t{entry.local_bytes} * kWarpSize + 4096;
  const std::uint64_t warps = (c.block.count() + kWarpSize - 1) / kWarpSize;
  const std::uint64_t block = warps * warp + 2 * p.shared_bytes(c.dynamic_shared_bytes);
  return std::clamp<std::uint64_t>(std::min({resident, kMaxBlocks, kMaxBytes / block}),
                                   c.cluster.count(), kMaxBlocks);
}

// Whether it is the checker's finding that ended the launch.
bool ended_launch(const RawFinding& f, const GridResult& result) {
  return result.failure && result.failure->recorded && f.pc == result.failure->pc &&
         is_fatal(f.kind);
}

const char* verb(TouchKind kind) {
  switch (kind) {
    case TouchKind::read: return "reads";
    case TouchKind::atomic: return "updates";
    case TouchKind::write: return "writes";
  }
  return "accesses";
}

Finding describe(const StreamRace& r) {
  Finding f;
  f.kind = FindingKind::stream_race;
  f.kernel = r.access.name;
  f.where = r.access.place;
  f.text = fmt::format("{} {} byte{} at {:#x} in {}", verb(r.access.kind), r.bytes,
                       r.bytes == 1 ? "" : "s", r.address, r.access.stream);
  f.other = fmt::format("{} {} them in {} at {}, and nothing orders the two", r.other.name,
                        verb(r.other.kind), r.other.stream, r.other.place);
  f.count = r.count;
  return f;
}

std::vector<LineReplays> located(const ReplayTable& replays, const Program& program) {
  std::vector<LineReplays> lines;
  replays.each([&](std::uint32_t pc, std::uint64_t n) { lines.push_back({program.place(pc), n}); });
  return by_line(std::move(lines));
}

std::vector<LineCounts> located(const std::vector<InstructionCounts>& by_pc,
                                const ReplayTable& replays, const Program& program) {
  std::vector<std::uint64_t> replays_at(by_pc.size());
  replays.each([&](std::uint32_t pc, std::uint64_t n) { replays_at[pc] = n; });
  std::vector<LineCounts> lines;
  for (std::uint32_t pc = 0; pc < by_pc.size(); ++pc) {
    if (by_pc[pc].instructions == 0) continue;
    lines.push_back(
        {program.places(pc), by_pc[pc].instructions, by_pc[pc].active_lanes, replays_at[pc]});
  }
  return by_place(lines);
}

// Keeps the findings of a failed launch up to the failure: those of the blocks that ran before it
// in order. Other host threads may have got further.
void keep_until_failure(std::vector<RawFinding>& findings, const GridRun& grid,
                        const GridResult& result) {
  const LaunchOrder order(grid.config, grid.shuffle_seed);
  std::erase_if(findings, [&](const RawFinding& f) {
    if (ended_launch(f, result)) return false;
    std::uint64_t rank = 0;
    while (rank <= result.failed_rank && order(rank) != f.block) ++rank;
    return rank > result.failed_rank;
  });
  for (RawFinding& f : findings) f.count = 1;
}

}  // namespace

struct Device::State {
  explicit State(const DeviceOptions& o) : options(o), memory(o.memory_bytes) {}

  DeviceOptions options;
  GlobalMemory memory;
  std::deque<LoadedModule> modules;  // programs point into them
  std::vector<Kernel> kernels;
  std::map<std::pair<ModuleId, std::string>, KernelId> kernel_ids;
  std::uint64_t workspace = 0;
  std::uint64_t processor_deadline = 0;
  std::uint64_t decoded = 0;  // instructions of all programs
  // Stores of undefined values in all launches, and whether the host read them.
  struct UndefinedStore {
    Finding finding;
    std::uint64_t begin = 0, end = 0;
    bool told = false;  // reported since its last launch
  };
  std::vector<UndefinedStore> undefined_stores;
  std::vector<Finding> read_findings;
  std::optional<StreamRaces> stream_races;  // set once an operation says when it happens

  // The races of an operation, or null if races are not checked.
  StreamRaces* begin(const Operation* operation, std::string name) {
    if (operation == nullptr || !options.check_races) return nullptr;
    if (!stream_races) stream_races.emplace();
    stream_races->begin(*operation, std::move(name));
    return &*stream_races;
  }
  void forget(std::uint64_t address, std::uint64_t bytes) {
    if (stream_races) stream_races->forget(address, bytes);
  }
  struct Span {
    std::uint64_t address = 0, bytes = 0;
    TouchKind kind{};
  };
  // Records copies and fills, and allocations and frees in a stream.
  void happen(const Operation* operation, std::initializer_list<Span> spans) {
    if (StreamRaces* races = operation == nullptr ? nullptr : begin(operation, operation->call)) {
      for (const Span& s : spans)
        races->touch(s.address, s.bytes, s.kind, 0, [](std::uint32_t) { return "the host"; });
      for (const StreamRace& r : races->take()) read_findings.push_back(describe(r));
      return;
    }
    for (const Span& s : spans)
      if (s.kind == TouchKind::write) forget(s.address, s.bytes);
  }
  // Records what the launch that has just ended accessed.
  void happen(const Operation& operation, const GridRun& grid, std::vector<Finding>& findings) {
    Footprint& footprint = memory.footprint();
    StreamRaces& races = *begin(&operation, demangled(grid.program->info.name));
    Footprint::Run last;
    std::size_t runs = 0;
    footprint.take([&](Footprint::Run r) {
      // Every cooperative launch has the same barrier, but no two run at the same time.
      if (workspace != 0 && r.begin - workspace < kWorkspaceBytes) return;
      const bool neighbour = r.begin == last.end && r.kind == last.kind;
      if (++runs > kMaxPlacedRuns && neighbour) r.pc = last.pc;
      races.touch(r.begin, r.end - r.begin, r.kind, r.pc,
                  [&](std::uint32_t pc) { return grid.program->place(pc); });
      last = r;
    });
    for (const StreamRace& r : races.take()) findings.push_back(describe(r));
  }

  void keep(const GridRun& grid, const std::vector<UndefinedStores>& stores) {
    for (const UndefinedStores& s : stores) {
      Finding finding = describe(grid, s.first);
      const auto known = std::ranges::find_if(undefined_stores, [&](const UndefinedStore& k) {
        return k.finding.kernel == finding.kernel && k.finding.where == finding.where;
      });
      if (known == undefined_stores.end()) {
        if (undefined_stores.size() < kMaxUndefinedStores)
          undefined_stores.push_back({std::move(finding), s.begin, s.end});
        continue;
      }
      known->told = false;
      known->begin = std::min(known->begin, s.begin);
      known->end = std::max(known->end, s.end);
    }
  }

  // The host read undefined bytes of the range: reports each store that may have left them, once.
  void tell_undefined(std::uint64_t from, std::uint64_t bytes) {
    bool found = false;
    for (UndefinedStore& s : undefined_stores) {
      if (s.begin >= from + bytes || from >= s.end) continue;
      found = true;
      if (!std::exchange(s.told, true)) read_findings.push_back(s.finding);
    }
    if (found) return;
    Finding finding;
    finding.kind = FindingKind::uninitialised;
    finding.kernel = finding.where = "the host";
    finding.text =
        fmt::format("reads bytes at {:#x} to {:#x} that nothing has written", from, from + bytes);
    read_findings.push_back(finding);
  }

  // For an unsupported kernel, its outline.
  const Program& program(KernelId id) {
    Kernel& k = kernels.at(id);
    if (k.program) return *k.program;
    std::unique_ptr<Program> program;
    try {
      program = build_program(k.module->ptx, k.module->variables, *k.entry);
    } catch (const Unsupported& u) {
      k.unsupported = u.what();
      k.program = outline_program(k.module->ptx, *k.entry);
      return *k.program;
    }
    // ptxas spills registers beyond a thread's limit into local memory.
    constexpr std::uint64_t kRegisters = 255;
    if (4 * (program->info.registers -
             std::min<std::uint64_t>(program->info.registers, kRegisters)) >
        kMaxLocalBytes) {
      throw TooLarge(fmt::format("kernel {}: {} registers a thread do not fit into local memory",
                                 k.entry->name, program->info.registers));
    }
    decoded += program->instructions;
    if (decoded > kMaxDecoded) {
      throw TooLarge(fmt::format("the kernels have more than {} instructions", kMaxDecoded));
    }
    k.program = std::move(program);
    return *k.program;
  }

  void place(LoadedModule& m) {
    std::uint64_t constants = 0;
    for (const ptx::Variable& v : m.ptx.variables) {
      if (v.space == ptx::Space::constant) constants += std::min(v.bytes, kMaxConstantBytes + 1);
    }
    if (constants > kMaxConstantBytes) {
      throw TooLarge("a module with more than 64 KiB of constants, which no GPU takes");
    }
    for (const ptx::Variable& v : m.ptx.variables) {
      const bool constant = v.space == ptx::Space::constant;
      if ((v.space != ptx::Space::global && !constant) || v.is_extern) continue;
      const std::uint64_t bytes = std::max<std::uint64_t>(v.bytes, 1);
      const auto address = memory.allocate(bytes, v.name, constant, v.align);
      if (!address) {
        throw TooLarge(fmt::format("{}: no room for its {} bytes", v.name, v.bytes));
      }
      m.variables[v.name] = {*address, v.bytes};
      memory.mark_initialised(*address, bytes);
      std::byte* const data = memory.data(*address, bytes);
      std::memset(data, 0, bytes);
      if (!v.initial.empty()) std::memcpy(data, v.initial.data(), v.initial.size());
    }
    SymbolTable functions;
    add_functions(m.ptx, functions);
    for (const ptx::Variable& v : m.ptx.variables) {
      for (const ptx::Relocation& r : v.relocations) relocate(m, functions, v, r);
    }
  }

  ModuleId add(ptx::Module module) {
    modules.push_back({std::move(module), {}});
    try {
      place(modules.back());
    } catch (...) {
      for (const auto& [name, v] : modules.back().variables) memory.free(v.address);
      modules.pop_back();
      throw;
    }
    return static_cast<ModuleId>(modules.size() - 1);
  }

  void relocate(const LoadedModule& m, const SymbolTable& functions, const ptx::Variable& v,
                const ptx::Relocation& r) {
    std::uint64_t value = 0;
    if (const auto variable = m.variables.find(r.symbol); variable != m.variables.end()) {
      value = variable->second.address;
    } else if (const auto f = functions.find(r.symbol); f != functions.end()) {
      value = f->second.value;
    } else {
      throw Unsupported(v.name + ": its initial value holds the address of " + r.symbol +
                        ", which is not in this module");
    }
    value += static_cast<std::uint64_t>(r.addend);
    value >>= r.shift;
    std::byte* const at = memory.data(m.variables.at(v.name).address + r.at, r.bytes);
    std::memcpy(at, &value, std::min<std::size_t>(r.bytes, sizeof value));
  }

  std::uint64_t fresh_workspace() {
    if (workspace == 0) {
      workspace = memory.allocate(kWorkspaceBytes, "grid barrier").value_or(0);
      if (workspace == 0) return 0;
    }
    std::memset(memory.data(workspace, kWorkspaceBytes), 0, kWorkspaceBytes);
    memory.mark_initialised(workspace, kWorkspaceBytes);
    return workspace;
  }
};

Device::Device(const DeviceOptions& options) : state_(std::make_unique<State>(options)) {}
Device::~Device() = default;
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;

ModuleId Device::load_module(std::string_view ptx) { return state_->add(ptx::parse(ptx)); }

ModuleId Device::load_linked(std::span<const std::string_view> ptx) {
  std::vector<ptx::Module> modules;
  for (const std::string_view text : ptx) modules.push_back(ptx::parse(text));
  try {
    return state_->add(ptx::link(std::move(modules)));
  } catch (const ptx::LinkError& e) {
    throw Unsupported(fmt::format("linking the program's modules: {}", e.what()));
  }
}

KernelId Device::kernel(ModuleId module, std::string_view name) {
  const auto key = std::make_pair(module, std::string(name));
  if (const auto known = state_->kernel_ids.find(key); known != state_->kernel_ids.end()) {
    return known->second;
  }
  const LoadedModule& m = state_->modules.at(module);
  for (const ptx::Function& f : m.ptx.functions) {
    if (!f.entry || !f.defined || f.name != name) continue;
    const auto id = static_cast<KernelId>(state_->kernels.size());
    state_->kernels.push_back({&m, &f, nullptr, {}});
    state_->kernel_ids.emplace(key, id);
    return id;
  }
  throw std::out_of_range("the module has no kernel " + std::string(name));
}

const KernelInfo& Device::info(KernelId kernel) const { return state_->program(kernel).info; }

VariableInfo Device::variable(ModuleId module, std::string_view name) const {
  const VariableTable& variables = state_->modules.at(module).variables;
  const auto found = variables.find(name);
  if (found == variables.end()) {
    throw std::out_of_range("the module has no variable " + std::string(name));
  }
  return found->second;
}

std::uint32_t Device::resident_blocks(KernelId kernel, std::uint64_t threads,
                                      std::uint64_t dynamic_shared_bytes) const {
  const Program& p = state_->program(kernel);
  // Dynamic shared memory starts where its alignment allows.
  const std::uint64_t after_static =
      p.shared_bytes(dynamic_shared_bytes) - p.info.static_shared_bytes;
  return blocks_per_multiprocessor(p.info, threads, after_static);
}

std::uint64_t Device::allocate(std::uint64_t bytes) {
  return bytes == 0 ? 0 : state_->memory.allocate(bytes).value_or(0);
}

// The next owner of the range must not inherit its history.
bool Device::free(std::uint64_t address) {
  const VariableInfo a = allocation(address);
  if (!state_->memory.free(address)) return false;
  state_->forget(a.address, a.bytes);
  return true;
}

bool Device::write(std::uint64_t to, std::span<const std::byte> from, const Operation* operation) {
  if (from.empty()) return true;
  std::byte* const data = state_->memory.data(to, from.size());
  if (data == nullptr) return false;
  std::memcpy(data, from.data(), from.size());
  state_->memory.mark_initialised(to, from.size());
  state_->happen(operation, {{to, from.size(), TouchKind::write}});
  return true;
}

std::vector<Finding> Device::take_findings() { return std::exchange(state_->read_findings, {}); }

bool Device::read(std::span<std::byte> to, std::uint64_t from, bool strictly,
                  const Operation* operation) {
  if (to.empty()) return true;
  const std::byte* const data = state_->memory.data(from, to.size());
  if (data == nullptr) return false;
  std::memcpy(to.data(), data, to.size());
  state_->happen(operation, {{from, to.size(), TouchKind::read}});
  if (state_->options.check_uninitialised &&
      state_->memory.holds_undefined(from, to.size(), strictly)) {
    state_->tell_undefined(from, to.size());
  }
  return true;
}

bool Device::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
                  const Operation* operation) {
  if (bytes == 0) return true;
  std::byte* const target = state_->memory.data(to, bytes);
  const std::byte* const source = state_->memory.data(from, bytes);
  if (target == nullptr || source == nullptr) return false;
  std::memmove(target, source, bytes);
  state_->memory.copy_initialised(to, from, bytes);
  state_->happen(operation, {{from, bytes, TouchKind::read}, {to, bytes, TouchKind::write}});
  return true;
}

bool Device::fill(std::uint64_t to, std::byte value, std::uint64_t bytes,
                  const Operation* operation) {
  if (bytes == 0) return true;
  std::byte* const data = state_->memory.data(to, bytes);
  if (data == nullptr) return false;
  std::memset(data, static_cast<int>(value), bytes);
  state_->memory.mark_initialised(to, bytes);
  state_->happen(operation, {{to, bytes, TouchKind::write}});
  return true;
}

void Device::touch(std::uint64_t address, const Operation& operation) {
  const VariableInfo a = allocation(address);
  state_->happen(&operation, {{a.address, a.bytes, TouchKind::write}});
}

std::uint64_t Device::live_bytes() const { return state_->memory.live_bytes(); }
std::uint64_t Device::high_water() const { return state_->memory.high_water(); }
void Device::reset_high_water() { state_->memory.reset_high_water(); }
void Device::set_shuffle_seed(std::uint64_t seed) { state_->options.shuffle_seed = seed; }
void Device::set_processor_deadline(std::uint64_t ns) { state_->processor_deadline = ns; }
void Device::set_instruction_limit(std::uint64_t n) { state_->options.instruction_limit = n; }
std::uint64_t Device::capacity() const { return state_->memory.capacity(); }

VariableInfo Device::allocation(std::uint64_t address) const {
  const Allocation* a = state_->memory.find(address);
  return a == nullptr || !a->live ? VariableInfo{} : VariableInfo{a->address, a->bytes};
}

LaunchResult Device::launch(KernelId kernel, const LaunchConfig& given,
                            std::span<const std::byte> params, const Operation* operation) {
  const DeviceOptions& options = state_->options;
  if (!options.check_races) operation = nullptr;
  const Program& program = state_->program(kernel);
  if (const std::string& why = state_->kernels.at(kernel).unsupported; !why.empty()) {
    throw Unsupported(why);
  }
  LaunchConfig config = given;
  config.cluster = cluster_of(program.info, given);
  LaunchResult out;
  if (!valid(program, config) || params.size() < program.info.params_bytes) {
    out.status = LaunchStatus::invalid_configuration;
    return out;
  }
  const std::uint64_t blocks = config.grid.count();
  const std::uint64_t resident =
      std::uint64_t{kMultiprocessors} *
      resident_blocks(kernel, config.block.count(), config.dynamic_shared_bytes);
  if (config.cooperative && blocks > resident) {
    out.status = LaunchStatus::too_large_cooperative;
    return out;
  }

  // A launch that threw may have left an unfinished footprint.
  if (operation != nullptr) state_->memory.footprint().take([](const Footprint::Run&) {});

  GridRun grid;
  grid.program = &program;
  grid.config = config;
  grid.params = params;
  grid.local_bytes = program.entry().local_bytes;
  grid.memory = &state_->memory;
  grid.workspace = config.cooperative ? state_->fresh_workspace() : 0;
  grid.instruction_limit = options.instruction_limit;
  grid.max_output_bytes = options.max_output_bytes;
  grid.shuffle_seed = options.shuffle_seed;
  grid.processor_deadline = state_->processor_deadline;
  grid.clusters = program.uses_cluster || config.cluster.count() > 1;
  grid.limit_by_block = !program.ordered && !config.cooperative && !grid.clusters;
  grid.parallel = options.threads > 1 && blocks > 1 && grid.limit_by_block;
  grid.count_by_pc = options.count_lines;
  const bool locate_replays = options.locate_replays || options.count_lines;
  std::optional<ReplayTable> replays;
  if (options.check_races && blocks > kMaxCheckedBlocks) {
    throw Unsupported(
        fmt::format("a grid of {} blocks, of which races are not looked for beyond {}", blocks,
                    kMaxCheckedBlocks));
  }
  const CheckOptions checks{options.check_races, options.check_uninitialised, grid.parallel,
                            operation != nullptr ? &state_->memory.footprint() : nullptr,
                            locate_replays ? &replays.emplace(program.instructions) : nullptr};
  LaunchChecker checker(state_->memory, blocks, checks);
  grid.checker = &checker;

  const auto threads = static_cast<unsigned>(std::min<std::uint64_t>(options.threads, blocks));
  GridResult result = run_grid(grid, threads, waiting_blocks(program, config, resident));
  out.counters = result.counters;
  out.local_bytes = grid.local_bytes;
  out.output = std::move(result.output);
  state_->keep(grid, checker.undefined_stores());
  std::vector<RawFinding> findings = checker.findings();
  std::erase_if(findings, [&](const RawFinding& f) { return is_excused(grid, f); });
  if (result.failure) {
    keep_until_failure(findings, grid, result);
    out.status = status_of(result.failure->kind);
    if (!result.failure->recorded) out.findings.push_back(describe(grid, *result.failure));
  }
  for (const RawFinding& f : findings) {
    if (is_note(f.kind)) {
      out.notes.push_back(describe(grid, f));
      continue;
    }
    out.findings.push_back(describe(grid, f));
    // The finding that ended the launch comes first.
    if (ended_launch(f, result)) {
      out.status = status_of(f.kind);
      std::rotate(out.findings.begin(), out.findings.end() - 1, out.findings.end());
    }
  }
  if (operation != nullptr) state_->happen(*operation, grid, out.findings);
  if (replays && !result.failure) {
    if (options.locate_replays) out.replays = located(*replays, program);
    if (options.count_lines) out.lines = located(result.by_pc, *replays, program);
  }
  return out;
}

}  // namespace assay::sim
