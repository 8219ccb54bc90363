#include "device/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "device/code_registers.h"
#include "util/clock.h"
#include "wire/payload.h"

namespace assay::device {
namespace {

constexpr std::size_t kMaxModules = 256;
// Bytes of local memory that a thread has for spilled registers and small arrays. More counts as
// memory, because arrays of threads could take the place of any allocation.
constexpr std::uint32_t kFreeLocalBytes = 1024;

constexpr std::uint64_t nanoseconds(double seconds) {
  return static_cast<std::uint64_t>(seconds * 1e9);
}

// Sets the deadline for its lifetime.
class Deadline {
 public:
  Deadline(std::atomic<std::uint64_t>& slot, std::uint64_t ns) : slot_(slot) { slot_ = ns; }
  ~Deadline() { slot_ = 0; }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::atomic<std::uint64_t>& slot_;
};

template <std::size_t n>
void set_text(char (&to)[n], std::string_view from) {
  const std::size_t bytes = std::min(from.size(), n - 1);
  std::memcpy(to, from.data(), bytes);
  to[bytes] = '\0';
}

// What CUDA prints on stderr when an assertion fails.
std::string assertion_line(const sim::Finding& f) {
  const auto& b = f.thread.block;
  const auto& t = f.thread.thread;
  return fmt::format("{}: {}: block: [{},{},{}], thread: [{},{},{}] {}\n", f.where, f.kernel, b[0],
                     b[1], b[2], t[0], t[1], t[2], f.text);
}

// The answer to a refused call: the default one, unless that means success.
void refuse(CallKind kind, Answer& answer) {
  constexpr std::uint32_t kInvalid = 1;  // for kernels: unknown
  if (kind == CallKind::module_load || kind == CallKind::kernel || kind == CallKind::tensor_map)
    answer.code = kInvalid;
}

sim::LaunchConfig config_of(const LaunchShape& s) {
  return {.grid = {s.grid[0], s.grid[1], s.grid[2]},
          .block = {s.block[0], s.block[1], s.block[2]},
          .dynamic_shared_bytes = s.dynamic_shared_bytes,
          .cooperative = s.cooperative != 0,
          .cluster = {s.cluster[0], s.cluster[1], s.cluster[2]}};
}

std::string why_refused(sim::LaunchStatus status, const LaunchShape& s, std::uint32_t registers) {
  const sim::LaunchConfig config = config_of(s);
  switch (status) {
    case sim::LaunchStatus::too_large_cooperative:
      return fmt::format(
          "{} blocks of {} threads do not fit the GPU at once, as a cooperative launch must",
          config.grid.count(), config.block.count());
    case sim::LaunchStatus::too_many_registers:
      return fmt::format("{} threads of {} registers are more than a multiprocessor has",
                         config.block.count(), registers);
    default:
      return fmt::format(
          "a grid of {} x {} x {} blocks of {} x {} x {} threads{}, with {} bytes of dynamic "
          "shared memory, is not valid for it",
          s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2],
          config.cluster.count() == 1 ? ""
                                      : fmt::format(" in clusters of {} x {} x {} blocks",
                                                    s.cluster[0], s.cluster[1], s.cluster[2]),
          s.dynamic_shared_bytes);
  }
}

}  // namespace

Server::Server(Control& control, std::span<std::byte> arena, std::byte* link, Gpu& gpu)
    : control_(control),
      arena_(arena),
      page_(*reinterpret_cast<LinkPage*>(link)),
      window_(link + kWindowOffset),
      gpu_(gpu) {
  page_.architecture = gpu.architecture();
  page_.multiprocessors = gpu.multiprocessors();
  page_.is_hardware = gpu.is_hardware() ? 1 : 0;
}

// --- orders
// -------------------------------------------------------------------------------------------------

void Server::obey() {
  const Deadline deadline(deadline_, sim::processor_ns() + nanoseconds(kOrderSeconds));
  control_.ok = 1;
  switch (control_.order) {
    case Order::none: break;
    case Order::place: place(); break;
    case Order::start: start(); break;
    case Order::stop: stop(); break;
    case Order::write: write_bulk(); break;
    case Order::collect: collect(); break;
  }
}

