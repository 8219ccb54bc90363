// A world for tests of the code that drives workers: no process, no compiler, and time that passes
// only where a script says so.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "assay/abi.h"
#include "assay/random.h"
#include "cases/bench.h"
#include "cases/world.h"

namespace assay::testing {

// Copies four floats from the input to the output.
class Copying : public Challenge {
 public:
  CasePlan plan(const CaseSpec&) const override {
    CasePlan plan;
    plan.buffers = {{"x", Dtype::f32, {4}, Role::input}, {"y", Dtype::f32, {4}, Role::output}};
    return plan;
  }
  void fill(const CaseSpec&, const CasePlan&, const Seeds& seeds,
            BufferViews buffers) const override {
    Random random(seeds.inputs);
    for (float& x : buffers[0].span<float>()) x = static_cast<float>(random.below(1000));
  }
  std::unique_ptr<Reference> reference(const CaseSpec&, const CasePlan&,
                                       BufferViews) const override {
    return std::make_unique<Reference>();
  }
  CheckResult check(const CaseSpec&, const CasePlan&, const Reference&, BufferViews buffers,
                    const CallbackServer*) const override {
    CheckResult result;
    result.pass = std::memcmp(buffers[0].data, buffers[1].data, buffers[0].bytes) == 0;
    if (!result.pass) result.detail = "not a copy";
    result.error = 0.25;
    result.bound = 1;
    result.accuracy = 2;
    return result;
  }
  std::string shape(const CaseSpec& spec) const override { return "shape of " + spec.name; }
};

inline CaseSpec case_spec(const std::string& name, CaseGroup group = CaseGroup::core) {
  CaseSpec spec;
  spec.name = name;
  spec.group = group;
  return spec;
}

inline ChallengeSpec spec_with(std::vector<CaseSpec> cases) {
  ChallengeSpec spec;
  spec.name = "copying";
  spec.hash = "spec-hash";
  spec.cases = std::move(cases);
  return spec;
}

// The result of a call: an outcome, and what the output then holds.
struct Answer {
  processes::Outcome outcome = {.seconds = 0.001};
  bool right = true;
  bool writes = true;             // to its output at all
  std::uint64_t grown_bytes = 0;  // peak growth of the worker's memory
};

inline Answer wrong() { return {.right = false}; }
inline Answer silent() { return {.writes = false}; }
inline Answer taking(double seconds) { return {.outcome = {.seconds = seconds}}; }
inline Answer ending(Verdict verdict, double seconds = 0.001) {
  return {.outcome = {.verdict = verdict, .detail = "scripted", .seconds = seconds}};
}

// How the workers of one library behave.
struct Behaviour {
  processes::Outcome load;
  // The answer to the library's `nth` call for this case, counted over all its workers from 0.
  std::function<Answer(const std::string& case_name, int nth)> run = [](const auto&, int) {
    return Answer();
  };
  std::function<Answer(const CaseSpec&)> run_drawn{};  // if set, used instead of `run`
  std::function<void(CallbackServer&)> asks{};         // during a call, if there is a server
  processes::Outcome self_test = {};
  std::function<void(std::span<std::byte>)> records{};  // what self_test writes to the output
  double ping_seconds = 0;
  bool loses_device = false;  // a verdict that ends it means that its device died
};

class FakeWorld {
 public:
  // By the library's path. A library that is not listed does everything right in a millisecond.
  std::map<std::string, Behaviour> libraries;
  // What happened to whose worker: "start a", "load a", "run a CASE", "end a".
  std::vector<std::string> log;
  double now = 0;
  int flushes = 0;
  Roofline roofline{1e9, 1e9};
  // Replaces compiling. Without it, each request gives a library with the first source's contents.
  cases::Compile compile;
  Copying challenge;

  cases::World world() {
    cases::World world;
    world.compile = [this](const BuildRequest& request) { return built(request); };
    world.make_worker = [this](const processes::WorkerSettings& settings, processes::Arena& input,
                               std::size_t output_bytes,
                               processes::Arena* device) -> std::unique_ptr<processes::Worker> {
      return std::make_unique<FakeWorker>(*this, settings, input, output_bytes, device);
    };
    world.challenge = [this](const std::string&) { return cases::KnownChallenge{0, &challenge}; };
    world.now = [this] { return now; };
    world.flush_caches = [this] { ++flushes; };
    world.roofline = [this] { return roofline; };
    return world;
  }

