// The languages of the corpora, and the distance between two of them.
#include "languages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "assay/error.h"
#include "assay/size.h"

namespace assay::ternary_training {
namespace {

using nlohmann::json;

std::vector<std::uint16_t> shuffled(std::int64_t n, std::int64_t first, Random& random) {
  std::vector<std::uint16_t> v(to_size(n));
  std::iota(v.begin(), v.end(), static_cast<std::uint16_t>(first));
  for (std::size_t i = v.size(); i > 1; --i) {
    std::swap(v[i - 1], v[to_size(random.below(static_cast<std::int64_t>(i)))]);
  }
  return v;
}

// An index drawn from cumulative probabilities.
std::size_t draw(const std::vector<double>& cumulative, Random& random) {
  const double u = random.uniform() * cumulative.back();
  const auto it = std::upper_bound(cumulative.begin(), cumulative.end(), u);
  return std::min(to_size(it - cumulative.begin()), cumulative.size() - 1);
}

// Cumulative; the probability of a rank falls as that power of it.
std::vector<double> zipf(std::int64_t ranks, double exponent) {
  std::vector<double> cumulative;
  double sum = 0;
  for (std::int64_t r = 0; r < ranks; ++r) {
    cumulative.push_back(sum += std::pow(static_cast<double>(r + 1), -exponent));
  }
  return cumulative;
}

double probability(const std::vector<double>& cumulative, std::size_t i) {
  return (cumulative[i] - (i > 0 ? cumulative[i - 1] : 0)) / cumulative.back();
}

// Which class follows which, cumulative. Each class is the likeliest after one class, half as
// likely after a second, and so on: a Latin square, so that all languages are equally hard and
// differ only in what follows what.
std::vector<std::vector<double>> class_chain(std::int64_t classes, Random& random) {
  const auto from = shuffled(classes, 0, random), to = shuffled(classes, 0, random),
             halvings = shuffled(classes, 0, random);
  std::vector<std::vector<double>> rows;
  for (const std::uint16_t f : from) {
    double sum = 0;
    std::vector<double>& row = rows.emplace_back();
    for (const std::uint16_t t : to)
      row.push_back(sum += std::exp2(-halvings[(f + t) % to_size(classes)]));
  }
  return rows;
}

// Appends tokens with their costs.
class Writer {
 public:
  explicit Writer(const Document& document) : document_(document) {}
  bool full() const { return size_ == document_.tokens.size(); }
  void put(std::int64_t token, double p, Kind kind) {
    if (full()) return;
    document_.tokens[size_] = static_cast<std::uint16_t>(token);
    if (document_.cost != nullptr) document_.cost[size_] = static_cast<float>(-std::log(p));
    if (document_.kind != nullptr) document_.kind[size_] = kind;
    ++size_;
  }

 private:
  const Document& document_;
  std::size_t size_ = 0;
};

// Words in classes that form a chain; definitions, in which a mark introduces different names and
// another mark repeats them; brackets that nest. Tokens: 0 starts a document, 1 DEF, 2 REP, then
// opening and closing brackets, words, names.
class Grammar final : public Language {
 public:
  Grammar(const json& j, const tt_config& config, std::uint64_t seed)
      : classes_(j.value("classes", 8)),
        words_(j.value("words", 20)),
        names_(j.value("names", 64)),
        brackets_(j.value("brackets", 8)),
        defined_(j.value("defined", 8)),
        depth_(j.value("depth", 6)),
        def_(j.value("def", 0.04)),
        rep_(j.value("rep", 0.15)),
        open_(j.value("open", 0.06)),
        close_(j.value("close", 0.08)) {
    if (first_name() + names_ > config.V || defined_ > names_) {
      throw Error("ternary_training: the corpus has more words than the configuration has tokens");
    }
    Random random(seed);
    zipf_ = zipf(words_, j.value("zipf", 1.3));
    next_class_ = class_chain(classes_, random);
    for (std::int64_t i = 0; i < classes_ * classes_; ++i) {
      ranked_.push_back(shuffled(words_, first_word() + i % classes_ * words_, random));
    }
  }

  void write(Random& random, const Document& document) const override {
    Writer out(document);
    State state;
    out.put(0, 1, kMarker);
    while (!out.full()) step(random, state, out);
  }

  // Words by the class of the preceding one.
  std::vector<std::vector<double>> transitions() const override {
    const auto classes = to_size(classes_);
    std::vector<std::vector<double>> rows(classes, std::vector<double>(to_size(classes_ * words_)));
    for (std::size_t from = 0; from < classes; ++from) {
      for (std::size_t to = 0; to < classes; ++to) {
        const std::vector<std::uint16_t>& words = ranked_[from * classes + to];
        for (std::size_t rank = 0; rank < words.size(); ++rank) {
          rows[from][words[rank] - to_size(first_word())] =
              probability(next_class_[from], to) * probability(zipf_, rank);
        }
      }
    }
    return rows;
  }

 private:
  struct State {
    std::int64_t last_class = 0;
    std::vector<std::int64_t> open;
    std::vector<std::uint16_t> defined;
  };

  std::int64_t first_word() const { return 3 + 2 * brackets_; }
  std::int64_t first_name() const { return first_word() + classes_ * words_; }

