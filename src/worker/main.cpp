// Everything here shares an address space with hostile code, so nothing it reports is trusted
// without a check. It holds no references, seeds or clocks.
//
// argv: worker LIBRARY [--unsealed]. The flag is for machines without any isolation. Descriptors
// and messages: wire/worker.h.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "processes/window.h"
#include "util/pass_descriptor.h"
#include "wire/worker.h"
#include "worker/adapter_registry.h"
#include "worker/attached_device.h"
#include "worker/probe.h"
#include "worker/scratch.h"
#include "worker/seal.h"

namespace assay::worker {
namespace {

using wire::Command, wire::Control, wire::Header, wire::Reply;

struct Mapping {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

Mapping map_descriptor(int fd, int protection) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) std::_Exit(70);
  void* p = ::mmap(nullptr, static_cast<std::size_t>(info.st_size), protection, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) std::_Exit(71);
  ::close(fd);
  return {static_cast<std::byte*>(p), static_cast<std::size_t>(info.st_size)};
}

// Not at ctx->priv, where a submission would find it first. A submission may find it anyway: its
// contents are never trusted alone.
Scratch* scratch = nullptr;

// For the current case: how many allocations were requested, and which request is refused (0:
// none).
std::atomic<std::uint64_t> allocations{0}, refused{0};
// Blocks handed out and not yet released.
std::atomic<std::int64_t> live_blocks{0};

void* scratch_alloc(assay_ctx*, std::size_t bytes, std::size_t align, int space) {
  if (++allocations == refused) return nullptr;
  void* p = nullptr;
  if (space == 1) p = device_allocate(bytes, align);
  if (space == 0) p = scratch->allocate(bytes, align);
  if (p != nullptr) ++live_blocks;
  return p;
}

void scratch_free(assay_ctx*, void* p) {
  if (p != nullptr) --live_blocks;
  if (!device_release(p)) scratch->release(p);
}

// Maps all readable parts of the libraries and of this program now, so that their later use does
// not count as the submission's growth.
int map_readable(dl_phdr_info* object, std::size_t, void*) {
  constexpr std::uintptr_t kPage = 4096;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / kPage * kPage;
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);  // NOLINT: mapped
  }
  return 0;
}

// Restores the floating-point control and direction flag that the ABI expects, whatever an earlier
// call left.
void reset_processor_state() {
#if defined(__x86_64__)
  const unsigned mxcsr = 0x1f80;
  const unsigned short x87 = 0x37f;
  asm volatile("ldmxcsr %0\n\tfldcw %1\n\tcld" ::"m"(mxcsr), "m"(x87));
#endif
}

class ServedSubmission final : public Call {
 public:
  explicit ServedSubmission(const char* library)
      : library_path_(library),
        control_(map_descriptor(wire::kControlFd, PROT_READ | PROT_WRITE)),
        input_(map_descriptor(wire::kInputFd, PROT_READ)),
        output_(map_descriptor(wire::kOutputFd, PROT_READ | PROT_WRITE)),
        scratch_(header().scratch_capacity) {
    scratch = &scratch_;
    ctx_ = {.abi = 1,
            .device = attach_device(),
            .stream = nullptr,
            .nthreads = header().nthreads,
            .alloc = &scratch_alloc,
            .free = &scratch_free,
            .priv = nullptr};
    open_windows();
    ::dl_iterate_phdr(&map_readable, nullptr);
  }

  // If the worker is sealed, that happens before the first reply.
  [[noreturn]] void serve(bool sealed) {
    for (bool first = true;; first = false) {
      await_request();
      if (first && sealed) seal_off();
      if (first) ::close(wire::kHandoverFd);
      switch (header().command) {
        case Command::ping: break;
        case Command::load: load(); break;
        case Command::prepare: prepare(); break;
        case Command::run: run(); break;
        case Command::self_test: self_test(); break;
      }
      send(failed_ ? Reply::load_failed : Reply::done);
    }
  }