std::span<std::byte> Server::contents(const Buffer& b) const {
  return arena_.subspan(b.offset, b.bytes);
}

// For outputs, the bytes around the buffer are copied too: they hold canaries. A simulated GPU finds
// accesses outside a block by itself; only the bytes that misalign a buffer lie within its block.
void Server::place() {
  constexpr std::uint64_t kUnit = 512;  // keeps the alignment of blocks
  static_assert(kGuardBytes <= kUnit);
  for (const Placed& p : placed_) gpu_.free(p.block);
  placed_.clear();
  placed_bytes_ = 0;
  for (std::uint32_t i = 0; i < control_.buffers; ++i) {
    Buffer& b = control_.buffer[i];
    Placed p{.buffer = b, .before = b.output ? b.skew : 0};
    std::uint64_t ahead = b.skew;
    if (b.output && gpu_.is_hardware()) {
      p.before = p.behind = kGuardBytes;
      ahead += kUnit;
    }
    const std::uint64_t bytes = std::max<std::uint64_t>(ahead + b.bytes + p.behind, 1);
    p.block = gpu_.allocate(bytes);
    if (p.block == 0) {
      control_.ok = 0;
      return;
    }
    p.buffer.address = b.address = p.block + ahead;
    placed_.push_back(p);
    placed_bytes_ += bytes;
    gpu_.write(b.address - p.before, guarded(p), nullptr);
  }
}

std::span<std::byte> Server::guarded(const Placed& p) const {
  return arena_.subspan(p.buffer.offset - p.before, p.before + p.buffer.bytes + p.behind);
}

void Server::start() {
  for (const Placed& p : placed_) {
    const Buffer& b = p.buffer;
    const bool begins = b.phase > 0 && b.phase == control_.phase;
    const bool ended = b.until >= 0 && b.until + 1 == control_.phase;
    if (!b.output && (begins || ended)) gpu_.write(b.address, contents(b), nullptr);
  }
  report_ = {};
  counters_ = {};
  most_local_ = 0;
  phase_deadline_ =
      sim::processor_ns() + nanoseconds(allowance_seconds(control_.instruction_limit));
  gpu_.begin_phase(control_.shuffle_seed);
  gpu_.set_processor_deadline(phase_deadline_);
  listening_ = true;
}

void Server::stop() {
  listening_ = false;
  const PhaseTime time = gpu_.end_phase();
  report_.seconds = time.seconds;
  if (!time.failure.empty()) note_failed(time.failure.c_str());
  const std::uint64_t peak = gpu_.high_water();
  report_.peak_bytes = (peak > placed_bytes_ ? peak - placed_bytes_ : 0) + most_local_;
  report_.counters = std::bit_cast<CounterWords>(counters_);
  control_.report = report_;
}

void Server::write_bulk() {
  control_.ok =
      gpu_.write(control_.address, arena_.subspan(control_.offset, control_.bytes), nullptr) ? 1
                                                                                             : 0;
}

void Server::collect() {
  control_.changed = -1;
  std::vector<std::byte> now;
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const Buffer& b = placed_[i].buffer;
    if (b.output) {
      // All of it was written by place().
      gpu_.read(guarded(placed_[i]), b.address - placed_[i].before, true, nullptr);
      continue;
    }
    const std::span<const std::byte> before = contents(b);
    now.resize(b.bytes);
    gpu_.read(now, b.address, false, nullptr);
    const auto at = std::mismatch(now.begin(), now.end(), before.begin()).first;
    if (at == now.end() || control_.changed >= 0) continue;
    control_.changed = static_cast<std::int32_t>(i);
    control_.changed_at = static_cast<std::uint64_t>(at - now.begin());
  }
  control_.undefined[0] = '\0';
  if (const auto found = gpu_.take_findings(); !found.empty()) {
    set_text(control_.undefined,
             fmt::format("{} in {}", sim::to_string(found[0].kind), found[0].describe()));
  }
}

// --- calls
// -------------------------------------------------------------------------------------------------

void Server::waited(std::uint64_t ns) {
  phase_deadline_ += ns;
  gpu_.set_processor_deadline(phase_deadline_);
}

