#include "timed_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "assay/error.h"
#include "measure/caches.h"
#include "util/clock.h"

namespace assay {

TimedCase::TimedCase(const ChallengeSpec& challenge, const CaseSpec& spec, std::uint64_t seed)
    : challenge_(testing::challenge_named(challenge.name)),
      adapter_(testing::adapter_named(challenge.name)),
      spec_(spec),
      plan_(challenge_.plan(spec)),
      layout_(processes::make_layout(plan_, challenge_.has_callbacks(spec))),
      input_(layout_.input_bytes),
      output_(layout_.output_bytes),
      buffers_(processes::views(layout_, input_.data(), output_.data())) {
  challenge_.fill(spec_, plan_, seed, buffers_);
  reference_ = challenge_.reference(spec_, plan_, buffers_);
}

void TimedCase::run_phase(testing::DirectCall& call, int phase) {
  call.set_phase(phase);
  const std::int32_t status = adapter_(call);
  if (status != spec_.expect_status) throw Error(fmt::format("{}: status {}", spec_.name, status));
}

void TimedCase::set_up(void* library, int threads) {
  processes::poison(plan_, layout_, output_.data(), 1);
  server_ = challenge_.callbacks(spec_, plan_, buffers_);
  testing::DirectCall call(plan_, buffers_, server_.get(), library, threads);
  for (int phase = 0; phase < plan_.timed_phase; ++phase) run_phase(call, phase);
}

double TimedCase::run(void* library, int threads) {
  server_ = challenge_.callbacks(spec_, plan_, buffers_);  // a new one for each run
  testing::DirectCall call(plan_, buffers_, server_.get(), library, threads);
  double seconds = 0;
  for (int phase = 0; phase < plan_.phases; ++phase) {
    if (phase != plan_.timed_phase) {
      run_phase(call, phase);
      continue;
    }
    flush_caches();
    const double before = call.callback_seconds();
    seconds = seconds_of([&] { run_phase(call, phase); }) - (call.callback_seconds() - before);
  }
  return seconds;
}

CheckResult TimedCase::check() const {
  return challenge_.check(spec_, plan_, *reference_, buffers_, server_.get());
}

double seconds_of(const std::function<void()>& work) {
  const double start = steady_seconds();
  work();
  return steady_seconds() - start;
}

void race(std::vector<Contestant>& contestants) {
  // After a call, the libraries' worker threads spin for a while on the cores of the next one.
  constexpr auto kSpinning = std::chrono::milliseconds(25);
  int rounds = 0;
  for (Contestant& c : contestants) {
    c.seconds();
    rounds = std::max(rounds, c.repetitions);
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      Contestant& c = contestants[(i + static_cast<std::size_t>(round)) % contestants.size()];
      if (round >= c.repetitions) continue;
      std::this_thread::sleep_for(kSpinning);
      c.samples.push_back(c.seconds());
    }
  }
}

}  // namespace assay
