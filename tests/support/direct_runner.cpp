#include "support/direct_runner.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "run/adapter_registry.h"
#include "run/challenge_registry.h"
#include "run/judge.h"
#include "run/layout.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::testing {
namespace {

// Anonymous memory the size of an arena.
struct Arena {
  explicit Arena(std::size_t n)
      : bytes(n), data(::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data == MAP_FAILED) throw std::bad_alloc();
  }
  ~Arena() { ::munmap(data, bytes); }
  Arena(const Arena&) = delete;
  std::size_t bytes;
  void* data;
};

void* plain_alloc(assay_ctx*, std::size_t bytes, std::size_t align, int space) {
  if (space != 0) return nullptr;
  align = std::max(align, sizeof(void*));
  return std::aligned_alloc(align, (bytes + align - 1) / align * align);
}
void plain_free(assay_ctx*, void* p) { std::free(p); }

class DirectCall final : public worker::Call {
 public:
  DirectCall(const CasePlan& plan, std::span<const BufferView> buffers, CallbackServer* server,
             void* library)
      : plan_(plan), buffers_(buffers), server_(server), library_(library) {
    ctx_ = {1, -1, nullptr, 2, &plain_alloc, &plain_free, nullptr};
  }
  assay_ctx* ctx() override { return &ctx_; }
  std::int32_t entry() const override { return plan_.entry; }
  int phase() const override { return phase_; }
  const void* params() const override { return plan_.params.data(); }
  void* buffer(int h) override { return buffers_[static_cast<std::size_t>(h)].data; }
  std::size_t bytes(int h) const override { return buffers_[static_cast<std::size_t>(h)].bytes; }
  void* symbol(const char* name) override { return ::dlsym(library_, name); }
  void*& state() override { return state_; }
  std::int32_t callback(std::uint32_t kind, const void* request, std::size_t request_bytes,
                        void* response, std::size_t response_bytes, void* bulk,
                        std::size_t bulk_bytes) override {
    if (server_ == nullptr) return ASSAY_EINTERNAL;
    answer_.resize(response_bytes + bulk_bytes);
    const std::int32_t status =
        server_->serve(kind, {static_cast<const std::byte*>(request), request_bytes}, answer_);
    std::copy_n(answer_.data(), response_bytes, static_cast<std::byte*>(response));
    std::copy_n(answer_.data() + response_bytes, bulk_bytes, static_cast<std::byte*>(bulk));
    return status;
  }
  void set_phase(int phase) { phase_ = phase; }

 private:
  const CasePlan& plan_;
  std::span<const BufferView> buffers_;
  CallbackServer* server_;
  void* library_;
  assay_ctx ctx_{};
  std::vector<std::byte> answer_;
  int phase_ = 0;
  void* state_ = nullptr;
};

template <class Row>
const Row& row_named(std::span<const Row> rows, const std::string& name) {
  for (const Row& row : rows) {
    if (row.name == name) return row;
  }
  throw Error("no challenge " + name);
}

}  // namespace

DirectRunner::DirectRunner(std::string challenge, std::string library)
    : challenge_(std::move(challenge)), handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw Error(::dlerror());
}

DirectRunner::~DirectRunner() { ::dlclose(handle_); }

CaseResult DirectRunner::run(const CaseSpec& spec, std::uint64_t seed) {
  const Challenge& challenge = row_named(challenge_rows(), challenge_).get();
  const worker::Adapter adapter = row_named(worker::adapter_rows(), challenge_).run;

  const CasePlan plan = challenge.plan(spec);
  const run::Layout layout = run::make_layout(plan, challenge.has_callbacks(spec));
  Arena input(layout.input_bytes), output(layout.output_bytes);
  const std::vector<BufferView> buffers = run::views(layout, input.data, output.data);
  challenge.fill(spec, plan, seed, buffers);
  const auto reference = challenge.reference(spec, plan, buffers);
  const auto server = challenge.callbacks(spec, plan, buffers);
  run::poison(plan, layout, output.data, seed);

  DirectCall call(plan, buffers, server.get(), handle_);
  std::int32_t status = ASSAY_OK;
  for (int phase = 0; phase < plan.phases && status == ASSAY_OK; ++phase) {
    call.set_phase(phase);
    status = adapter(call);
  }

  CaseResult result;
  result.name = spec.name;
  result.group = spec.group;
  result.seed = seed;
  result.shape = challenge.shape(spec);
  run::judge(challenge,
             {&spec, &plan, &layout, reference.get(), buffers, output.data, seed, status,
              server.get()},
             result);
  return result;
}

ChallengeSpec spec_of(const std::string& challenge) {
  return load_spec(std::filesystem::path(ASSAY_SOURCE_DIR) / "challenges" / challenge);
}

std::string compile(const std::string& source, const std::string& challenge) {
  namespace fs = std::filesystem;
  const std::string folder = fmt::format("{}/challenges/{}", ASSAY_SOURCE_DIR, challenge);
  // Examples may include naive.cpp and headers beside them, so these are part of the content address.
  std::string text = read_file(source) + read_file(folder + "/naive.cpp") + read_file(folder + "/abi.h");
  for (const auto& entry : fs::directory_iterator(folder + "/examples")) {
    if (entry.path().extension() == ".h") text += read_file(entry.path());
  }
  const std::string key = sha256_hex(text);
  const fs::path dir = fs::path(ASSAY_BINARY_DIR) / "direct";
  fs::create_directories(dir);
  const fs::path library = dir / (key.substr(0, 24) + ".so");
  if (fs::exists(library)) return library;
  const fs::path partial = library.string() + fmt::format(".{}", ::getpid());
  const std::string log = partial.string() + ".log";
  const std::string command =
      fmt::format("g++ -std=c++20 -O3 -march=native -fPIC -shared -pthread -I{} -I{}/include {} -o {} "
                  "2> {}",
                  folder, ASSAY_SOURCE_DIR, source, partial.string(), log);
  if (std::system(command.c_str()) != 0) throw Error(read_file(log));
  fs::rename(partial, library);
  fs::remove(log);
  return library;
}

}  // namespace assay::testing