void Server::serve() {
  const std::uint64_t begin = steady_nanoseconds();
  const Deadline deadline(deadline_, phase_deadline_ + nanoseconds(kGraceSeconds));
  control_.busy_since.store(begin);
  // Copied once, because the worker may write at any time.
  Call call;
  std::memcpy(&call, &page_.call, sizeof call);
  Answer answer;
  try {
    if (call.payload <= kWindowBytes) dispatch(call, answer);
  } catch (const sim::Unsupported& e) {
    note_missing(e.what());
  } catch (const std::exception& e) {
    note_failed(e.what());
  }
  std::memcpy(&page_.answer, &answer, sizeof answer);
  control_.busy_ns.fetch_add(steady_nanoseconds() - begin);
  control_.busy_since.store(0);
}

std::string Server::text_payload(const Call& call) const {
  return {reinterpret_cast<const char*>(window_),
          static_cast<std::size_t>(std::min<std::uint64_t>(call.payload, kMaxNameBytes))};
}

bool Server::is_placed(std::uint64_t address) const {
  return std::ranges::any_of(placed_, [&](const Placed& p) { return p.block == address; });
}

// Whether the phase has used up its time; nothing slow is done after that.
bool Server::out_of_time() {
  if (sim::processor_ns() <= phase_deadline_) return false;
  report_.over_limit = 1;
  return true;
}

void Server::dispatch(const Call& call, Answer& answer) {
  if (call.kind != CallKind::launch && out_of_time()) return refuse(call.kind, answer);
  if (!is_transfer(call.kind)) last_row_.reset();
  switch (call.kind) {
    case CallKind::module_begin:
      image_.clear();
      image_bytes_ = call.bytes <= kMaxModuleBytes - all_image_bytes_ ? call.bytes : 0;
      answer.ok = image_bytes_ > 0 ? 1 : 0;
      return;
    case CallKind::module_part:
      if (call.payload > image_bytes_ - image_.size()) return;
      image_.append(reinterpret_cast<const char*>(window_), call.payload);
      answer.ok = 1;
      return;
    case CallKind::module_load: return load_module(answer);
    case CallKind::kernel: return find_kernel(call, answer);
    case CallKind::variable: return find_variable(call, answer);
    case CallKind::allocate:
      if (call.bytes > 0) answer.address = gpu_.allocate(call.bytes);
      return;
    case CallKind::free:
      answer.ok = !is_placed(call.address) && gpu_.free(call.address) ? 1 : 0;
      return;
    case CallKind::write: return write(call, answer);
    case CallKind::read:
    case CallKind::peek: return read(call, answer);
    case CallKind::copy:
    case CallKind::fill: return move_within(call, answer);
    case CallKind::allocation: {
      const sim::VariableInfo found = gpu_.allocation(call.address);
      answer.address = found.address;
      answer.bytes = found.bytes;
      return;
    }
    case CallKind::memory:
      answer.address = gpu_.capacity();
      answer.bytes = gpu_.live_bytes();
      return;
    case CallKind::launch: return launch(call, answer);
    case CallKind::order: return order(call);
    case CallKind::touch: return touch(call);
    case CallKind::finding: return take_finding(call);
    case CallKind::occupancy:
      if (call.id >= kernel_params_.size()) return;
      if (const auto blocks = gpu_.resident_blocks(call.id, call.bytes, call.address)) {
        answer.ok = 1;
        answer.bytes = *blocks;
      }
      return;
    case CallKind::tensor_map: return make_tensor_map(call, answer);
  }
}