  void step(Random& random, State& s, Writer& out) const {
    const double rep = s.defined.empty() ? 0 : rep_;
    const bool deep = static_cast<std::int64_t>(s.open.size()) >= depth_;
    const double open = deep ? 0 : open_, close = s.open.empty() ? 0 : close_;
    double u = random.uniform();
    if (u < def_) return define(random, s, out);
    u -= def_;
    if (u < rep) return repeat(s, out);
    u -= rep;
    if (u < open) {
      s.open.push_back(random.below(brackets_));
      return out.put(3 + s.open.back(), open / static_cast<double>(brackets_), kBracket);
    }
    u -= open;
    if (u < close) {
      out.put(3 + brackets_ + s.open.back(), close, kBracket);
      return s.open.pop_back();
    }
    word(random, s, 1 - def_ - rep - open - close, out);
  }

  void define(Random& random, State& s, Writer& out) const {
    out.put(1, def_, kMarker);
    const auto names = shuffled(names_, first_name(), random);
    s.defined.assign(names.begin(), names.begin() + defined_);
    for (std::int64_t i = 0; i < defined_; ++i) {
      out.put(s.defined[to_size(i)], 1 / static_cast<double>(names_ - i), kWord);
    }
  }

  void repeat(const State& s, Writer& out) const {
    out.put(2, rep_, kMarker);
    for (const std::uint16_t name : s.defined) out.put(name, 1, kCopy);
  }

  void word(Random& random, State& s, double p, Writer& out) const {
    const auto from = to_size(s.last_class);
    const std::size_t to = draw(next_class_[from], random), rank = draw(zipf_, random);
    p *= probability(next_class_[from], to) * probability(zipf_, rank);
    out.put(ranked_[from * to_size(classes_) + to][rank], p, kWord);
    s.last_class = static_cast<std::int64_t>(to);
  }

  std::int64_t classes_, words_, names_, brackets_, defined_, depth_;
  double def_, rep_, open_, close_;
  std::vector<double> zipf_;                        // cumulative
  std::vector<std::vector<double>> next_class_;     // cumulative, by class
  std::vector<std::vector<std::uint16_t>> ranked_;  // words by rank, by class and class before
};

// A token is the image of the one `lag` positions before it, except for some noise. Nothing helps
// but attention to that position, and the frequencies of the noise.
class Lag final : public Language {
 public:
  Lag(const json& j, const tt_config& config, std::uint64_t seed)
      : lag_(j.value("lag", std::size_t{2})), noise_(j.value("noise", 0.05)), V_(config.V) {
    Random random(seed);
    image_ = shuffled(V_, 0, random);
    ranked_ = shuffled(V_, 0, random);
    frequency_.resize(ranked_.size());
    by_rank_ = zipf(V_, j.value("zipf", 0.0));
    for (std::size_t r = 0; r < ranked_.size(); ++r)
      frequency_[ranked_[r]] = probability(by_rank_, r);
  }

  void write(Random& random, const Document& document) const override {
    Writer out(document);
    for (std::size_t i = 0; i < document.tokens.size(); ++i) {
      const bool free = i < lag_;
      const std::int64_t image = free ? -1 : image_[document.tokens[i - lag_]];
      const bool noisy = free || random.uniform() < noise_;
      const std::int64_t token = noisy ? ranked_[draw(by_rank_, random)] : image;
      const double by_chance = frequency_[to_size(token)];
      const double p = free ? by_chance : noise_ * by_chance + (token == image ? 1 - noise_ : 0);
      out.put(token, p, kWord);
    }
  }

  // Tokens by the token that is looked back at.
  std::vector<std::vector<double>> transitions() const override {
    std::vector<std::vector<double>> rows;
    for (const std::uint16_t image : image_) {
      std::vector<double>& row = rows.emplace_back();
      for (const double by_chance : frequency_) row.push_back(noise_ * by_chance);
      row[image] += 1 - noise_;
    }
    return rows;
  }

 private:
  std::size_t lag_;
  double noise_;
  std::int64_t V_;
  std::vector<std::uint16_t> image_, ranked_;  // ranked: by frequency in the noise
  std::vector<double> by_rank_, frequency_;    // cumulative; by token
};

}  // namespace

std::unique_ptr<Language> make_language(const json& corpus, const tt_config& config,
                                        std::uint64_t seed) {
  const std::string kind = corpus.value("kind", "grammar");
  if (kind == "grammar") return std::make_unique<Grammar>(corpus, config, seed);
  if (kind == "lag") return std::make_unique<Lag>(corpus, config, seed);
  throw Error(fmt::format("ternary_training: unknown corpus '{}'", kind));
}

double nats_lost(const Language& own, const Language& other) {
  const auto known = own.transitions(), met = other.transitions();
  double sum = 0;
  for (std::size_t row = 0; row < met.size(); ++row) {
    for (std::size_t i = 0; i < met[row].size(); ++i) {
      const double p = met[row][i];
      if (p > 0) sum += p * std::log(p / known.at(row).at(i));
    }
  }
  return sum / static_cast<double>(met.size());
}

// The least similar to `own` of eight languages. One draw is not enough: of languages with three
// classes, one in twelve has the same chain of classes, and a model of one is then nearly as good
// at the other.
std::unique_ptr<Language> foreign_language(const nlohmann::json& corpus, const tt_config& config,
                                           const Language& own, std::uint64_t seed) {
  std::unique_ptr<Language> farthest;
  double most = 0;
  for (std::uint64_t i = 0; i < 8; ++i) {
    auto language = make_language(corpus, config, substream(seed, i));
    const double lost = nats_lost(own, *language);
    if (farthest != nullptr && lost <= most) continue;
    farthest = std::move(language);
    most = lost;
  }
  return farthest;
}

}  // namespace assay::ternary_training
