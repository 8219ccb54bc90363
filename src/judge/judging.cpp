#include "judge/judging.h"

#include <fmt/format.h>

#include <mutex>

#include "assay/error.h"
#include "numerics/jobs.h"
#include "util/clock.h"
#include "util/stop.h"
#include "util/text.h"

namespace assay::judge {
namespace {

std::string name_of(const Question& question) {
  return fmt::format("{} sample {}", printable(to_string(question.key), 1, 200), question.number);
}

OpinionSample sample_of(const Question& question, const ask::Answered& answered,
                        const Rubric& rubric) {
  const ask::Reply& reply = answered.reply;
  OpinionSample sample;
  sample.number = question.number;
  sample.date = utc_now();
  sample.seconds = answered.seconds;
  sample.reply = {reply.content, reply.reasoning, reply.refusal,   reply.finish_reason,
                  reply.id,      reply.model,     reply.tokens_in, reply.tokens_out};
  sample.problem = ask::why_no_answer(reply);
  if (!sample.problem.empty()) return sample;
  ReadMarks read = read_marks(reply.content, rubric);
  sample.marks = std::move(read.marks);
  sample.problem = std::move(read.problem);
  if (!sample.problem.empty() && reply.finish_reason == "length")
    sample.problem += " (cut off at the limit on tokens)";
  return sample;
}

class Judging {
 public:
  Judging(const std::vector<Question>& questions, const Rubric& rubric,
          const ask::Endpoint& endpoint, JudgeWorld& world)
      : questions_(questions),
        rubric_(rubric),
        endpoint_(endpoint),
        world_(world),
        requester_(endpoint, world.transport, world.clock, world.note) {}

  JudgeResult run(std::size_t parallel) {
    for_each_job(questions_.size(), parallel, [this](std::size_t i) { work(questions_[i]); });
    result_.spent = requester_.spent();
    return result_;
  }

 private:
  void work(const Question& question) {
    check_stop();
    if (is_over()) return;
    try {
      const auto shown = world_.begin(name_of(question));
      const ask::Answered answered =
          requester_.ask(request_of(endpoint_, question), name_of(question),
                         [](const ask::Fault&, double, std::optional<double>) {});
      keep(question, sample_of(question, answered, rubric_));
    } catch (const ask::RequestFailed& failed) {
      fail(question, failed.message, ask::concerns_all(failed.fault));
    } catch (const Error& e) {
      fail(question, e.what(), true);
    }
  }

  // If asking has stopped, counts the question as not obtained and returns true.
  bool is_over() {
    const std::lock_guard lock(mutex_);
    if (all_failed_) ++result_.not_obtained;
    return all_failed_;
  }

  void keep(const Question& question, const OpinionSample& sample) {
    {
      const std::lock_guard storing(storing_);
      world_.store(question, sample);
    }
    const bool has_marks = sample.problem.empty();
    std::string line = name_of(question) + ": ";
    line += has_marks ? fmt::format("{:.1f} of {:g}", overall(sample.marks, rubric_), kHighestMark)
                      : "no marks: " + sample.problem;
    world_.finished(line + fmt::format(", {:.1f} s", sample.seconds));
    const std::lock_guard lock(mutex_);
    ++(has_marks ? result_.with_marks : result_.without_marks);
  }

  void fail(const Question& question, const std::string& message, bool all) {
    const std::lock_guard lock(mutex_);
    ++result_.not_obtained;
    // Several requests may have been in flight: only one reports the failure.
    if (!all || !all_failed_)
      world_.finished(fmt::format("{}: failed: {}", name_of(question), message));
    all_failed_ |= all;
  }

  const std::vector<Question>& questions_;
  const Rubric& rubric_;
  const ask::Endpoint& endpoint_;
  JudgeWorld& world_;
  ask::Requester requester_;

  std::mutex storing_;
  std::mutex mutex_;  // guards everything below
  JudgeResult result_;
  bool all_failed_ = false;
};

}  // namespace

nlohmann::ordered_json request_of(const ask::Endpoint& endpoint, const Question& question) {
  ask::ChatSettings chat = endpoint.chat;
  if (chat.seed) *chat.seed += question.number - 1;
  return ask::request_of(chat,
                         {{"system", question.prompt.system}, {"user", question.prompt.user}});
}

JudgeResult judge_all(const std::vector<Question>& questions, const Rubric& rubric,
                      const ask::Endpoint& endpoint, std::size_t parallel, JudgeWorld& world) {
  return Judging(questions, rubric, endpoint, world).run(parallel);
}

}  // namespace assay::judge