void Server::load_module(Answer& answer) {
  wire::PayloadWriter payload(std::span(window_, kWindowBytes));
  const auto fail = [&](std::uint32_t code, std::string_view why) {
    answer.code = code;
    payload.text(why);
    answer.payload = payload.size();
  };
  constexpr std::uint32_t kInvalid = 1, kUnsupported = 2;
  if (image_.size() != image_bytes_ || image_.empty() || ++modules_ > kMaxModules) {
    return fail(kInvalid, "the module is incomplete, or one too many");
  }
  all_image_bytes_ += image_.size();
  // After machine code that the GPU rejects, the worker sends the PTX it was made from.
  const bool is_code = is_machine_code(image_);
  try {
    answer.id = gpu_.load_module(image_);
  } catch (const InvalidModule& e) {
    if (is_code) {  // it does not count against the limits for modules
      --modules_;
      all_image_bytes_ -= image_.size();
    } else {
      set_text(report_.invalid_ptx, e.what());
    }
    fail(kInvalid, e.what());
  } catch (const std::bad_alloc&) {
    set_text(report_.invalid_ptx, "the module needs more memory than there is");
    fail(kInvalid, "out of memory");
  } catch (const sim::Unsupported& e) {
    note_missing(e.what());
    fail(kUnsupported, e.what());
  } catch (const std::exception& e) {
    note_failed(e.what());
    fail(kInvalid, e.what());
  }
  image_.clear();
  image_bytes_ = 0;
}

void Server::find_kernel(const Call& call, Answer& answer) {
  constexpr std::uint32_t kOk = 0, kUnknown = 1, kUnsupported = 2;
  wire::PayloadWriter payload(std::span(window_, kWindowBytes));
  sim::KernelId id = 0;
  sim::KernelInfo info;
  try {
    id = gpu_.kernel(call.id, text_payload(call));
    info = gpu_.info(id);
  } catch (const std::out_of_range&) {
    answer.code = kUnknown;
    return;
  } catch (const std::bad_alloc&) {
    note_failed("a kernel needs more memory to be decoded than there is");
    answer.code = kUnknown;
    return;
  } catch (const sim::Unsupported& e) {
    note_missing(e.what());
    answer.code = kUnsupported;
    payload.text(e.what());
    answer.payload = payload.size();
    return;
  } catch (const std::exception& e) {
    note_failed(e.what());
    answer.code = kUnknown;
    return;
  }
  if (id >= kernel_params_.size()) kernel_params_.resize(id + 1);
  kernel_params_[id] = info.params_bytes;
  KernelWire wire;
  wire.name_bytes = static_cast<std::uint32_t>(info.name.size());
  wire.params = static_cast<std::uint32_t>(info.param_bytes.size());
  wire.params_bytes = info.params_bytes;
  wire.static_shared_bytes = info.static_shared_bytes;
  wire.local_bytes = info.local_bytes;
  wire.registers = info.registers;
  wire.max_threads = info.max_threads;
  const sim::Dim3& cluster = info.required_cluster;
  std::ranges::copy(std::array{cluster.x, cluster.y, cluster.z}, wire.required_cluster);
  payload.value(wire);
  payload.text(info.name);
  for (std::size_t i = 0; i < info.param_bytes.size(); ++i) {
    payload.value(info.param_bytes[i]);
    payload.value(info.param_offset[i]);
  }
  answer.code = kOk;
  answer.id = id;
  answer.payload = payload.size();
}

void Server::find_variable(const Call& call, Answer& answer) {
  try {
    const sim::VariableInfo found = gpu_.variable(call.id, text_payload(call));
    answer.address = found.address;
    answer.bytes = found.bytes;
  } catch (const std::out_of_range&) {
  }
}

void Server::make_tensor_map(const Call& call, Answer& answer) {
  wire::PayloadReader request({window_, kWindowBytes}, call.payload);
  const sim::TensorMapReply reply = gpu_.tensor_map(request.value<sim::TensorMapRequest>());
  wire::PayloadWriter payload(std::span(window_, kWindowBytes));
  if (reply.status == sim::TensorMapReply::Status::ok) {
    payload.value(reply.map);
  } else {
    payload.text(reply.message);
  }
  answer.code = static_cast<std::uint32_t>(reply.status);
  answer.payload = payload.size();
}

bool Server::is_transfer(CallKind kind) {
  return kind == CallKind::write || kind == CallKind::read || kind == CallKind::peek ||
         kind == CallKind::copy || kind == CallKind::fill;
}

