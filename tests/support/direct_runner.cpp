#include "support/direct_runner.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "assay/error.h"
#include "cases/fill_inputs.h"
#include "cases/judge.h"
#include "draw/space.h"
#include "processes/layout.h"
#include "support/direct_call.h"
#include "support/inout_copies.h"
#include "support/paths.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::testing {

DirectRunner::DirectRunner(std::string challenge, std::string library)
    : challenge_(std::move(challenge)), handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) throw Error(::dlerror());
}

DirectRunner::~DirectRunner() { ::dlclose(handle_); }

CaseResult DirectRunner::run(const CaseSpec& spec, std::uint64_t seed) {
  const Challenge& challenge = challenge_named(challenge_);
  const worker::Adapter adapter = adapter_named(challenge_);

  const CasePlan plan = challenge.plan(spec);
  const processes::Layout layout = processes::make_layout(plan, challenge.has_callbacks(spec));
  Arena input(layout.input_bytes), output(layout.output_bytes);
  const processes::Windows windows(layout, input.data(), output.data());
  const std::vector<BufferView> buffers =
      processes::views(layout, input.data(), output.data(), nullptr, &windows);
  processes::poison_gaps(plan, layout, input.data(), seed);
  cases::fill_inputs(challenge, spec, plan, Seeds(seed), buffers);
  const auto reference = challenge.reference(spec, plan, buffers);
  const auto server = challenge.callbacks(spec, plan, buffers);
  processes::poison(plan, layout, output.data(), seed);
  const testing::InoutCopies first(plan, buffers);

  DirectCall call(plan, buffers, server.get(), handle_);
  refuse_allocation(spec.failing_allocation);
  std::int32_t status = ASSAY_OK;
  for (int phase = 0; phase < plan.phases && status == ASSAY_OK; ++phase) {
    call.set_phase(phase);
    status = adapter(call);
  }

  refuse_allocation(0);
  CaseResult result;
  result.name = spec.name;
  result.group = spec.group;
  result.seed = seed;
  result.shape = challenge.shape(spec);
  if (spec.failing_allocation > 0 && status == ASSAY_ENOMEM) {
    result.verdict = Verdict::ok;
    return result;
  }
  cases::judge(challenge,
               {.spec = &spec,
                .plan = &plan,
                .layout = &layout,
                .reference = reference.get(),
                .buffers = buffers,
                .first = first.views(),
                .output = output.data(),
                .poison_seed = seed,
                .status = status,
                .server = server.get()},
               result);
  return result;
}

ChallengeSpec spec_of(const std::string& challenge) {
  return load_spec(std::filesystem::path(source_dir()) / "challenges" / challenge);
}

void draw_cases(ChallengeSpec& spec, std::uint64_t run_seed) {
  for (CaseSpec& c : spec.cases) {
    if (c.drawn) c = draw::draw_case(challenge_named(spec.name), spec, c, run_seed).spec;
  }
}

std::string compile(const std::string& source, const std::string& challenge,
                    const std::string& target) {
  namespace fs = std::filesystem;
  const std::string folder = fmt::format("{}/challenges/{}", source_dir(), challenge);
  // Whatever may be included is part of the content address: naive.cpp and the folder's headers.
  std::string text = target + '\n' + read_file(source) + read_file(folder + "/baselines/naive.cpp");
  for (const std::string& headers : {folder, source_dir() + "/challenges/shared/baselines"}) {
    for (const auto& entry : fs::recursive_directory_iterator(headers)) {
      if (entry.path().extension() == ".h") text += read_file(entry.path());
    }
  }
  const std::string key = sha256_hex(text);
  const fs::path dir = fs::path(binary_dir()) / "direct";
  fs::create_directories(dir);
  const fs::path library = dir / (key.substr(0, 24) + ".so");
  if (fs::exists(library)) return library;
  const fs::path partial = library.string() + fmt::format(".{}", ::getpid());
  const std::string log = partial.string() + ".log";
  const std::string include =
      fmt::format("-I{0} -I{0}/baselines -I{1}/challenges -I{1}/include", folder, source_dir());
  const std::string command =
      fmt::format("g++ -std=c++20 -O3 -march={} -fPIC -shared -pthread {} {} -o {} 2> {}", target,
                  include, source, partial.string(), log);
  if (std::system(command.c_str()) != 0) throw Error(read_file(log));
  fs::rename(partial, library);
  fs::remove(log);
  return library;
}

}  // namespace assay::testing