  assay_ctx* ctx() override { return &ctx_; }
  std::int32_t entry() const override { return header().entry; }
  int phase() const override { return header().phase; }
  const void* params() const override { return input_.data + header().params_offset; }
  void* buffer(int handle) override {
    const wire::BufferSlot& s = slot(handle);
    if (s.null != 0) return nullptr;
    if (s.device != 0) return reinterpret_cast<void*>(s.device);  // NOLINT: of the device
    if (s.window != 0) return windows_[s.window - 1] + s.offset;
    return (s.in_output != 0 ? output_ : input_).data + s.offset;
  }
  std::size_t bytes(int handle) const override { return slot(handle).bytes; }
  void* symbol(const char* name) override { return ::dlsym(library_, name); }
  void*& state() override { return state_; }
  void copy(void* to, const void* from, std::size_t n) override { device_aware_copy(to, from, n); }
  void fill(void* to, unsigned char value, std::size_t n) override {
    device_aware_fill(to, value, n);
  }

  std::int32_t callback(std::uint32_t kind, const void* request, std::size_t request_bytes,
                        void* response, std::size_t response_bytes, void* bulk,
                        std::size_t bulk_bytes) override {
    if (request_bytes > kCallbackBytes || response_bytes > kCallbackBytes) return ASSAY_EINVAL;
    if (bulk_bytes > kCallbackBytes - response_bytes) return ASSAY_EINVAL;
    std::memcpy(output_.data + header().callback_offset, request, request_bytes);
    control().callback_kind = kind;
    control().callback_request_bytes = static_cast<std::uint32_t>(request_bytes);
    control().callback_response_bytes = static_cast<std::uint32_t>(response_bytes);
    control().callback_bulk_bytes = static_cast<std::uint32_t>(bulk_bytes);
    control().callback_bulk_address = reinterpret_cast<std::uintptr_t>(bulk);
    send(Reply::callback);
    await_request();
    const std::byte* answer = input_.data + header().callback_response_offset;
    std::memcpy(response, answer, response_bytes);
    if (bulk_bytes > 0 && header().callback_bulk_written == 0) {
      copy(bulk, answer + response_bytes, bulk_bytes);
    }
    return header().callback_status;
  }

 private:
  const Header& header() const { return *reinterpret_cast<const Header*>(input_.data); }
  Control& control() { return *reinterpret_cast<Control*>(control_.data); }
  const wire::BufferSlot& slot(int handle) const {
    return reinterpret_cast<const wire::BufferSlot*>(input_.data + header().buffers_offset)[handle];
  }

  // Must run before sealing: afterwards the process cannot map shared memory.
  void open_windows() {
    const std::byte* const at = input_.data + header().windows_offset;
    const auto* const all = reinterpret_cast<const wire::Window*>(at);
    const auto* const parts = reinterpret_cast<const wire::WindowPart*>(all + header().windows);
    for (std::uint32_t i = 0; i < header().windows; ++i) {
      std::byte* const arena = (all[i].in_output != 0 ? output_ : input_).data;
      windows_.push_back(processes::open_window(all[i], parts, arena));
      if (windows_.back() == nullptr) std::_Exit(75);
    }
  }

  void await_request() {
    char token;
    while (::read(wire::kLineFd, &token, sizeof token) != sizeof token) {
      if (errno != EINTR) std::_Exit(72);
    }
    request_ = header().request;
  }

  void send(Reply reply) {
    control().reply = reply;
    control().answered = request_;
    const char token = 1;
    if (::write(wire::kLineFd, &token, sizeof token) != sizeof token) std::_Exit(73);
  }

  void seal_off() {
    if (header().watch_memory != 0) hand_over(watch_memory());
    if (!seal()) std::_Exit(74);
  }

  // If the kernel gives no listener, the harness finds none and manages without.
  static void hand_over(int listener) {
    if (listener < 0) return;
    if (!pass_descriptor(wire::kHandoverFd, listener)) std::_Exit(76);
    ::close(listener);
  }

  void fail_load(const char* why) {
    std::snprintf(control().message, sizeof control().message, "%s", why);
    failed_ = true;
  }