// The rows of a box are one transfer. What the worker says of rows is hostile: it could save what
// transfers cost. But whatever passes here could have been one copy of a box.
void Server::count_transfer(const Call& call, std::uint64_t bytes) {
  Row row{call, bytes};
  if (last_row_) {
    row.step = call.address - last_row_->call.address;
    row.step_from = call.from - last_row_->call.from;
  }
  const bool follows = last_row_ && call.row > 0 && call.row == last_row_->call.row + 1 &&
                       call.kind == last_row_->call.kind && bytes == last_row_->bytes;
  const bool is_apart =
      row.step >= bytes && (call.kind != CallKind::copy || row.step_from >= bytes);
  const auto is_as_before = [&] {
    return call.row == 1 || (row.step == last_row_->step && row.step_from == last_row_->step_from);
  };
  if (!follows || !is_apart || !is_as_before()) {
    row.call.row = 0;
    ++report_.transfers;
  }
  last_row_ = row;
}

void Server::write(const Call& call, Answer& answer) {
  if (!gpu_.write(call.address, {window_, call.payload}, operation())) return;
  take_findings();
  answer.ok = 1;
  report_.to_device_bytes += call.payload;
  count_transfer(call, call.payload);
}

void Server::read(const Call& call, Answer& answer) {
  if (call.bytes > kWindowBytes ||
      !gpu_.read({window_, call.bytes}, call.address, false,
                 call.kind == CallKind::read ? operation() : nullptr)) {
    return;
  }
  take_findings();
  answer.ok = 1;
  answer.payload = call.bytes;
  report_.to_host_bytes += call.bytes;
  count_transfer(call, call.bytes);
}

void Server::move_within(const Call& call, Answer& answer) {
  const bool done =
      call.kind == CallKind::copy
          ? gpu_.copy(call.address, call.from, call.bytes, operation())
          : gpu_.fill(call.address, static_cast<std::byte>(call.value), call.bytes, operation());
  if (!done) return;
  take_findings();
  answer.ok = 1;
  report_.within_bytes += call.kind == CallKind::copy ? 2 * call.bytes : call.bytes;
  count_transfer(call, call.bytes);
}

void Server::launch(const Call& call, Answer& answer) {
  LaunchWire wire;
  std::string message, output, error_output;
  const bool known = call.id < kernel_params_.size() && kernel_params_[call.id] == call.payload;
  if (!known) {
    wire.status = static_cast<std::uint32_t>(sim::LaunchStatus::invalid_configuration);
  } else if (report_.over_limit != 0 || out_of_time() ||
             counters_.instructions >= control_.instruction_limit) {
    report_.over_limit = 1;
    wire.status = static_cast<std::uint32_t>(sim::LaunchStatus::timeout);
  } else {
    const std::vector<std::byte> params(window_, window_ + call.payload);
    gpu_.set_instruction_limit(control_.instruction_limit - counters_.instructions);
    try {
      const sim::LaunchConfig config = config_of(call.shape);
      const sim::LaunchResult result = gpu_.launch(call.id, config, params, operation());
      take(result);
      note_local_memory(config, result.local_bytes);
      note_refusal(call, result.status);
      report_.to_device_bytes += params.size();
      for (const sim::Finding& f : result.findings) {
        if (f.kind == sim::FindingKind::assertion) error_output += assertion_line(f);
      }
      output = result.output;
      report_.to_host_bytes += output.size();
      if (!output.empty()) ++report_.transfers;
      wire.status = static_cast<std::uint32_t>(result.status);
      wire.instructions = result.counters.instructions;
    } catch (const std::bad_alloc&) {
      note_failed("a launch needs more memory to be simulated than there is");
      wire.status = static_cast<std::uint32_t>(sim::LaunchStatus::invalid_configuration);
    } catch (const sim::Unsupported& e) {
      note_missing(e.what());
      wire.unsupported = 1;
      message = e.what();
    } catch (const std::exception& e) {
      note_failed(e.what());
      wire.status = static_cast<std::uint32_t>(sim::LaunchStatus::invalid_configuration);
    }
  }
  constexpr std::size_t kMostText = (kWindowBytes - sizeof wire) / 3;
  for (std::string* text : {&message, &output, &error_output})
    text->resize(std::min(text->size(), kMostText));
  wire.message_bytes = static_cast<std::uint32_t>(message.size());
  wire.output_bytes = static_cast<std::uint32_t>(output.size());
  wire.error_bytes = static_cast<std::uint32_t>(error_output.size());
  wire::PayloadWriter payload(std::span(window_, kWindowBytes));
  payload.value(wire);
  for (const std::string* text : {&message, &output, &error_output}) payload.text(*text);
  answer.ok = 1;
  answer.payload = payload.size();
}