  int count(const std::string& entry) const {
    return static_cast<int>(std::count(log.begin(), log.end(), entry));
  }
  // The log's entries that begin with `beginning`.
  std::vector<std::string> entries(const std::string& beginning) const {
    std::vector<std::string> found;
    for (const std::string& entry : log) {
      if (entry.starts_with(beginning)) found.push_back(entry);
    }
    return found;
  }

 private:
  class FakeWorker final : public processes::Worker {
   public:
    FakeWorker(FakeWorld& world, const processes::WorkerSettings& settings, processes::Arena& input,
               std::size_t output_bytes, processes::Arena* device)
        : world_(world),
          name_(settings.library.string()),
          input_(input),
          output_("output", output_bytes, processes::Arena::Access::worker_writes),
          device_(device) {
      tell("start");
    }
    ~FakeWorker() override { tell("end"); }

    processes::Outcome load() override {
      tell("load");
      return finished(behaviour().load);
    }
    processes::Outcome set_case(const CasePlan& plan, const processes::Layout& layout,
                                std::uint64_t) override {
      plan_ = plan;
      layout_ = layout;
      return {};
    }
    processes::Outcome ping() override { return finished({.seconds = behaviour().ping_seconds}); }
    processes::Outcome prepare() override { return {}; }
    processes::Outcome self_test(double, std::uint64_t) override {
      tell("test");
      if (behaviour().records) behaviour().records({output_.data(), output_.bytes()});
      return finished(behaviour().self_test);
    }
    processes::Outcome run(int, const CaseSpec& spec, processes::BoundedServer* server) override {
      tell("run", " " + spec.name);
      if (server != nullptr && behaviour().asks) behaviour().asks(*server);
      const int nth = world_.calls_[name_ + "/" + spec.name]++;
      const Answer answer =
          behaviour().run_drawn ? behaviour().run_drawn(spec) : behaviour().run(spec.name, nth);
      grown_ = answer.grown_bytes;
      if (answer.writes) write(answer.right);
      return finished(answer.outcome);
    }
    void set_shuffle_seed(std::uint64_t seed) override {
      if (seed != 0) tell("shuffle");
    }
    processes::Outcome collect(const CasePlan&) override {
      tell("collect");
      return {};
    }
    std::byte* output() const override { return output_.data(); }
    bool alive() const override { return alive_; }
    std::uint64_t peak_growth() const override { return grown_; }
    void reset_peak() override {}
    bool device_lost() const override { return !alive_ && world_.libraries[name_].loses_device; }

   private:
    Behaviour& behaviour() { return world_.libraries[name_]; }
    void tell(const char* what, const std::string& rest = "") {
      world_.log.push_back(std::string(what) + " " + name_ + rest);
    }
    processes::Outcome finished(const processes::Outcome& outcome) {
      world_.now += outcome.seconds;
      alive_ = outcome.verdict == Verdict::ok;
      return outcome;
    }
    std::byte* at(std::size_t buffer) const {
      const wire::BufferSlot& slot = layout_.slots[buffer];
      const processes::Arena& arena = layout_.on_device[buffer] ? *device_
                                      : slot.in_output != 0     ? output_
                                                                : input_;
      return arena.data() + slot.offset;
    }
    void write(bool right) const {
      std::memcpy(at(1), at(0), layout_.slots[1].bytes);
      if (!right) at(1)[0] ^= std::byte{1};
    }

    FakeWorld& world_;
    std::string name_;
    processes::Arena& input_;
    processes::Arena output_;
    processes::Arena* device_;
    CasePlan plan_;
    processes::Layout layout_;
    std::uint64_t grown_ = 0;
    bool alive_ = true;
  };

  BuildResult built(const BuildRequest& request) const {
    if (compile) return compile(request);
    BuildResult result;
    result.library = request.sources.empty() ? "linked" : request.sources.front().contents;
    return result;
  }

  std::map<std::string, int> calls_;  // by library and case
};

}  // namespace assay::testing