  void load() {
    adapter_ = adapter_rows()[header().challenge].run;
    library_ = ::dlopen(library_path_, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return fail_load(::dlerror());
    for (std::uint32_t i = 0; i < header().required_symbols; ++i) {
      if (symbol(header().symbols[i]) != nullptr) continue;
      char text[128];
      std::snprintf(text, sizeof text, "the function %s is missing", header().symbols[i]);
      return fail_load(text);
    }
  }

  // Untimed: makes the pages of the case resident and poisons freed scratch again.
  void prepare() {
    for (std::uint32_t i = 0; i < header().buffers; ++i) {
      const wire::BufferSlot& s = slot(static_cast<int>(i));
      const bool elsewhere = s.null != 0 || s.device != 0 || s.window != 0;
      if (!elsewhere && s.bytes > 0) make_resident(s);
    }
    scratch_.poison();
  }

  void make_resident(const wire::BufferSlot& s) {
    constexpr std::size_t kPage = 4096;
    const Mapping& arena = s.in_output != 0 ? output_ : input_;
    const std::size_t begin = s.offset / kPage * kPage;
    const std::size_t end = std::min((s.offset + s.bytes + kPage - 1) / kPage * kPage, arena.bytes);
    const int advice = s.in_output != 0 ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    if (::madvise(arena.data + begin, end - begin, advice) == 0) return;
    for (std::size_t at = begin; at < end; at += kPage) {  // kernels before 5.14 lack the advice
      static_cast<void>(*static_cast<volatile std::byte*>(arena.data + at));
    }
  }

  void run() {
    if (header().case_id != case_id_) {
      case_id_ = header().case_id;
      state_ = nullptr;
      allocations = 0;
    }
    refused = header().failing_allocation;
    const std::int64_t before = live_blocks;
    ctx_.nthreads = header().nthreads;
    scratch_.guard(header().guard_blocks != 0);
    scratch_.give_back(header().measures_memory != 0);
    scratch_.reset_peak();
    reset_processor_state();
    const std::int32_t status = adapter_(*this);
    wait_for_device();
    control().status = status;
    control().scratch_peak = scratch_.peak();
    control().allocations = allocations;
    control().kept_blocks = live_blocks - before;
    const auto overrun =
        header().guard_blocks != 0 ? scratch_.take_overrun() : std::optional<Scratch::Overrun>();
    control().overrun_side = !overrun ? 0 : overrun->beyond_end ? 2 : 1;
    control().overrun_bytes = overrun ? overrun->bytes : 0;
  }

  void self_test() {
    refused = 0;
    scratch_.guard(false);
    // Present only if the library was linked with a witness, which records what the tests call.
    using Witness = void (*)(void*, std::size_t);
    if (const auto witness = reinterpret_cast<Witness>(symbol("assay_witness")))
      witness(output_.data, output_.bytes);
    const auto test = reinterpret_cast<int (*)(assay_ctx*)>(symbol("assay_self_test"));
    control().status = test != nullptr ? test(&ctx_) : ASSAY_ENOTSUP;
    wait_for_device();
    std::fflush(nullptr);  // shows what the tests print about their verdict
  }

  const char* library_path_;
  Mapping control_, input_, output_;
  std::vector<std::byte*> windows_;  // of sparse buffers
  Scratch scratch_;
  assay_ctx ctx_{};
  Adapter adapter_ = nullptr;
  void* library_ = nullptr;
  void* state_ = nullptr;
  std::uint64_t case_id_ = 0;
  std::uint64_t request_ = 0;  // the request being answered
  bool failed_ = false;
};

}  // namespace
}  // namespace assay::worker

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--probe") == 0) {
    if (!assay::worker::seal()) return 65;
    return assay::worker::probe(argv[2], argv[3]);
  }
  const bool sealed = argc == 2;
  if (!sealed && (argc != 3 || std::strcmp(argv[2], "--unsealed") != 0)) return 64;
  // On the heap, so that a submission that overruns its stack does not hit this object first.
  auto* const worker = new assay::worker::ServedSubmission(argv[1]);
  worker->serve(sealed);
}