// Reported because a program that ignores the error just leaves its outputs unwritten.
void Server::note_refusal(const Call& call, sim::LaunchStatus status) {
  const bool refused = status == sim::LaunchStatus::invalid_configuration ||
                       status == sim::LaunchStatus::too_large_cooperative ||
                       status == sim::LaunchStatus::too_many_registers;
  if (!refused || report_.refused[0] != '\0') return;
  const sim::KernelInfo info = gpu_.info(call.id);
  set_text(report_.refused, fmt::format("the launch of {} was refused: {}", info.name,
                                        why_refused(status, call.shape, info.registers)));
}

// This data is untrusted; it can only incriminate the submission that sent it.
void Server::order(const Call& call) {
  wire::PayloadReader payload(std::span(window_, kWindowBytes), call.payload);
  const auto wire = payload.value<OrderWire>();
  sim::Operation& o = operation_.emplace();
  o.stream = std::min(wire.stream, sim::kMaxStreams - 1);
  o.time = wire.time;
  o.clock.resize(std::min(wire.clocks, sim::kMaxStreams));
  for (std::uint32_t& time : o.clock) time = payload.value<std::uint32_t>();
  o.call = payload.text(std::min<std::size_t>(wire.call_bytes, kMaxNameBytes));
  o.stream_name = payload.text(std::min<std::size_t>(wire.name_bytes, kMaxNameBytes));
}

void Server::touch(const Call& call) {
  if (operation_) gpu_.touch(call.address, *operation_);
  take_findings();
}

void Server::take_finding(const Call& call) {
  wire::PayloadReader payload(std::span(window_, kWindowBytes), call.payload);
  const auto wire = payload.value<FindingWire>();
  sim::Finding f;
  f.kind = sim::FindingKind::late_change;
  f.kernel = payload.text(std::min<std::size_t>(wire.kernel_bytes, kMaxNameBytes));
  f.where = payload.text(std::min<std::size_t>(wire.where_bytes, kMaxNameBytes));
  f.text = payload.text(std::min<std::size_t>(wire.text_bytes, kMaxNameBytes));
  take(f);
}

void Server::take_findings() {
  for (const sim::Finding& f : gpu_.take_findings()) take(f);
}

void Server::take(const sim::LaunchResult& result) {
  counters_ += result.counters;
  if (counters_.instructions > control_.instruction_limit) report_.over_limit = 1;
  for (const sim::Finding& f : result.findings) {
    if (f.kind == sim::FindingKind::instruction_limit) {
      report_.over_limit = 1;
      continue;
    }
    take(f);
  }
}

// The GPU reserves local memory for as many threads as run at once.
void Server::note_local_memory(const sim::LaunchConfig& config, std::uint32_t bytes) {
  if (bytes <= kFreeLocalBytes) return;
  const std::uint64_t at_once = std::uint64_t{sim::kMaxResidentThreads} * gpu_.multiprocessors();
  const std::uint64_t blocks = std::min(config.grid.count(), at_once);
  const std::uint64_t threads = std::min(blocks * config.block.count(), at_once);
  most_local_ = std::max(most_local_, threads * (bytes - kFreeLocalBytes));
}

void Server::take(const sim::Finding& f) {
  if (report_.findings++ == 0)
    set_text(report_.first_finding, fmt::format("{} in {}", sim::to_string(f.kind), f.describe()));
}

// Notes a fault of the submission that is not a finding of the checks.
void Server::note_failed(const char* what) {
  if (report_.findings++ == 0) set_text(report_.first_finding, what);
}

void Server::note_missing(const char* what) {
  if (report_.unsupported[0] == '\0') set_text(report_.unsupported, what);
}

}  // namespace assay::device
